"""Describes and loads a folder with a folder of files per class."""

import os
from abc import abstractmethod
from collections import Counter
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from accel_engine.data.data_options import Progress
from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.dataset_entry import DatasetEntry, EntryColumn
from accel_engine.data.folders.class_folder import ClassFolder, scan_class_folder
from accel_engine.data.folders.files import FileArray, FileForm, FilesSeen, look_at, read_splits
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.data.source import Source
from accel_engine.data.structure import ArraySpec, Batch

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
    def folder(self) -> ClassFolder:
        """The folder's files."""
        return scan_class_folder(self.entry, self.options, self.suffixes, self.noun, self.ignored)

    def describe(self) -> DatasetEntry:
        """Complete the entry with names, counts, and what some headers tell."""
        folder = self.folder
        seen = look_at(folder.files, self.form_type.check, self.options, self.form_type.looked_at)
        form = self.form(seen)
        splits = [split for split in folder.splits if split is not None]
        labels = np.concatenate([split.labels for split in splits])
        counts = np.bincount(labels, minlength=len(folder.class_names)).tolist()
        shown = np.linspace(0, len(folder.train) - 1, min(_SAMPLES, len(folder.train))).astype(int)
        return replace(
            self.entry,
            shape=form.shape,
            classes=len(folder.class_names),
            examples=len(folder.train),
            validation_examples=len(folder.validation) if folder.validation is not None else 0,
            test_examples=len(folder.test) if folder.test is not None else 0,
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
            samples=tuple(
                self.sample(folder.train.files[row], folder.class_names[folder.train.labels[row]]) for row in shown
            ),
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
            for part in folder.splits
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
