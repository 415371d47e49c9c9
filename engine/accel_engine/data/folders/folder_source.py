"""A folder of files, split as the folder or the plan says."""

import os
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change
from accel_engine.data.data_options import SPLIT_NAMES, DataOptions
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.data.source import Source
from accel_engine.data.splits import SplitRows, has_other_validation, split_rows
from accel_engine.errors import DataError, PlanError
from accel_engine.user_paths import is_directory, user_path

_NAMED = 5
"""Number of folders, and of suffixes in each, that are named."""

_OF_SYSTEMS = ("Thumbs.db", "desktop.ini", "__MACOSX")
"""What file managers write beside files."""


F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class SplitFiles(Generic[F]):
    """The files of a split.

    Attributes:
        files: The files of each example.
        labels: Class index of each, int32; ``None`` if they have none.
    """

    files: tuple[F, ...]
    labels: npt.NDArray[np.int32] | None = None

    def select(self, rows: npt.NDArray[np.intp]) -> Self:
        """The files at ``rows``."""
        labels = None if self.labels is None else self.labels[rows]
        return replace(self, files=tuple(self.files[row] for row in rows), labels=labels)

    def __len__(self) -> int:
        return len(self.files)


@dataclass(frozen=True, slots=True)
class FolderSplits(Generic[F]):
    """The splits of a folder.

    Attributes:
        train: The training files.
        validation: The validation files; ``None`` if there are none.
        test: The test files; ``None`` if there are none.
    """

    train: SplitFiles[F]
    validation: SplitFiles[F] | None
    test: SplitFiles[F] | None

    @property
    def each(self) -> tuple[SplitFiles[F] | None, ...]:
        """The three splits."""
        return self.train, self.validation, self.test

    @property
    def files(self) -> list[F]:
        """The files of all splits."""
        return [file for split in self.each if split for file in split.files]

    @property
    def counts(self) -> list[int]:
        """The number of examples of each split."""
        return [len(split) if split is not None else 0 for split in self.each]


class FolderSource(Source, Generic[F]):
    """A folder of files, split into subfolders or by the plan.

    A folder with subfolders ``train`` and ``val`` or ``test`` is split as it says. If it has no validation split, one
    is taken from the training files; but a test split is used for validation if the plan does not ask for another.

    Attributes:
        noun: What the examples are called, in the plural.
        targets: What is predicted of them, in the plural.
        suffixes: Suffixes of their files, in lower case.
        root: The folder.
        notes: Notes on what was found.
        left_out: What was left out.
    """

    noun: ClassVar[str]
    targets: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]

    def __init__(self, entry: DatasetEntry, options: DataOptions) -> None:
        super().__init__(entry, options)
        self.root = Path(entry.path or ".")
        self.notes: list[str] = []
        self.left_out: list[Change] = []
        self._found: dict[Path, FoundFiles] = {}

    @abstractmethod
    def find(self, root: Path) -> SplitFiles[F]:
        """Find the files of a folder that is not split; called for that of the training files first.

        Raises:
            DataError: It has no examples, or cannot be read.
        """

    @abstractmethod
    def has_targets(self, root: Path) -> bool:
        """Whether the examples of a folder have what is to be predicted; those of some test folders have not."""

    @cached_property
    def splits(self) -> FolderSplits[F]:
        """The files of each split.

        Raises:
            DataError: The folder cannot be read.
            PlanError: The split does not fit the folder.
        """
        children = {path.name.lower(): path for path in subfolders(self.root)}
        train_root, *roots = (
            next((children[name] for name in names if name in children), None) for names in SPLIT_NAMES.values()
        )
        options, has_other = self.options, has_other_validation(self.options)
        train = self.find(train_root or self.root)
        validation, test = (self._find_held_out(each) if train_root and each else None for each in roots)
        if validation is None and test is not None and options.split == "auto" and not has_other:
            validation, test = test, None
            self.notes.append(f"validating on {roots[1]}, as there is no validation folder")
        found = (validation is not None or has_other, test is not None)
        if options.validation_data:
            validation = self.find(_validation_folder(options))
        rows = _rows_of_the_rest(train, options, found, self.noun)
        if not found[0]:
            self.notes.append(f"validation split: {len(rows.validation)} of {len(train)} {self.noun}")
        if len(rows.test):
            self.notes.append(f"test split: {len(rows.test)} of {len(train)} {self.noun}")
        self.left_out += _with_other_suffixes(self._found)
        chosen = [train.select(part) if len(part) else None for part in rows[1:]]
        return FolderSplits(train.select(rows.train), validation or chosen[0], test or chosen[1])

    def _find_held_out(self, root: Path) -> SplitFiles[F] | None:
        """The files of a validation or test folder; ``None`` if they have no targets."""
        if self.has_targets(root):
            return self.find(root)
        count = len(FoundFiles.below(root, self.suffixes).files)
        self.left_out.append(Change("left out", self.noun, count, count, f"those in {root} have no {self.targets}"))
        return None

    def files_below(self, folder: Path, suffixes: tuple[str, ...]) -> list[str]:
        """The files in a folder and its subfolders with some suffixes; others are counted."""
        self._found[folder] = FoundFiles.below(folder, suffixes)
        return self._found[folder].files

    def none_below(self, folder: Path, what: str, suffixes: tuple[str, ...]) -> DataError:
        """The error about a folder without files with some suffixes."""
        others = self._found[folder].others.most_common(_NAMED)
        found = f"; it has {', '.join(f'{count:,} {suffix}' for suffix, count in others)}" if others else ""
        return DataError(f"{folder} has no {what} ({', '.join(suffixes)}){found}")


def subfolders(root: Path) -> list[Path]:
    """The subfolders of a folder by name, except hidden ones.

    Raises:
        DataError: The folder cannot be read.
    """
    try:
        with os.scandir(root) as found:
            shown = (each for each in found if each.is_dir() and not each.name.startswith((".", *_OF_SYSTEMS)))
            return sorted(Path(each.path) for each in shown)
    except OSError as error:
        raise DataError(f"cannot read the folder {root}: {error.strerror or error}") from error


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """The files in a folder and its subfolders, but for hidden ones.

    Attributes:
        files: Those with the suffixes that were looked for, sorted.
        others: How many others have each suffix.
    """

    files: list[str]
    others: Counter[str]

    @classmethod
    def below(cls, folder: Path, suffixes: tuple[str, ...]) -> Self:
        """Look for files with some suffixes."""
        found, others = list[str](), Counter[str]()
        for parent, folders, names in os.walk(folder):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in names:
                if name.startswith(".") or name in _OF_SYSTEMS:
                    continue
                if name.lower().endswith(suffixes):
                    found.append(os.path.join(parent, name))
                else:
                    others[Path(name).suffix.lower() or name] += 1
        return cls(sorted(found), others)


def _with_other_suffixes(found: Mapping[Path, FoundFiles]) -> tuple[Change, ...]:
    """The files with other suffixes, by their folder."""
    others = {folder: each.others for folder, each in found.items() if each.others}
    if not others:
        return ()
    listed = [
        f"{folder.name} {', '.join(f'{count:,} {suffix}' for suffix, count in suffixes.most_common(_NAMED))}"
        for folder, suffixes in sorted(others.items(), key=lambda each: -each[1].total())
    ]
    count = sum(each.total() for each in others.values())
    total = count + sum(len(each.files) for each in found.values())
    detail = "; ".join([*listed[:_NAMED], *(["…"] if len(listed) > _NAMED else [])])
    return (Change("left out", "files", count, total, f"their suffixes are not read: {detail}"),)


def _rows_of_the_rest(train: SplitFiles[F], options: DataOptions, found: tuple[bool, bool], noun: str) -> SplitRows:
    """Choose rows for those of the validation and the test split that are not found elsewhere."""
    everything = np.arange(len(train))
    if all(found):
        return SplitRows(everything, everything[:0], everything[:0])
    if options.split == "ordered":
        raise PlanError("split", options.split, f"would keep whole classes from training: {noun} are ordered by class")
    shares = replace(
        options,
        validation_split=0.0 if found[0] else options.validation_split,
        test_split=0.0 if found[1] else options.test_split,
    )
    return split_rows(len(train), shares, train.labels)


def _validation_folder(options: DataOptions) -> Path:
    folder = user_path(options.validation_data)
    if not is_directory(folder):
        raise PlanError("validation_data", options.validation_data, "must be a folder, as data is one")
    return folder
