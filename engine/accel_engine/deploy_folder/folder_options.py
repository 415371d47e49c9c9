"""Options of ``accel-tui deploy RUN --to FOLDER``."""

import re
from dataclasses import dataclass

from accel_engine.errors import UsageError
from accel_engine.plan.options import OptionSpec, default_of, option, specs_of

CONTAINER, KUBERNETES, KSERVE, RAY_SERVE, TENSORFLOW_SERVING, LITERT = (
    "container",
    "kubernetes",
    "kserve",
    "ray-serve",
    "tensorflow-serving",
    "litert",
)
"""The targets of a folder."""

WITH_SERVER = (CONTAINER, KUBERNETES, KSERVE, RAY_SERVE)
"""The targets of folders with this program's server."""

ABOUT = {
    CONTAINER: "a server with its Dockerfile",
    KUBERNETES: "the same, with manifests",
    KSERVE: "the same, with InferenceServices",
    RAY_SERVE: "the same, with an application of Ray Serve",
    TENSORFLOW_SERVING: "a SavedModel with its configuration, for TensorFlow's own server",
    LITERT: "a model for phones and small devices, with clients",
}

ACCELERATORS = ("cpu", "gpu", "tpu")

_IMAGE = re.compile(r"[a-z0-9][a-z0-9._/:-]*(@sha256:[0-9a-f]{64})?", re.ASCII)
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*=[A-Za-z0-9._-]*", re.ASCII)
_STORAGE = re.compile(r"[a-z0-9]+://[^\s\"'\\]+", re.ASCII)


def image_name(text: str) -> str:
    """Check the name of an image of a container.

    Raises:
        UsageError: The text is not the name of an image.
    """
    if text and not _IMAGE.fullmatch(text):
        raise UsageError(f"{text!r} is not the name of an image: give one such as registry.example.org/models/digits:1")
    return text


def _storage(text: str) -> str:
    if text and not _STORAGE.fullmatch(text):
        raise UsageError(f"{text!r} is not the address of a storage: give one such as pvc://models/digits")
    return text


def node_labels(text: str) -> tuple[str, ...]:
    """Parse labels of nodes, separated by commas.

    Raises:
        UsageError: A text is not a label.
    """
    words = tuple(each.strip() for each in text.split(",")) if text.strip() else ()
    for each in words:
        if not _LABEL.fullmatch(each):
            raise UsageError(f"{each!r} is not a label of a node: give NAME=VALUE")
    return words


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderOptions:
    """The options of a folder that stands alone: its path and its target.

    Raises:
        UsageError: An option is not for the target, or there is no path.
    """

    to: str = option(
        "", OptionSpec("Write a folder that stands alone, and start nothing.", str, metavar="FOLDER", suffixes=())
    )
    target: str = option(
        CONTAINER,
        OptionSpec("What the folder is for.", str, flags=("--for",), choices=tuple(ABOUT), notes=ABOUT),
    )
    accelerator: str = option(
        "cpu", OptionSpec("What the container computes on; gpu and tpu take a savedmodel.", str, choices=ACCELERATORS)
    )
    image: str = option(
        "",
        OptionSpec(
            "Name of the image; the model's by default.",
            str,
            metavar="IMAGE",
            read=image_name,
            hint="the model's name",
        ),
    )
    node_selector: tuple[str, ...] = option(
        (), OptionSpec("Labels of the nodes for the pods.", str, metavar="NAME=VALUE,...", read=node_labels)
    )
    storage: str = option(
        "", OptionSpec("Where KServe finds the SavedModel; a volume by default.", str, metavar="URI", read=_storage)
    )
    licence: str = option(
        "",
        OptionSpec(
            "Licence of the model, for its card and image.",
            str,
            flags=("--licence", "--license"),
            metavar="SPDX",
            hint="such as MIT",
        ),
    )
    replace: bool = option(default=False, spec=OptionSpec("Replace a folder that was written before.", bool))

    def __post_init__(self) -> None:
        if not self.to:
            self._check_without_folder()
            return
        if self.accelerator != "cpu" and self.target == LITERT:
            raise UsageError("--accelerator is for servers; a folder for litert has none")
        if self.accelerator == "tpu" and self.target == TENSORFLOW_SERVING:
            raise UsageError("TensorFlow Serving's images have no TPU: write a folder for kubernetes")
        if self.node_selector and self.target not in (KUBERNETES, KSERVE):
            raise UsageError("--node-selector is for kubernetes and kserve")
        if self.storage and self.target != KSERVE:
            raise UsageError("--storage is for kserve")
        if self.image and self.target in (TENSORFLOW_SERVING, LITERT):
            raise UsageError(f"--image names the image that is built from the folder; one for {self.target} has none")

    def _check_without_folder(self) -> None:
        for name in ("target", "accelerator", "image", "node_selector", "storage", "licence", "replace"):
            if getattr(self, name) != default_of(FolderOptions, name):
                flag = specs_of(FolderOptions)[name].flag(name)
                raise UsageError(f"{flag} is for a folder: give --to FOLDER")

    @property
    def has_server(self) -> bool:
        """Whether the folder has this program's server."""
        return self.target in WITH_SERVER

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats that the folder takes; empty for any that is served."""
        if self.target == LITERT:
            return ("tflite",)
        return ("savedmodel",) if self.target == TENSORFLOW_SERVING or self.accelerator != "cpu" else ()
