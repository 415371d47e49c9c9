"""Describes and loads a folder with a folder of files per class."""

import os
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change
from accel_engine.data.data_options import Progress
from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.dataset_entry import DatasetEntry, EntryColumn
from accel_engine.data.folders.files import FileArray, FileForm, FilesSeen, look_at, read_splits
from accel_engine.data.folders.folder_splits import FolderSplits, FoundFiles, find_splits, left_out, subfolders
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.data.source import Source
from accel_engine.data.structure import ArraySpec, Batch
from accel_engine.errors import DataError

_SAMPLES = 4
"""Number of examples shown before training."""


class ClassFolderSource(Source):
    """Files in a folder per class; a subclass says which, and how they are read.

    Attributes:
        suffixes: Suffixes of the files, in lower case.
        noun: What the files are called, in the plural.
        column: What an example is called.
        form_type: Checks the files.
        ignored: Names of folders that are no classes.
    """

    suffixes: ClassVar[tuple[str, ...]]
    noun: ClassVar[str]
    column: ClassVar[str]
    form_type: ClassVar[type[FileForm[str, Any]]]
    ignored: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def form(self, seen: FilesSeen[str, Any]) -> FileForm[str, Any]:
        """How the files are read, from what some of them are and the plan says.

        Raises:
            DataError: They cannot be read together.
            PlanError: An option does not fit them.
        """

    @cached_property
    def folder(self) -> "ClassFolder":
        """The folder's files."""
        root = Path(self.entry.path or ".")
        reader = _Reader(self.suffixes, self.noun, self.ignored)
        splits = find_splits(root, self.options, self.noun, reader.read)
        changes = (*reader.changes, *left_out(reader.found))
        return ClassFolder(root, reader.class_names, splits, (*reader.notes, *splits.notes), changes)

    def describe(self) -> DatasetEntry:
        """Complete the entry with names, counts, and what some headers tell."""
        folder = self.folder
        seen = look_at(folder.files, self.form_type.check, self.options, self.form_type.looked_at)
        form = self.form(seen)
        train = folder.splits.train
        examples, validation, test = folder.splits.counts
        labels = np.concatenate([split.labels for split in folder.splits.each if split is not None])
        counts = np.bincount(labels, minlength=len(folder.class_names)).tolist()
        shown = np.linspace(0, len(train) - 1, min(_SAMPLES, len(train))).astype(int)
        return replace(
            self.entry,
            shape=form.shape,
            classes=len(folder.class_names),
            examples=examples,
            validation_examples=validation,
            test_examples=test,
            value_range=form.value_range,
            sample_rate=form.sample_rate,
            notes=(*self.entry.notes, *folder.notes, *seen.notes),
            changes=(*folder.changes, *form.changes(seen.counts, is_sampled=seen.is_sampled)),
            task="classification",
            spec=Batch(form.spec, ArraySpec((), "int32")),
            columns=(
                EntryColumn(self.column, self.column, "input", detail=form.detail or str(form.spec)),
                EntryColumn("class", "label", "target", missing=0, detail=f"{len(counts)} classes"),
            ),
            class_names=folder.class_names,
            class_counts=tuple(counts),
            samples=tuple(self.sample(train.files[row], folder.class_names[train.labels[row]]) for row in shown),
        )

    def sample(self, file: str, label: str) -> tuple[str, str]:
        """What is shown of an example and its class."""
        return os.path.relpath(file, self.folder.root), label

    def load(self, progress: Progress) -> Dataset:
        """Read the files into memory if they fit; otherwise they are read as they are needed."""
        folder = self.folder
        form = self.form(look_at(folder.files, self.form_type.check, self.options, self.form_type.looked_at))
        headers = Counter[Any]()
        lazy = [
            Split(FileArray(part.files, form, headers), part.labels) if part is not None else None
            for part in folder.splits.each
        ]
        (train, validation, test), warnings = read_splits(lazy, self.options, progress)
        assert train is not None  # noqa: S101 (a folder has training files)
        return Dataset(
            self.entry.name,
            train,
            validation,
            test,
            class_names=folder.class_names,
            task="classification",
            kind=self.entry.kind,
            notes=folder.notes,
            changes=(*folder.changes, *form.changes(headers)),
            warnings=tuple(warnings),
            value_range=form.value_range or ValueRange(),
            sample_rate=form.sample_rate,
        )


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
        splits: The files of each split.
        notes: Notes for the user.
        changes: The files that are left out.
    """

    root: Path
    class_names: tuple[str, ...]
    splits: FolderSplits[ClassFiles]
    notes: tuple[str, ...]
    changes: tuple[Change, ...]

    @property
    def files(self) -> list[str]:
        """The files of all splits."""
        return [file for split in self.splits.each if split for file in split.files]


@dataclass(slots=True)
class _Reader:
    """Reads folders with a folder per class; the first that is read tells the classes."""

    suffixes: tuple[str, ...]
    noun: str
    ignored: Iterable[str]
    class_names: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    found: dict[Path, FoundFiles] = field(default_factory=dict)

    def read(self, root: Path) -> ClassFiles:
        """The files below a folder with a folder per class."""
        every = subfolders(root)
        folders = [path for path in every if path.name.lower() not in self.ignored]
        self.notes.extend(f"{path} is ignored: it is not a class" for path in every if path not in folders)
        is_first = not self.class_names
        layout = f"expected one subfolder of {self.noun} per class"
        if not folders:
            raise DataError(f"{root} has no subfolders; {layout}")
        if is_first:
            self.class_names = tuple(path.name for path in folders)
        if len(self.class_names) < 2:
            name = self.class_names[0]
            raise DataError(f"{root} has only one folder, {name}; classification needs at least two classes")
        files: list[str] = []
        labels: list[int] = []
        for folder in folders:
            if folder.name not in self.class_names:
                raise DataError(f"{root} has the class {folder.name}, which has no training {self.noun}")
            own = self._below(folder)
            if not own and is_first:
                raise DataError(f"{folder} has no {self.noun} ({', '.join(self.suffixes)}); {layout}")
            files += own
            labels += [self.class_names.index(folder.name)] * len(own)
        if not files:
            raise DataError(f"{root} has no {self.noun} ({', '.join(self.suffixes)})")
        beside = sum(path.name.lower().endswith(self.suffixes) for path in root.iterdir() if path not in every)
        if beside:
            why = f"they are in {root} itself, not in the folder of a class"
            self.changes.append(Change("left out", self.noun, beside, beside + len(files), why))
        return ClassFiles(tuple(files), np.array(labels, np.int32))

    def _below(self, folder: Path) -> list[str]:
        self.found[folder] = FoundFiles.below(folder, self.suffixes)
        return self.found[folder].files
