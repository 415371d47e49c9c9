"""A folder of files, split as the folder or the plan says."""

import os
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change
from accel_engine.data.data_options import SPLIT_NAMES, DataOptions, Progress
from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.folders.files import FileArray, FileForm, FilesSeen, read_splits
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.data.source import DatasetEntry, Source
from accel_engine.data.splits import has_other_validation, of_own_splits, split_rows, validate_on_test, without_shares
from accel_engine.errors import DataError, PlanError, file_errors
from accel_engine.user_paths import is_directory, user_path

_NAMED = 5
"""Number of folders, and of suffixes in each, that are named."""

_OF_SYSTEMS = ("Thumbs.db", "desktop.ini", "__MACOSX")
"""Files and folders that file managers write beside a user's files."""


F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class SplitFiles(Generic[F]):
    """The files of a split."""

    files: tuple[F, ...]
    """The files of each example."""
    labels: npt.NDArray[np.int32] | None = None
    """Class index of each, int32; ``None`` if they have none."""
    file_of: npt.NDArray[np.intp] | None = None
    """The number of the file that each is a window of; ``None`` if files are not divided."""

    def select(self, rows: npt.NDArray[np.intp]) -> Self:
        """The files at ``rows``."""
        labels = None if self.labels is None else self.labels[rows]
        return replace(self, files=tuple(self.files[row] for row in rows), labels=labels)

    def __len__(self) -> int:
        return len(self.files)


class FolderSource(Source, Generic[F]):
    """A folder of files, split into subfolders or by the plan.

    A folder with subfolders ``train`` and ``val`` or ``test`` is split as it says. If it has no validation split, one
    is taken from the training files; but a test split is used for validation if the plan does not ask for another.

    Attributes:
        root: The folder.
        notes: Notes on what was found.
        left_out: What was left out.
    """

    task: ClassVar[str]
    """The task."""
    noun: ClassVar[str]
    """The name of the examples, in the plural."""
    targets: ClassVar[str]
    """The name of the targets, in the plural."""
    suffixes: ClassVar[tuple[str, ...]]
    """Suffixes of their files, in lower case."""

    def __init__(self, entry: DatasetEntry, options: DataOptions) -> None:
        super().__init__(entry, options)
        self.root = Path(entry.path or ".")
        self.notes: list[str] = []
        self.left_out: list[Change] = []
        self._found: dict[Path, FoundFiles] = {}

    @abstractmethod
    def find(self, root: Path) -> SplitFiles[F]:
        """Find the files of a folder that is not split; called for the folder of the training files first.

        Raises:
            DataError: The folder has no examples, or cannot be read.
        """

    @abstractmethod
    def has_targets(self, root: Path) -> bool:
        """Whether the examples of a folder have what is to be predicted; some test folders have not."""

    @cached_property
    @abstractmethod
    def looks(self) -> Sequence[tuple[FilesSeen[Any, Any], FileForm[Any, Any]]]:
        """The headers of some files of the inputs, and the form in which all are read; then of targets that are files.

        Raises:
            DataError: The files differ too much to be read together.
            PlanError: An option does not fit them.
        """

    @abstractmethod
    def files_of(self, examples: SplitFiles[F]) -> Sequence[Sequence[Any]]:
        """The files of the inputs of some examples; then of targets that are files."""

    @abstractmethod
    def finish(self, splits: Mapping[str, Split], progress: Progress) -> tuple[str, ...]:
        """Complete what was read of the targets.

        Returns:
            The names of the classes.
        """

    def describe(self) -> DatasetEntry:
        """Complete the entry with counts, and what some headers tell."""
        inputs = self.looks[0][1]
        counts = [len(self.examples.get(use, ())) for use in SPLIT_NAMES]
        changes = (
            change for seen, form in self.looks for change in form.changes(seen.counts, is_sampled=seen.is_sampled)
        )
        return replace(
            self.entry,
            shape=inputs.shape,
            examples=counts[0],
            validation_examples=counts[1],
            test_examples=counts[2],
            value_range=inputs.value_range,
            sample_rate=inputs.sample_rate,
            notes=(*self.entry.notes, *self.notes, *(note for seen, _ in self.looks for note in seen.notes)),
            changes=(*self.left_out, *changes),
            task=self.task,
        )

    def load(self, progress: Progress) -> Dataset:
        """Read the files into memory if they fit; otherwise they are read when they are needed."""
        forms = [form for _, form in self.looks]
        headers = [Counter[Any]() for _ in forms]
        lazy: dict[str, Split] = {}
        for use, examples in self.examples.items():
            files = zip(self.files_of(examples), forms, headers, strict=True)
            inputs, *targets = (FileArray(each, form, seen) for each, form, seen in files)
            lazy[use] = Split(inputs, targets[0] if targets else examples.labels, file_of=examples.file_of)
        splits, warnings = read_splits(lazy, self.options, progress)
        class_names = self.finish(splits, progress)
        changes = (change for form, seen in zip(forms, headers, strict=True) for change in form.changes(seen))
        return Dataset(
            self.entry.name,
            splits["train"],
            splits.get("validation"),
            splits.get("test"),
            class_names=class_names,
            task=self.task,
            kind=self.entry.kind,
            notes=tuple(self.notes),
            changes=(*self.left_out, *changes),
            warnings=tuple(warnings),
            value_range=forms[0].value_range or ValueRange(),
            sample_rate=forms[0].sample_rate,
        )

    @cached_property
    def examples(self) -> Mapping[str, SplitFiles[F]]:
        """The examples of each split: a file each, unless files are divided."""
        return self.splits

    @cached_property
    def splits(self) -> dict[str, SplitFiles[F]]:
        """The files of ``train``, and of the other splits that there are.

        Raises:
            DataError: The folder cannot be read.
            PlanError: The split does not fit the folder.
        """
        splits = dict(self._own_splits)
        if self.options.validation_data:
            splits["validation"] = self.find(_validation_folder(self.options))
        self.left_out += _with_other_suffixes(self._found)
        return splits

    @property
    def form_files(self) -> list[F]:
        """The files that tell how all are read: not those in the place of a trained model's validation files."""
        splits = self._own_splits if self.options.keeps_split else self.splits
        return [file for split in splits.values() for file in split.files]

    @cached_property
    def _own_splits(self) -> dict[str, SplitFiles[F]]:
        """The splits of the folder itself."""
        children = {path.name.lower(): path for path in subfolders(self.root)}
        roots = {
            use: next((children[name] for name in names if name in children), None)
            for use, names in SPLIT_NAMES.items()
        }
        train = self.find(roots["train"] or self.root)
        splits = {"train": train}
        for use in ("validation", "test"):
            if roots["train"] and (root := roots[use]) and (held_out := self._find_held_out(root)):
                splits[use] = held_out
        self.notes += validate_on_test(splits, self.options, str(roots["test"]))
        shares = without_shares(of_own_splits(self.options, splits), validation=False, test="test" in splits)
        has_validation = "validation" in splits or has_other_validation(self.options)
        if self.options.split == "ordered" and not (has_validation and "test" in splits):
            reason = f"would keep whole classes from training: {self.noun} are ordered by class"
            raise PlanError("split", self.options.split, reason)
        for use, rows in split_rows(len(train), shares, train.labels)._asdict().items():
            if use == "train":
                splits["train"] = train.select(rows)
            elif len(rows):
                splits.setdefault(use, train.select(rows))
            if len(rows) if use == "test" else use == "validation" and not has_validation:
                self.notes.append(f"{use} split: {len(rows)} of {len(train)} {self.noun}")
        return splits

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
    with file_errors(f"cannot read the folder {root}", DataError), os.scandir(root) as found:
        shown = (each for each in found if each.is_dir() and not each.name.startswith((".", *_OF_SYSTEMS)))
        return sorted(Path(each.path) for each in shown)


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """The files in a folder and its subfolders, but for hidden ones."""

    files: list[str]
    """The files with the suffixes that were looked for, sorted."""
    others: Counter[str]
    """How many others have each suffix."""

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


def _validation_folder(options: DataOptions) -> Path:
    folder = user_path(options.validation_data)
    if not is_directory(folder):
        raise PlanError("validation_data", options.validation_data, "must be a folder, as data is one")
    return folder
