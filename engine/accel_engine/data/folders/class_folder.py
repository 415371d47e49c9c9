"""Finds the files of each class and split of a folder from their names; without TensorFlow."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change
from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.data.folders.layout import TEST, TRAIN, VALIDATION
from accel_engine.data.splits import SplitRows, has_other_validation, split_rows
from accel_engine.errors import DataError, PlanError
from accel_engine.user_paths import is_directory, user_path

_NAMED = 5
"""Number of folders, and of suffixes in each, that are named."""

_FILES_OF_SYSTEMS = ("Thumbs.db", "desktop.ini")
"""Files that file managers write beside others."""

_SAMPLES = 4
"""Number of examples shown before training."""


@dataclass(frozen=True, slots=True)
class ClassFiles:
    """The files of a split.

    Attributes:
        files: Paths, sorted by class.
        labels: Class index of each, int32.
    """

    files: tuple[str, ...]
    labels: npt.NDArray[np.int32]

    def select(self, rows: npt.NDArray[np.intp]) -> "ClassFiles":
        """The files at ``rows``."""
        return ClassFiles(tuple(self.files[row] for row in rows), self.labels[rows])

    def __len__(self) -> int:
        return len(self.files)


@dataclass(frozen=True, slots=True)
class ClassFolder:
    """A folder of files by class.

    Attributes:
        root: The folder.
        class_names: Names of the classes' folders, sorted.
        train: The training files.
        validation: The validation files; ``None`` if there are none.
        test: The test files; ``None`` if there are none.
        notes: Notes for the user.
        changes: The files that are left out.
    """

    root: Path
    class_names: tuple[str, ...]
    train: ClassFiles
    validation: ClassFiles | None
    test: ClassFiles | None
    notes: tuple[str, ...]
    changes: tuple[Change, ...] = ()

    @property
    def splits(self) -> list[ClassFiles | None]:
        """The three splits."""
        return [self.train, self.validation, self.test]

    @property
    def files(self) -> list[str]:
        """The files of all splits."""
        return [file for split in self.splits if split for file in split.files]


def scan_class_folder(
    entry: DatasetEntry, options: DataOptions, suffixes: Sequence[str], noun: str, ignored: Sequence[str] = ()
) -> ClassFolder:
    """Find the files of a folder and their classes.

    A folder with subfolders ``train`` and ``val`` or ``test`` is split as it says. If it has no validation split, one
    is taken from the training files; but a test split is used for validation if the plan does not ask for another.

    Args:
        entry: Has the folder's path.
        options: How validation files are chosen if the folder does not tell.
        suffixes: Suffixes of the files, in lower case.
        noun: What the files are called, in the plural.
        ignored: Names of folders that are not classes.

    Raises:
        DataError: The folder does not have a folder of files per class.
        PlanError: The split does not fit the folder.
    """
    root = Path(entry.path or ".")
    reader = _Reader(tuple(suffixes), noun, frozenset(ignored), [], {})
    train_root, validation_root, test_root = split_folders(root)
    if train_root is None:
        validation_root = test_root = None
    names, train = reader.read(train_root or root, ())
    validation, test = (
        reader.read(folder, names)[1] if folder is not None else None for folder in (validation_root, test_root)
    )
    if validation is None and test is not None and options.split == "auto" and not has_other_validation(options):
        validation, test = test, None
        reader.notes.append(f"validating on {test_root}, as there is no validation folder")
    is_split = validation is not None
    if options.validation_data:
        validation = reader.read(validation_folder(options), names)[1]
    found, total = (is_split or has_other_validation(options), test is not None), len(train)
    rows, notes = split_the_rest(total, options, train.labels, found, noun)
    reader.notes.extend(notes)
    validation = validation if validation is not None else _selected(train, rows.validation)
    test = test if found[1] else _selected(train, rows.test)
    return ClassFolder(
        root, names, train.select(rows.train), validation, test, tuple(reader.notes), left_out(reader.others)
    )


def split_folders(root: Path) -> tuple[Path | None, Path | None, Path | None]:
    """The subfolders with the training, validation and test split; ``None`` where there is none.

    Raises:
        DataError: The folder cannot be read.
    """
    children = {path.name.lower(): path for path in subfolders(root)}
    train, validation, test = (
        next((children[name] for name in names if name in children), None) for names in (TRAIN, VALIDATION, TEST)
    )
    return train, validation, test


def split_the_rest(
    examples: int, options: DataOptions, labels: npt.NDArray[np.int32] | None, found: tuple[bool, bool], noun: str
) -> tuple[SplitRows, list[str]]:
    """Choose rows for those of the validation and the test split that a folder does not have.

    Args:
        examples: Number of training examples in the folder.
        options: The plan's split.
        labels: Class of each.
        found: Whether the folder has a validation and a test split.
        noun: What the examples are called.

    Returns:
        The rows of each split, and notes for the user.
    """
    shares = replace(
        options,
        validation_split=0.0 if found[0] else options.validation_split,
        test_split=0.0 if found[1] else options.test_split,
    )
    if all(found):
        everything = np.arange(examples)
        return SplitRows(everything, everything[:0], everything[:0]), []
    if options.split == "ordered":
        raise PlanError("split", options.split, f"would keep whole classes from training: {noun} are ordered by class")
    rows = split_rows(examples, shares, labels)
    notes = [] if found[0] else [f"validation split: {len(rows.validation)} of {examples} {noun}"]
    if len(rows.test):
        notes.append(f"test split: {len(rows.test)} of {examples} {noun}")
    return rows, notes


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


@dataclass(slots=True)
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


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads folders with a folder per class."""

    suffixes: tuple[str, ...]
    noun: str
    ignored: frozenset[str]
    notes: list[str]
    others: dict[Path, FoundFiles]

    def read(self, root: Path, known: Sequence[str]) -> tuple[tuple[str, ...], ClassFiles]:
        """The files below a folder with a folder per class; ``known`` are the only classes allowed."""
        found = subfolders(root)
        folders = [path for path in found if path.name.lower() not in self.ignored]
        self.notes.extend(f"{path} is ignored: it is not a class" for path in found if path not in folders)
        layout = f"expected one subfolder of {self.noun} per class"
        if not folders:
            raise DataError(f"{root} has no subfolders; {layout}")
        names = tuple(known) or tuple(path.name for path in folders)
        if len(names) < 2:
            raise DataError(f"{root} has only one folder, {names[0]}; classification needs at least two classes")
        files: list[str] = []
        labels: list[int] = []
        for folder in folders:
            if folder.name not in names:
                raise DataError(f"{root} has the class {folder.name}, which has no training {self.noun}")
            found_files = FoundFiles.below(folder, self.suffixes)
            self.others[folder] = found_files
            own = found_files.files
            if not own and not known:
                raise DataError(f"{folder} has no {self.noun} ({', '.join(self.suffixes)}); {layout}")
            files += own
            labels += [names.index(folder.name)] * len(own)
        if not files:
            raise DataError(f"{root} has no {self.noun} ({', '.join(self.suffixes)})")
        return names, ClassFiles(tuple(files), np.array(labels, np.int32))


def _selected(train: ClassFiles, rows: npt.NDArray[np.intp]) -> ClassFiles | None:
    return train.select(rows) if len(rows) else None


def validation_folder(options: DataOptions) -> Path:
    """The folder of a plan's ``validation_data``.

    Raises:
        PlanError: There is no such folder.
    """
    folder = user_path(options.validation_data)
    if not is_directory(folder):
        raise PlanError("validation_data", options.validation_data, "must be a folder, as data is one")
    return folder
