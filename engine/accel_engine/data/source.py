"""A source of data: what describes and loads the data that a plan names."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from accel_engine.data.data_options import DataOptions, Progress
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.errors import PlanError

if TYPE_CHECKING:
    from accel_engine.data.dataset import Dataset


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
            names: The options; of a series, only the kinds of columns are for other data.
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
