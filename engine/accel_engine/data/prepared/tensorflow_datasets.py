"""A directory that TensorFlow Datasets prepared.

Its records are TFRecord files of ``tf.train.Example``, described by JSON files, so that neither the library nor its
builder is needed.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from accel_engine.data.prepared.columns import ColumnSource, pad_of
from accel_engine.data.prepared.features import Feature, read_json
from accel_engine.data.prepared.prepared_source import LOOKED_AT, Layout, PreparedSource, padding
from accel_engine.data.prepared.records import first_records, open_records
from accel_engine.data.prepared.tfrecord import feature_columns, feature_specs
from accel_engine.data.roles import check_named_columns, choose_roles
from accel_engine.data.splits import choose_splits
from accel_engine.errors import DataError


@dataclass(frozen=True, slots=True)
class _Found:
    """A feature of TensorFlow Datasets; ``feature`` is ``None`` if it cannot be read."""

    kind: str
    feature: Feature | None


class TensorFlowDatasets(PreparedSource):
    """The directory of a version, with ``dataset_info.json`` and ``features.json``."""

    takes_window = loads_with_tensorflow = True
    takes_validation_data = False

    @cached_property
    def layout(self) -> Layout:
        """The layout by the JSON files and the first records."""
        found = self._features
        usable = {name: each.feature for name, each in found.items() if each.feature is not None}
        left_out = [f"{name} ({each.kind})" for name, each in found.items() if each.feature is None]
        if not usable:
            raise DataError(f"none of the features of {self.path} can be read: {', '.join(left_out)}")
        _, notes = self._splits
        if left_out:
            notes += (f"features left out: {', '.join(left_out)}",)
        labels = [name for name, each in found.items() if each.kind == "ClassLabel"]
        with self._understood():
            inputs, targets = _supervised_keys(self._info) or ((), labels if len(labels) == 1 else None)
        check_named_columns(self.options, usable, "feature")
        roles = choose_roles(inputs or tuple(usable), self.options, targets)
        records = first_records(self._files["train"][0], LOOKED_AT)
        specs, changes = feature_specs(usable, records, self.count()["train"], self.options, roles)
        padded = {name: usable[name].shape[0] for name in roles.names if usable[name].pad is not None}
        target = roles.targets[0] if len(roles.targets) == 1 else ""
        return Layout(
            specs,
            roles,
            tuple(name for name, each in usable.items() if each.encoding == "image"),
            _class_names(self.path, target) if target in labels else (),
            notes,
            (*changes, *padding(padded, self.options.window)),
            str(self._info.get("name", "")),
        )

    def count(self) -> Mapping[str, int]:
        """Number of examples of each split, as the library noted it."""
        return {use: split.examples for use, split in self._splits[0].items()}

    def open(self) -> Mapping[str, ColumnSource]:
        """The records of each split."""
        records = {use: open_records(files) for use, files in self._files.items()}
        for use, expected in self.count().items():
            if len(records[use]) != expected:
                has = f"has {len(records[use]):,} records of {expected:,}"
                raise DataError(
                    f"the split {self._splits[0][use].name} of {self.path} {has}: files are damaged or missing"
                )
        usable = {name: each.feature for name, each in self._features.items() if each.feature is not None}
        return feature_columns(records, usable, self.layout.specs)

    @cached_property
    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = read_json(self.path / "dataset_info.json", dict[str, Any])
        if (stored := info.get("fileFormat", "tfrecord")) != "tfrecord":
            raise DataError(f"{self.path} is stored as {stored}; prepare it with file_format='tfrecord'")
        return info

    @cached_property
    def _features(self) -> dict[str, _Found]:
        features = read_json(self.path / "features.json", dict[str, Any])
        with self._understood():
            return dict(_features(features, (), self.options.window))

    @cached_property
    def _splits(self) -> tuple[dict[str, "_Split"], tuple[str, ...]]:
        with self._understood():
            splits = [
                _Split(each["name"], sum(map(int, each.get("shardLengths", ())))) for each in self._info["splits"]
            ]
        return choose_splits({each.name: each for each in splits if each.examples}, self.options)

    @cached_property
    def _files(self) -> dict[str, list[Path]]:
        return {use: _files(self.path, split.name) for use, split in self._splits[0].items()}

    @contextmanager
    def _understood(self) -> Iterator[None]:
        """Convert errors about what JSON files have."""
        try:
            yield
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            name = "features.json or dataset_info.json"
            raise DataError(f"{self.path} has a {name} that cannot be understood: {error}") from error


class _Split(NamedTuple):
    """A split, and how many examples it has."""

    name: str
    examples: int


def _features(values: dict[str, Any], path: tuple[str, ...], window: int | None) -> list[tuple[str, _Found]]:
    """All features with their paths, which slashes join for nested dictionaries, as in the records."""
    if "featuresDict" in values:
        nested = values["featuresDict"]["features"]
        return [found for name, each in nested.items() for found in _features(each, (*path, name), window)]
    kind = values["pythonClassName"].rpartition(".")[2]
    feature = _feature(kind, values, window)
    # Only reading all records would tell the longest list.
    has_lists = feature is None and window is None and _feature(kind, values, 1) is not None
    return [("/".join(path), _Found(f"{kind} of several lengths: set the window" if has_lists else kind, feature))]


def _feature(kind: str, values: dict[str, Any], window: int | None) -> Feature | None:
    if kind == "Image":
        shape = _shape(values["image"].get("shape", {}))
        return Feature("uint8", shape, "image") if values["image"].get("dtype", "uint8") == "uint8" else None
    if kind == "ClassLabel":
        return Feature("int64", ())
    if kind == "Text":
        return Feature("string", ())
    if kind == "BBoxFeature":
        return Feature("float32", (4,))
    if kind in ("Tensor", "Scalar") and "tensor" in values:
        tensor = values["tensor"]
        shape, encoding = _shape(tensor.get("shape", {})), tensor.get("encoding", "none")
        if encoding not in ("none", "bytes") or (-1 in shape and encoding == "bytes"):
            return None
        if shape[:1] == (-1,):
            return _list_of(Feature(tensor["dtype"], shape[1:]), -1, window)
        return (
            Feature(tensor["dtype"], shape, "raw" if encoding == "bytes" and shape else "") if -1 not in shape else None
        )
    if kind == "Sequence":
        inner = values["sequence"].get("feature", {})
        part = _feature(inner.get("pythonClassName", "").rpartition(".")[2], inner, None)
        return _list_of(part, int(values["sequence"].get("length", -1)), window)
    return None


def _list_of(item: Feature | None, length: int, window: int | None) -> Feature | None:
    """A list of features; one of several lengths, which is -1, is padded to the window."""
    if item is None or item.encoding or item.pad is not None or -1 in item.shape:
        return None
    if length > 0:
        return replace(item, shape=(length, *item.shape))
    return None if window is None else replace(item, shape=(window, *item.shape), pad=pad_of(item.dtype))


def _shape(values: dict[str, Any]) -> tuple[int, ...]:
    return tuple(map(int, values.get("dimensions", ())))


def _supervised_keys(info: dict[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Names of the inputs and of the targets, if the dataset says which."""
    keys = info.get("supervisedKeys")
    if not keys:
        return None
    items = keys["tuple"]["items"] if "tuple" in keys else [{"featureKey": keys[part]} for part in ("input", "output")]
    inputs, targets = (tuple(_keys(item)) for item in items[:2])
    return inputs, targets


def _keys(item: dict[str, Any]) -> list[str]:
    if "featureKey" in item:
        return [item["featureKey"]]
    parts = item["tuple"]["items"] if "tuple" in item else item["dict"]["dict"].values()
    return [key for part in parts for key in _keys(part)]


def _files(root: Path, split: str) -> list[Path]:
    # {DATASET}-{SPLIT}.tfrecord-{SHARD_X_OF_Y} unless the dataset has its own template.
    pattern = re.compile(rf"(^|[-_.]){re.escape(split)}([-_.]|$)")
    files = sorted(path for path in root.iterdir() if ".tfrecord" in path.name and pattern.search(path.name))
    if not files:
        raise DataError(f"{root} has no records of the split {split}")
    return files


def _class_names(root: Path, label: str) -> tuple[str, ...]:
    path = root / f"{label.replace('/', '-')}.labels.txt"
    try:
        return tuple(path.read_text().splitlines()) if path.is_file() else ()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}") from error
