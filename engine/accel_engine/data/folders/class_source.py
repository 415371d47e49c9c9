"""Describes and loads a folder with a folder of files per class."""

import os
from abc import abstractmethod
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change
from accel_engine.data.data_options import DataOptions, Progress
from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.dataset_entry import DatasetEntry, EntryColumn
from accel_engine.data.folders.files import FileArray, FileForm, FilesSeen, look_at, read_splits
from accel_engine.data.folders.folder_source import FolderSource, SplitFiles, subfolders
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.data.structure import ArraySpec, Batch
from accel_engine.errors import DataError

H = TypeVar("H")

_SAMPLES = 4
"""Number of examples shown before training."""


class ClassFileForm(FileForm[str, H]):
    """How the files of all classes are read."""

    @classmethod
    @abstractmethod
    def of(cls, seen: FilesSeen[str, H], options: DataOptions) -> Self:
        """The form that follows from what some files are, and from the plan.

        Raises:
            DataError: They cannot be read together.
            PlanError: An option does not fit them.
        """


class ClassFolderSource(FolderSource[str]):
    """Files in a folder per class; a subclass says which, and how they are read.

    Attributes:
        column: What an example is called.
        form_type: Checks the files, and reads them.
        ignored: Names of folders that are no classes.
        class_names: Names of the classes' folders, sorted, once they were found.
    """

    targets = "classes"
    column: ClassVar[str]
    form_type: ClassVar[type[ClassFileForm[Any]]]
    ignored: ClassVar[tuple[str, ...]] = ()
    class_names: tuple[str, ...] = ()

    def describe(self) -> DatasetEntry:
        """Complete the entry with names, counts, and what some headers tell."""
        seen, form = self._look()
        train, names = self.splits.train, self.class_names
        examples, validation, test = self.splits.counts
        labels = [_labels(split) for split in self.splits.each if split is not None]
        counts = np.bincount(np.concatenate(labels), minlength=len(names)).tolist()
        shown = np.linspace(0, len(train) - 1, min(_SAMPLES, len(train))).astype(int)
        return replace(
            self.entry,
            shape=form.shape,
            classes=len(names),
            examples=examples,
            validation_examples=validation,
            test_examples=test,
            value_range=form.value_range,
            sample_rate=form.sample_rate,
            notes=(*self.entry.notes, *self.notes, *seen.notes),
            changes=(*self.left_out, *form.changes(seen.counts, is_sampled=seen.is_sampled)),
            task="classification",
            spec=Batch(form.spec, ArraySpec((), "int32")),
            columns=(
                EntryColumn(self.column, self.column, "input", detail=form.detail or str(form.spec)),
                EntryColumn("class", "label", "target", missing=0, detail=f"{len(counts)} classes"),
            ),
            class_names=names,
            class_counts=tuple(counts),
            samples=tuple(self.sample(train.files[row], names[_labels(train)[row]]) for row in shown),
        )

    def sample(self, file: str, label: str) -> tuple[str, str]:
        """What is shown of an example and its class."""
        return os.path.relpath(file, self.root), label

    def load(self, progress: Progress) -> Dataset:
        """Read the files into memory if they fit; otherwise they are read as they are needed."""
        _, form = self._look()
        headers = Counter[Any]()
        lazy = [
            Split(FileArray(part.files, form, headers), part.labels) if part is not None else None
            for part in self.splits.each
        ]
        (train, validation, test), warnings = read_splits(lazy, self.options, progress)
        assert train is not None  # noqa: S101 (a folder has training files)
        return Dataset(
            self.entry.name,
            train,
            validation,
            test,
            class_names=self.class_names,
            task="classification",
            kind=self.entry.kind,
            notes=tuple(self.notes),
            changes=(*self.left_out, *form.changes(headers)),
            warnings=tuple(warnings),
            value_range=form.value_range or ValueRange(),
            sample_rate=form.sample_rate,
        )

    def _look(self) -> tuple[FilesSeen[str, Any], ClassFileForm[Any]]:
        """What some files are, and how all are read."""
        seen = look_at(self.splits.files, self.form_type.check, self.options, self.form_type.looked_at)
        return seen, self.form_type.of(seen, self.options)

    def has_targets(self, root: Path) -> bool:
        """Whether a folder has folders of classes."""
        return bool(subfolders(root))

    def find(self, root: Path) -> SplitFiles[str]:
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
            own = self.files_below(folder, self.suffixes)
            if not own and is_first:
                raise DataError(f"{self.none_below(folder, self.noun, self.suffixes)}; {layout}")
            files += own
            labels += [self.class_names.index(folder.name)] * len(own)
        if not files:
            raise DataError(f"{root} has no {self.noun} ({', '.join(self.suffixes)})")
        beside = sum(path.name.lower().endswith(self.suffixes) and path.is_file() for path in root.iterdir())
        if beside:
            why = f"they are in {root} itself, not in the folder of a class"
            self.left_out.append(Change("left out", self.noun, beside, beside + len(files), why))
        return SplitFiles(tuple(files), np.array(labels, np.int32))


def _labels(files: SplitFiles[str]) -> npt.NDArray[np.int32]:
    assert files.labels is not None  # noqa: S101 (each file has a class)
    return files.labels
