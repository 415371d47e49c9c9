"""Finds the files of a folder, and splits them as the folder or the plan says."""

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change
from accel_engine.data.data_options import DataOptions
from accel_engine.data.folders.layout import TEST, TRAIN, VALIDATION
from accel_engine.data.splits import SplitRows, has_other_validation, split_rows
from accel_engine.errors import DataError, PlanError
from accel_engine.user_paths import is_directory, user_path

_NAMED = 5
"""Number of folders, and of suffixes in each, that are named."""

_FILES_OF_SYSTEMS = ("Thumbs.db", "desktop.ini")
"""Files that file managers write beside others."""


class SplitFiles(Protocol):
    """The files of a split."""

    @property
    def labels(self) -> npt.NDArray[np.int32] | None:
        """The class of each; ``None`` if they have none."""

    def select(self, rows: npt.NDArray[np.intp]) -> Self:
        """Those at ``rows``."""

    def __len__(self) -> int: ...


S = TypeVar("S", bound=SplitFiles)


@dataclass(frozen=True, slots=True)
class FolderSplits(Generic[S]):
    """The splits of a folder.

    Attributes:
        train: The training files.
        validation: The validation files; ``None`` if there are none.
        test: The test files; ``None`` if there are none.
        notes: How they were chosen.
    """

    train: S
    validation: S | None
    test: S | None
    notes: tuple[str, ...]

    @property
    def each(self) -> tuple[S, S | None, S | None]:
        """The three splits."""
        return self.train, self.validation, self.test

    @property
    def counts(self) -> list[int]:
        """The number of examples of each split."""
        return [len(split) if split is not None else 0 for split in self.each]


def find_splits(root: Path, options: DataOptions, noun: str, read: Callable[[Path], S]) -> FolderSplits[S]:
    """Find the files of a folder's splits.

    A folder with subfolders ``train`` and ``val`` or ``test`` is split as it says. If it has no validation split, one
    is taken from the training files; but a test split is used for validation if the plan does not ask for another.

    Args:
        root: The folder.
        options: How validation files are chosen if the folder does not tell.
        noun: What the examples are called, in the plural.
        read: Finds the files of a folder that is not split; called for that of the training files first.

    Raises:
        DataError: The folder cannot be read.
        PlanError: The split does not fit the folder.
    """
    children = {path.name.lower(): path for path in subfolders(root)}
    roots = [next((children[name] for name in names if name in children), None) for names in (TRAIN, VALIDATION, TEST)]
    train = read(roots[0] or root)
    validation, test = (read(each) if roots[0] and each else None for each in roots[1:])
    has_other = has_other_validation(options)
    notes: list[str] = []
    if validation is None and test is not None and options.split == "auto" and not has_other:
        validation, test = test, None
        notes.append(f"validating on {roots[2]}, as there is no validation folder")
    found = (validation is not None or has_other, test is not None)
    rows = _rows_of_the_rest(train, options, found, noun)
    if options.validation_data:
        validation = read(_validation_folder(options))
    if not found[0]:
        notes.append(f"validation split: {len(rows.validation)} of {len(train)} {noun}")
    if len(rows.test):
        notes.append(f"test split: {len(rows.test)} of {len(train)} {noun}")
    chosen = [train.select(part) if len(part) else None for part in rows[1:]]
    return FolderSplits(
        train.select(rows.train),
        chosen[0] if validation is None else validation,
        chosen[1] if test is None else test,
        tuple(notes),
    )


def subfolders(root: Path) -> list[Path]:
    """The subfolders of a folder by name, except hidden ones.

    Raises:
        DataError: The folder cannot be read.
    """
    try:
        with os.scandir(root) as found:
            return sorted(Path(each.path) for each in found if each.is_dir() and not each.name.startswith("."))
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
                if name.startswith(".") or name in _FILES_OF_SYSTEMS:
                    continue
                if name.lower().endswith(suffixes):
                    found.append(os.path.join(parent, name))
                else:
                    others[Path(name).suffix.lower() or name] += 1
        return cls(sorted(found), others)


def left_out(found: Mapping[Path, FoundFiles]) -> tuple[Change, ...]:
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


def _rows_of_the_rest(train: SplitFiles, options: DataOptions, found: tuple[bool, bool], noun: str) -> SplitRows:
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
