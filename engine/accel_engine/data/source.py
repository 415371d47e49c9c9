"""A source of data: what is known of the data that a plan names before it is read, and what describes and loads it."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from accel_engine.data.changes import Change
from accel_engine.data.data_options import DataOptions, Progress
from accel_engine.data.pixel_scaling import PIXELS, ValueRange
from accel_engine.data.structure import ArraySpec, Batch
from accel_engine.errors import PlanError

if TYPE_CHECKING:
    from accel_engine.data.dataset import Dataset


@dataclass(frozen=True, slots=True)
class EntryColumn:
    """A column of a table, an array of a file, or another named part of the data, as it was understood."""

    name: str
    kind: str
    """``number``, ``category``, ``text``, ``date``, ``image``, ``label``, ``ignored`` and so on."""
    role: str
    """``input``, ``target``, ``weight``, ``time``, ``group``, ``split`` or ``unused``."""
    missing: int | None = None
    """Number of missing values; ``None`` if they were not counted."""
    detail: str = ""
    """Its range, its most common values or its shape, as text."""


@dataclass(frozen=True, slots=True)
class DatasetEntry:
    """A dataset that a plan can name.

    What :func:`accel_engine.data.survey` finds without reading all of the data is ``None`` or empty before it, and
    stays so where only reading can tell.
    """

    name: str
    """Its name in plans and titles."""
    summary: str
    """One line about it."""
    reader: str
    """The module and name of its :class:`~accel_engine.data.source.Source` class, as ``module:Class``."""
    shape: tuple[int, ...] | None = None
    """Shape of one example, without the batch; ``None`` if unknown, or if it has several inputs."""
    classes: int | None = None
    """Number of classes, 0 for data without classes; ``None`` if unknown, though some may be named."""
    examples: int | None = None
    """Number of training examples; ``None`` if unknown."""
    validation_examples: int | None = None
    """Number of validation examples; ``None`` if unknown."""
    test_examples: int | None = None
    """Number of test examples; ``None`` if unknown."""
    path: Path | None = None
    """The user's file or folder."""
    function: str = ""
    """The user's function, for data from Python."""
    value_range: ValueRange | None = PIXELS
    """Value range of the examples; ``None`` if unknown."""
    notes: tuple[str, ...] = ()
    """Notes for the user about the file."""
    changes: tuple[Change, ...] = ()
    """What reading changes in the data."""
    sample_rate: int = 0
    """Samples per second of audio; 0 for other data, and before its headers are read."""
    kind: str = "images"
    """What an example is, as in :class:`accel_engine.data.dataset.Dataset`."""
    task: str = "auto"
    """The task that the data suggests; ``auto`` for none."""
    spec: Batch | None = None
    """The :class:`~accel_engine.data.structure.ArraySpec` of every array of an example; ``None`` if unknown."""
    columns: tuple[EntryColumn, ...] = ()
    """Each column or array, as far as it is known."""
    class_names: tuple[str, ...] = ()
    class_counts: tuple[int, ...] = ()
    """Number of examples of each class, in all splits that were looked at; empty if not counted."""
    samples: tuple[tuple[str, str], ...] = ()
    """A few examples as text: a name or index, and the example."""
    own_splits: tuple[str, ...] = ()
    """The data's own splits, of ``validation`` and ``test``; empty if a plan's ``split`` decides."""
    url: str = ""
    """The address of data that is not on this machine, such as ``gs://bucket/train.tfrecord``."""

    @property
    def dtype(self) -> str:
        """Type of an example's values; empty if it is unknown, or if it has several inputs."""
        return self.spec.inputs.dtype if self.spec and isinstance(self.spec.inputs, ArraySpec) else ""

    @property
    def is_own(self) -> bool:
        """Whether it is the user's data, not built in."""
        return self.path is not None or self.needs_engine

    @property
    def needs_engine(self) -> bool:
        """Whether only the engine can look at it, as it runs the user's function or reads what is elsewhere."""
        return bool(self.function or self.url)


class Source(ABC):
    """Describes data from what can be seen without reading all of it, and loads it, over the same parsed headers.

    A subclass imports no TensorFlow, so that the dashboard can describe data.

    Args:
        entry: Names the data: its path, function or address.
        options: How it is read and split.
    """

    is_table = False
    """Whether it is a table, whose columns have kinds."""

    has_columns = False
    """Whether a plan can name its columns or arrays."""

    may_be_series = False
    """Whether windows of its rows can be examples."""

    takes_window = False
    """Whether a plan's ``window`` has an effect: on rows, on lists of several lengths, sounds or texts."""

    has_tokens = False
    """Whether it is text that language models learn token by token."""

    resizes_images = False
    """Whether a plan's ``image_size`` has an effect."""

    takes_validation_data = True
    """Whether a plan can name other data for validation."""

    loads_with_tensorflow = False
    """Whether loading it takes TensorFlow or Keras, so that only engine processes load it."""

    is_downloaded = False
    """Whether it may be downloaded when it is loaded."""

    is_made_up = False
    """Whether its examples are made up."""

    def __init__(self, entry: DatasetEntry, options: DataOptions) -> None:
        self.entry = entry
        self.options = options

    @property
    def path(self) -> Path:
        """The file or folder, of a source that has one."""
        assert self.entry.path is not None  # noqa: S101 (as said)
        return self.entry.path

    def refuse(self, names: Sequence[str], reason: str) -> None:
        """Refuse options that are for other data.

        Args:
            names: The options; if the plan has a window, only ``kinds`` is refused, whatever they are.
            reason: Why.

        Raises:
            PlanError: The plan has one of them.
        """
        for name in names if self.options.window is None else ("kinds",):
            if value := getattr(self.options, name):
                raise PlanError(name, value, reason)

    def describe(self) -> DatasetEntry:
        """Complete the entry with what names, headers and first rows tell.

        Raises:
            DataError: The data cannot be used.
            PlanError: An option does not fit it.
        """
        return self.entry

    @abstractmethod
    def load(self, progress: Progress) -> "Dataset":
        """Read the data, or what reads it row by row where it does not fit in memory.

        Args:
            progress: Reports the number of examples read.

        Raises:
            DataError: The data cannot be read, or is invalid.
            PlanError: An option does not fit it.
        """


def parse_size(text: str) -> tuple[int, int]:
    """Parse ``HEIGHTxWIDTH`` (or one number for both) in pixels.

    Raises:
        PlanError: The text has another format.
    """
    match = re.fullmatch(r"(\d{1,9})(?:x(\d{1,9}))?", text)
    size = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not all(1 <= side <= 4096 for side in size):
        raise PlanError("image_size", text, "must be HEIGHTxWIDTH in pixels, e.g. 96x96")
    return size
