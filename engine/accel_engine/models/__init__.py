"""The catalogue of models, and the lookup of a plan's model; without TensorFlow.

The builders are in the other modules of this package, which only the engine process imports.
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel_engine.errors import ModelError, PlanError
from accel_engine.models.applications import APPLICATIONS
from accel_engine.models.data_description import IMAGES, SEQUENCES, SOUNDS, TEXTS, TOKENS
from accel_engine.models.model_entry import ModelEntry, Shape
from accel_engine.models.model_files import WEIGHTS, is_model_file, why_no_layers
from accel_engine.text import suggestion
from accel_engine.user_code import UserFunction
from accel_engine.user_paths import is_file, no_file, user_path

__all__ = [
    "ARGUMENTS",
    "CATALOGUE",
    "AutoModel",
    "ModelEntry",
    "Shape",
    "UserModel",
    "find",
    "find_built_in",
    "takes_texts",
]

ARGUMENTS = ("input_shape", "classes", "num_classes", "class_names", "vocabulary", "element_spec")
"""Names of the arguments that a user's function may ask for."""


def _entry(name: str, summary: str, **options: Any) -> ModelEntry:
    """The entry of a model that a module of this package, of the same name, builds."""
    return ModelEntry(name, summary, f"accel_engine.models.{name.replace('-', '_')}:build", **options)


CATALOGUE: dict[str, ModelEntry] = {
    entry.name: entry
    for entry in (
        _entry("linear", "Linear or logistic regression: no hidden layer", learning_rate=1e-2),
        _entry(
            "tabular",
            "A linear model and two hidden layers of 128 units, for the columns of a table",
        ),
        _entry("mlp", "One hidden layer of 128 units: a minimal network for digits"),
        _entry(
            "cnn",
            "A small convolutional network with batch normalization, for small images",
            form=IMAGES,
            minimum_size=8,
            any_size=True,
        ),
        _entry(
            "fashion-cnn",
            "One convolution of 64 filters, with published results on Fashion-MNIST",
            form=IMAGES,
            minimum_size=4,
        ),
        _entry(
            "resnet20",
            "The 20-layer residual network for CIFAR; 0.27 million weights",
            form=IMAGES,
            minimum_size=8,
            any_size=True,
        ),
        _entry("vit", "A small vision transformer: 4 layers of width 96 on 8x8 patches", form=IMAGES, minimum_size=8),
        _entry(
            "unet", "A U-Net of 4 stages: a class for each pixel", form=IMAGES, minimum_size=8, tasks=("segmentation",)
        ),
        _entry(
            "autoencoder",
            "Reconstructs its inputs from a code of 64 numbers; convolutions for images",
            tasks=("reconstruction",),
        ),
        _entry("sound-cnn", "Convolutions over the time and the frequencies of sounds", form=SOUNDS, any_size=True),
        _entry("tcn", "Dilated convolutions over time, for series and sensors", form=SEQUENCES, any_size=True),
        _entry(
            "lstm",
            "Two LSTM layers of 64 units, for series and short sequences",
            form=SEQUENCES,
            any_size=True,
        ),
        _entry(
            "bag-of-words",
            "Which of 20,000 words and pairs of words a text has, and one hidden layer",
            form=TEXTS,
        ),
        _entry("text-cnn", "Embeddings of words, and convolutions over 3 and 5 of them", form=TEXTS),
        _entry(
            "gpt",
            "A transformer that predicts the next token: 4 layers of width 128",
            form=TOKENS,
            tasks=("sequence",),
        ),
        *APPLICATIONS,
    )
}
"""Every model of the catalogue, by name."""


@dataclass(frozen=True, slots=True)
class AutoModel:
    """The default model of the data's task, which :func:`accel_engine.models.choose.default_model` finds."""

    name: str = "auto"
    """Display name."""
    summary: str = "The default model for the data and its task"
    """One-line description."""


@dataclass(frozen=True, slots=True)
class UserModel:
    """A custom model."""

    name: str
    """Short display name."""
    kind: str
    """``file`` (a function in a Python file), ``module`` (a function in a package) or ``saved`` (a ``.keras`` or
    ``.h5`` file)."""
    target: str
    """The file's path or the module's name."""
    function: str = ""
    """The function that returns the model; empty for a saved one."""

    @property
    def user_function(self) -> UserFunction:
        """The function of a ``file`` or ``module`` model."""
        return UserFunction(self.target, self.function, f"model {self.name}", ModelError)

    @property
    def modified(self) -> float | None:
        """When its file was modified, in seconds since the Unix epoch; ``None`` for a module, or without the file."""
        with suppress(OSError):
            return user_path(self.target).stat().st_mtime if self.kind != "module" else None
        return None


_FORMS = "must be a name, FILE.keras, FILE.h5, FILE.py:FUNCTION or PACKAGE.MODULE:FUNCTION"


def takes_texts(spec: str) -> bool:
    """Whether a plan's model takes raw texts: ``auto`` does, and models of the catalogue for texts."""
    return spec.lower() in ("auto", *(entry.name.lower() for entry in CATALOGUE.values() if entry.form == TEXTS))


def find_built_in(spec: str) -> ModelEntry | AutoModel | None:
    """The model of ``auto`` or a catalogue name, in any case, whatever files there are; ``None`` for all else."""
    entries = {name.lower(): entry for name, entry in CATALOGUE.items()}
    return AutoModel() if spec.lower() == "auto" else entries.get(spec.lower())


def find(spec: str) -> ModelEntry | AutoModel | UserModel:
    """Find the model of a plan.

    Args:
        spec: ``auto`` or a catalogue name (in any case), ``FILE.py:FUNCTION``, ``PACKAGE.MODULE:FUNCTION`` or
            ``FILE.keras`` or ``FILE.h5``.

    Raises:
        PlanError: There is no such model or file.
    """
    if entry := find_built_in(spec):
        return entry
    if is_model_file(spec):
        if why := no_file(user_path(spec)):
            raise PlanError("model", spec, why)
        return UserModel(Path(spec).stem, "saved", spec)
    target, colon, function = spec.rpartition(":")
    if colon and function.isidentifier():
        if target.endswith(".py"):
            if why := no_file(user_path(target)):
                raise PlanError("model", spec, f"{why}: {target}")
            return UserModel(f"{Path(target).stem}:{function}", "file", target, function)
        if all(part.isidentifier() for part in target.split(".")):
            return UserModel(spec, "module", target, function)
    if spec.endswith(".py"):
        raise PlanError("model", spec, f"add the function that returns the model, e.g. {spec}:build")
    if why := why_no_layers(user_path(spec)):
        use = " or give FILE.py:FUNCTION with --initial-weights" if spec.endswith(WEIGHTS) else ""
        raise PlanError("model", spec, f"{why}{use and f';{use}'}")
    if is_file(user_path(spec)):
        raise PlanError("model", spec, _FORMS)
    raise PlanError("model", spec, f"no such model; {suggestion(spec, ('auto', *CATALOGUE))}")
