"""Describes and loads a folder with a folder of files per class."""

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change
from accel_engine.data.data_options import DataOptions, Progress
from accel_engine.data.dataset import Split, spread_rows
from accel_engine.data.folders.files import FileForm, FilesSeen, look_at
from accel_engine.data.folders.folder_source import FolderSource, SplitFiles, subfolders
from accel_engine.data.source import DatasetEntry, EntryColumn
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
            DataError: The files differ too much to be read together.
            PlanError: An option does not fit them.
        """


class ClassFolderSource(FolderSource[str]):
    """Files in a folder per class; a subclass says which, and how they are read."""

    task = "classification"
    targets = "classes"
    column: ClassVar[str]
    """The name of an example's column."""
    form_type: ClassVar[type[ClassFileForm[Any]]]
    """Checks the files, and reads them."""
    ignored: ClassVar[tuple[str, ...]] = ()
    """Names of folders that are not classes."""
    class_names: tuple[str, ...] = ()
    """Names of the classes' folders, sorted, once they were found."""

    @cached_property
    def looks(self) -> Sequence[tuple[FilesSeen[str, Any], ClassFileForm[Any]]]:
        """The headers of some files, and the form in which all are read."""
        files = [file for split in self.splits.values() for file in split.files]
        check, limit = self.form_type.check, self.form_type.looked_at
        seen = look_at(files, check, self.options, limit)
        decisive = look_at(self.form_files, check, self.options, limit) if self.options.keeps_split else seen
        return [(seen, self.form_type.of(decisive, self.options))]

    def files_of(self, examples: SplitFiles[str]) -> Sequence[Sequence[str]]:
        """The files of some examples."""
        return [examples.files]

    def finish(self, splits: Mapping[str, Split], progress: Progress) -> tuple[str, ...]:
        """The names of the classes, which the folders have."""
        return self.class_names

    def describe(self) -> DatasetEntry:
        """Complete the entry with names, counts, and what some headers tell."""
        form = self.looks[0][1]
        train, names = self.examples["train"], self.class_names
        labels = [_labels(split) for split in self.examples.values()]
        counts = np.bincount(np.concatenate(labels), minlength=len(names)).tolist()
        own = _labels(train)
        return replace(
            super().describe(),
            classes=len(names),
            spec=Batch(form.spec, ArraySpec((), "int32")),
            columns=(
                EntryColumn(self.column, self.column, "input", detail=form.detail or str(form.spec)),
                EntryColumn("class", "label", "target", missing=0, detail=f"{len(counts)} classes"),
            ),
            class_names=names,
            class_counts=tuple(counts),
            samples=tuple(self.sample(train.files[row], names[own[row]]) for row in spread_rows(len(train), _SAMPLES)),
        )

    def sample(self, file: str, label: str) -> tuple[str, str]:
        """The texts that show an example and its class."""
        return os.path.relpath(file, self.root), label

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
            name, inner = self.class_names[0], subfolders(folders[0])
            hint = f": is {folders[0]} meant, which has {len(inner)}?" if len(inner) > 1 else ""
            raise DataError(f"{root} has only one folder, {name}; classification needs at least two classes{hint}")
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
