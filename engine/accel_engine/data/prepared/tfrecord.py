"""TFRecord files whose features are described beside them, on this machine or in Google Cloud Storage."""

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from accel_engine.data.changes import Change
from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset import fits_in_memory
from accel_engine.data.prepared.columns import ColumnSource
from accel_engine.data.prepared.features import (
    NAME,
    Feature,
    FeatureDescription,
    check_description,
    how_to_describe,
    parse_description,
    parse_example,
)
from accel_engine.data.prepared.prepared_source import LOOKED_AT, Layout, PreparedSource, size_images
from accel_engine.data.prepared.records import Records, first_records, is_packed, open_records, unpacked_file
from accel_engine.data.roles import Roles, check_named_columns, choose_roles
from accel_engine.data.source import DatasetEntry
from accel_engine.data.splits import choose_splits
from accel_engine.data.structure import ArraySpec
from accel_engine.errors import DataError, PlanError, file_errors
from accel_engine.user_paths import is_directory, user_path
from accel_engine.words import numbers

_BEGINNINGS = {"val": "validation", "test": "test"}
"""How the names of files begin that are of a split; all others are for training."""

_COUNTED = 200_000
"""Records that are counted, at most, before they are read."""


class TFRecord(PreparedSource):
    """A file, or a folder of files whose names begin with their split, such as ``train-00000-of-00010.tfrecord``."""

    loads_with_tensorflow = True

    @cached_property
    def files(self) -> dict[str, list[str]]:
        """The files of each split."""
        own, given = self._own_files[0], self.options.validation_data
        return {**own, "validation": self._find(self._validation_root())["train"]} if given else own

    @property
    def own_splits(self) -> Container[str]:
        """The splits of the data itself."""
        return self._own_files[0]

    @cached_property
    def _own_files(self) -> tuple[dict[str, list[str]], tuple[str, ...]]:
        """The files of each split of the data itself, and notes."""
        return choose_splits(self._find(self._root), self.options)

    @cached_property
    def description(self) -> FeatureDescription:
        """The description beside a file, or in its folder, compared with the first record."""
        file = self.files["train"][0]
        folder, slash, name = file.rpartition("/")
        places = [f"{folder}{slash}{NAME}"]
        if folder != self._root:
            places.insert(0, f"{folder}{slash}{name.partition('.')[0]}.{NAME}")
        records = self._first_records(1)
        for place in places:
            if (content := self._read(place)) is not None:
                try:
                    description = parse_description(content.decode(), place)
                except UnicodeDecodeError as error:
                    raise DataError(f"cannot read {place}: {error}") from error
                check_description(description, records[0], file, place)
                return description
        raise DataError(how_to_describe(self._root, places[-1], records[0]))

    @cached_property
    def layout(self) -> Layout:
        """The layout by the description and the first records."""
        features = self.description.features
        check_named_columns(self.options, features, "feature")
        weight = self.description.weight or None
        roles = choose_roles(tuple(features), self.options, self.description.target, weight=weight)
        specs, changes = feature_specs(features, self._first_records(LOOKED_AT), None, self.options, roles)
        lists = {name: features[name].shape for name in roles.names if features[name].pad is not None}
        padded = [f"{name} to {list(shape)}" for name, shape in lists.items()]
        if padded:
            changes += (Change("padded", "lists of other lengths", detail=f"{', '.join(padded)}; longer ones are cut"),)
        images = tuple(name for name, each in features.items() if each.encoding == "image")
        return Layout(specs, roles, images, self.description.class_names, self._own_files[1], changes)

    def count(self) -> Mapping[str, int | None]:
        """Number of records of each split; ``None`` if there are many, or if they are packed."""
        return {use: _count(list(map(Path, files))) for use, files in self.files.items()}

    def open(self) -> Mapping[str, ColumnSource]:
        """The records of each split."""
        records = {use: self._open(files) for use, files in self.files.items()}
        return feature_columns(records, self.description.features, self.layout.specs)

    @property
    def _root(self) -> str:
        return str(self.entry.path)

    def _validation_root(self) -> str:
        return str(user_path(self.options.validation_data))

    def _find(self, root: str) -> dict[str, list[str]]:
        """The files of each split, by its name: of a file, only itself, for training.

        Raises:
            DataError: The folder cannot be read, or has no training records.
        """
        if not self._is_folder(root):
            return {"train": [root]}
        splits: dict[str, list[str]] = {"train": []}
        for name in sorted(self._names(root)):
            if ".tfrecord" in name and not name.startswith("."):
                use = next((use for start, use in _BEGINNINGS.items() if name.lower().startswith(start)), "train")
                splits.setdefault(use, []).append(f"{root}/{name}")
        if not splits["train"]:
            raise DataError(f"{root} has no training records; names of files with these begin with train")
        return splits

    def _is_folder(self, root: str) -> bool:
        return is_directory(Path(root))

    def _names(self, root: str) -> list[str]:
        with file_errors(f"cannot read the folder {root}", DataError):
            return [path.name for path in Path(root).iterdir()]

    def _read(self, file: str) -> bytes | None:
        """The content of a file; ``None`` if there is none."""
        try:
            return Path(file).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DataError(f"cannot read {file}: {error.strerror or error}") from error

    def _first_records(self, count: int) -> list[bytes]:
        for file in self.files["train"]:  # the first ones may be empty
            if records := first_records(Path(file), count):
                return records
        raise DataError(f"{', '.join(self.files['train'])} is empty")

    def _open(self, files: list[str]) -> Records:
        return open_records(list(map(Path, files)))


class RemoteTFRecord(TFRecord):
    """The same at an address that TensorFlow's file systems read; all of it is read into memory.

    This was tested with another file system of TensorFlow, not with Google Cloud Storage itself.
    """

    def describe(self) -> DatasetEntry:
        """Nothing is read before TensorFlow starts."""
        return self.entry

    @cached_property
    def _gfile(self) -> Any:
        tensorflow = import_module("tensorflow")
        scheme = self._root.partition("://")[0]
        if scheme not in tensorflow.io.gfile.get_registered_schemes():
            raise DataError(f"this build of TensorFlow does not read {scheme}://: copy the files to this machine")
        return tensorflow.io.gfile

    @property
    def _root(self) -> str:
        return self.entry.url.rstrip("/")

    def _validation_root(self) -> str:
        given, scheme = self.options.validation_data, self._root.partition("://")[0]
        if not given.startswith(f"{scheme}://"):
            raise PlanError("validation_data", given, f"must be in {scheme}:// too, as the data is")
        return given.rstrip("/")

    def _is_folder(self, root: str) -> bool:
        gfile = self._gfile
        with self._explained():
            if gfile.isdir(root):
                return True
            gfile.stat(root)  # raises if there is no such path
            return False

    def _names(self, root: str) -> list[str]:
        with self._explained():
            return [name.rstrip("/") for name in self._gfile.listdir(root)]

    def _read(self, file: str) -> bytes | None:
        with self._explained():
            if not self._gfile.exists(file):
                return None
            with self._gfile.GFile(file, "rb") as opened:
                return opened.read()

    def _first_records(self, count: int) -> list[bytes]:
        records = self._opened["train"]
        return [each for each in records.get(np.arange(min(count, len(records)))) if each is not None]

    @cached_property
    def _opened(self) -> dict[str, Records]:
        with self._explained():
            size = sum(self._gfile.stat(file).length for files in self.files.values() for file in files)
        if not fits_in_memory(size):
            raise DataError(
                f"{self._root} has {numbers.size(size)}, too much for this machine's memory: copy the files to this "
                "machine, where each record is read when it is needed"
            )
        return {use: Records(files, list(map(self._content, files))) for use, files in self.files.items()}

    def _content(self, file: str) -> Any:
        return unpacked_file(file, np.frombuffer(self._read(file) or b"", np.uint8))

    def open(self) -> Mapping[str, ColumnSource]:
        """The records of each split."""
        return feature_columns(self._opened, self.description.features, self.layout.specs)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Convert TensorFlow's errors about files."""
        errors, op_message = import_module("tensorflow").errors, _decoding().op_message
        try:
            yield
        except errors.NotFoundError as error:
            raise DataError(f"there is no {self._root}, or you may not read it") from error
        except errors.OpError as error:
            message = f"cannot read {self._root}: {op_message(error)}"
            denied = ("PermissionDenied", "Unauthenticated", "FailedPrecondition", "Aborted", "Unavailable")
            if isinstance(error, tuple(getattr(errors, f"{name}Error") for name in denied)):
                message += (
                    ". For Google Cloud Storage, log in with gcloud auth application-default login, or set "
                    "GOOGLE_APPLICATION_CREDENTIALS"
                )
            raise DataError(message) from error


def feature_specs(
    features: Mapping[str, Feature], records: Sequence[bytes], total: int | None, options: DataOptions, roles: Roles
) -> tuple[dict[str, ArraySpec], tuple[Change, ...]]:
    """Shape and type of features after decoding, and what that changes in images.

    Args:
        features: The features.
        records: The first records.
        total: Number of all records; ``None`` if unknown.
        options: The plan's size of images.
        roles: Which features are used.

    Raises:
        DataError: The size of images is unknown.
        PlanError: The plan's size of images is invalid.
    """
    specs, changes = {}, list[Change]()
    for name, feature in features.items():
        specs[name] = ArraySpec(feature.shape, feature.dtype)
        if feature.encoding == "image":
            found = [
                values[0] for record in records if (values := (parse_example(record) or {}).get(name, ("", []))[1])
            ]
            sides = [side if side > 0 else None for side in feature.shape or (-1, -1, -1)]
            specs[name], own = size_images(name, found, sides, total, options, feature.dtype)
            changes += own if name in roles.names else ()
    return specs, tuple(changes)


def feature_columns(
    records: Mapping[str, Records], features: Mapping[str, Feature], specs: Mapping[str, ArraySpec]
) -> Mapping[str, ColumnSource]:
    """The features of the records of each split."""
    return {use: _decoding().RecordColumns(each, features, dict(specs)) for use, each in records.items()}


def _decoding() -> Any:
    return import_module("accel_engine.data.prepared.record_columns")


def _count(paths: list[Path]) -> int | None:
    if any(map(is_packed, paths)):
        return None
    records = open_records(paths, _COUNTED)
    return len(records) if records.complete else None
