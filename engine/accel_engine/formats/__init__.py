"""The formats of trained models: each module ``NAME_format.py`` of this package has one, its ``FORMAT``."""

import importlib.util
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Protocol

from accel_engine.data.standardization import Standardization
from accel_engine.errors import UsageError
from accel_engine.inference.runtime import Arrays, Runtime
from accel_engine.inference.text_encoding import TextEncoding, sidecar_of
from accel_engine.user_paths import exists, is_directory

BATCHING_FILE = "batching.config"
"""The batching configuration of TensorFlow Serving, beside the versions of a SavedModel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """The numbers that a format stores a model in."""

    name: str = "none"
    """The value of ``--quantize``; ``none`` for the trained model's own precision."""
    about: str
    """The runtime and its arithmetic, in a few words."""
    tolerance: float
    """How far outputs may be from the trained model's: the difference itself for probabilities, a share of their scale
    for other values. How much worse the loss and the metrics may be follows from it, too. See
    ``accel_engine.model_export.proof``."""
    by_mean: bool = False
    """Whether this limits the mean over the examples, as a few examples near a limit of integers differ much; otherwise
    it limits the largest difference."""
    libraries: tuple[str, ...] = ()
    """Modules that it needs besides TensorFlow."""
    extra: str = ""
    """The extra of accel-tui that has them."""

    @property
    def missing(self) -> str:
        """Which libraries are missing, and how to install them; empty if all are there."""
        absent = [name for name in self.libraries if importlib.util.find_spec(name) is None]
        return f"{', '.join(absent)} missing: pip install 'accel-tui[{self.extra}]'" if absent else ""


class ModelToWrite(Protocol):
    """A trained model, in the forms that formats write."""

    @property
    def name(self) -> str:
        """The name under which it is served."""

    @property
    def labelled(self) -> Any:
        """A Keras model from raw inputs to outputs, with all preprocessing and the label of the best class."""

    @property
    def numeric(self) -> tuple[Any, dict[str, TextEncoding]]:
        """A Keras model without texts, and how its texts are encoded."""

    @property
    def unrolled(self) -> tuple[Any, dict[str, TextEncoding]]:
        """The same with unrolled recurrent layers, and without the units of :attr:`added_units`."""

    @property
    def added_units(self) -> Standardization | None:
        """The units that a TFLite file gets after it was converted, so that they are not quantized."""

    def first_examples(self, sizes: Sequence[int]) -> list[Arrays]:
        """Batches of raw examples of these sizes."""

    def training_examples(self, count: int) -> Arrays:
        """Raw training examples."""

    def described(self, encodings: Mapping[str, TextEncoding]) -> dict[str, Any]:
        """Where it is from, its classes, its signature, and how to encode texts."""

    def write_description(self, path: Path, encodings: Mapping[str, TextEncoding]) -> None:
        """Write :meth:`described` to a file."""


class ModelFormat(ABC):
    """A format of trained models."""

    name: ClassVar[str]
    """The value of ``--to``."""
    about: ClassVar[str]
    """Its description in the help of a command."""
    suffixes: ClassVar[tuple[str, ...]] = ()
    """Suffixes of its files, first the one that is written; empty if it is a directory."""
    precisions: ClassVar[tuple[Precision, ...]]
    """The numbers that it can store, the trained model's own first."""
    by_tensorflow: ClassVar[bool] = False
    """Whether TensorFlow runs it: on any device, with XLA, in half precision, from texts. Others run on the CPU, in
    float32, and have a file beside them that describes them."""
    is_served: ClassVar[bool] = False
    """Whether TensorFlow Serving takes it, whose batching of requests is written beside it."""

    @abstractmethod
    def write(self, model: ModelToWrite, precision: str, path: Path) -> None:
        """Write a model.

        Args:
            model: The model.
            precision: The name of one of :attr:`precisions`.
            path: Where nothing is yet.

        Raises:
            ModelError: The model cannot be written in this format; the message says why.
        """

    @abstractmethod
    def open(self, path: Path, *, threads: int | None = None, jit_compile: bool = False) -> Runtime:
        """Load a model; see :func:`open_model`."""

    def precision(self, name: str) -> Precision:
        """The precision with this name."""
        return next(each for each in self.precisions if each.name == name)

    def is_at(self, path: Path) -> bool:
        """Whether what is at a path may be a model in this format, by the path alone."""
        return path.is_file() and path.suffix in self.suffixes

    def default_name(self, run: str, precision: str) -> str:
        """The name of what is written, without a version."""
        return f"{run}{'' if precision == 'none' else f'-{precision}'}{self.suffixes[0]}"

    def path_to_write(self, path: Path) -> Path:
        """Where a model is written, if a user names a path.

        Raises:
            UsageError: The directory of a SavedModel cannot be read.
        """
        return path

    def files(self, path: Path) -> tuple[Path, ...]:
        """The written files: the path, and the file beside it if there is one."""
        return (path,) if self.by_tensorflow else (path, sidecar_of(path))

    def check_path(self, path: Path) -> None:
        """Raise an error if a model cannot be written to a path, not even over what is there.

        Raises:
            UsageError: The path is of the wrong kind, or it has the suffix of another format.
        """
        if path.suffix != self.suffixes[0]:
            raise UsageError(f"{path.name}: the name of a model in this format ends with {self.suffixes[0]}")
        for each in self.files(path):
            if is_directory(each):
                raise UsageError(f"{each} is a directory: choose another path")

    def overwritten(self, path: Path) -> list[Path]:
        """The files that are there already."""
        return [each for each in self.files(path) if exists(each)]


@cache
def all_formats() -> tuple[ModelFormat, ...]:
    """All formats, those first whose outputs are nearest to the trained model's."""
    names = (module.name for module in pkgutil.iter_modules(__path__) if module.name.endswith("_format"))
    found: list[ModelFormat] = [import_module(f"{__name__}.{name}").FORMAT for name in names]
    return tuple(sorted(found, key=lambda each: (each.precisions[0].tolerance, each.name)))


def format_named(name: str) -> ModelFormat:
    """The format with this value of ``--to``."""
    return next(each for each in all_formats() if each.name == name)


def target_name(file_format: str, precision: str) -> str:
    """A format and its precision, in a word."""
    return file_format if precision == "none" else f"{file_format}-{precision}"


def format_of(path: Path) -> ModelFormat:
    """The format of a model, by the path alone: a directory is a SavedModel.

    Raises:
        UsageError: There is nothing at the path, or it has the suffix of no format.
    """
    if not path.exists():
        raise UsageError(f"no such file: {path}")
    for each in all_formats():
        if each.is_at(path):
            return each
    suffixes = ", ".join(suffix for each in all_formats() for suffix in each.suffixes)
    raise UsageError(f"{path} is not a model: give a file that ends with {suffixes}, or the directory of a SavedModel")


def open_model(path: Path, *, threads: int | None = None, jit_compile: bool = False) -> Runtime:
    """Load a model.

    Args:
        path: A file or directory; see :func:`format_of`.
        threads: Threads of LiteRT or ONNX Runtime; TensorFlow's are the process's own.
        jit_compile: Whether XLA compiles a Keras model or a SavedModel.

    Raises:
        ModelError: The model cannot be loaded; the message says why.
        UsageError: There is no model at the path.
    """
    return format_of(path).open(path, threads=threads, jit_compile=jit_compile)
