"""Finds the features and splits of a directory that TensorFlow Datasets prepared, from its JSON files.

The records are TFRecord files of ``tf.train.Example``, so that neither the package nor its builder is needed.
"""

import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset_entry import DatasetEntry, parse_size
from accel_engine.data.prepared.example_features import parse_example
from accel_engine.data.prepared.feature_description import Feature, FeatureDescription, read_json
from accel_engine.data.prepared.padding import pad_of, padding_note
from accel_engine.data.prepared.record_layout import RecordLayout, survey_of_records
from accel_engine.data.prepared.records import RecordFiles
from accel_engine.data.prepared.roles import choose_roles
from accel_engine.data.prepared.split_names import choose_splits
from accel_engine.errors import DataError
from accel_engine.image_files import FORMATS, parse_header

_HEADERS_READ = 64
"""Number of records whose images' headers are read to find a size."""


def survey(entry: DatasetEntry, options: DataOptions) -> DatasetEntry:
    """Read features, classes and counts.

    Raises:
        DataError: A file is damaged, or the features cannot be read.
        PlanError: An option does not fit.
    """
    layout = read_layout(entry, options)
    return survey_of_records(entry, layout, options)


def read_layout(entry: DatasetEntry, options: DataOptions) -> RecordLayout:
    """Find the files of each split, and what their features are.

    Raises:
        DataError: A file is damaged, or the features cannot be read.
        PlanError: An option does not fit.
    """
    root = Path(entry.path or ".")
    info, features = (read_json(root / name, dict[str, Any]) for name in ("dataset_info.json", "features.json"))
    if (stored := info.get("fileFormat", "tfrecord")) != "tfrecord":
        raise DataError(f"{root} is stored as {stored}; prepare it with file_format='tfrecord'")
    try:
        found = dict(_features(features, (), options.window))
        counts = {each["name"]: sum(map(int, each.get("shardLengths", ()))) for each in info["splits"]}
        keys = _supervised_keys(info)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"{root} has a features.json or dataset_info.json that cannot be understood: {error}"
        ) from error
    splits = choose_splits({name: count for name, count in counts.items() if count}, options)
    paths = {use: _files(root, name) for use, name in splits.by_use.items()}
    usable = {name: each.feature for name, each in found.items() if each.feature is not None}
    left_out = [f"{name} ({each.kind})" for name, each in found.items() if each.feature is None]
    notes = [*splits.notes, *([f"features left out: {', '.join(left_out)}"] if left_out else [])]
    if padded := {name: feature.shape[0] for name, feature in usable.items() if feature.pad is not None}:
        notes.append(padding_note(padded, options.window))
    if not usable:
        raise DataError(f"none of the features of {root} can be read: {', '.join(left_out)}")
    labels = [name for name, each in found.items() if each.is_label]
    inputs, targets = keys or ((), labels if len(labels) == 1 else None)
    roles = choose_roles(tuple(usable), options, targets, inputs=inputs)
    usable, sizes = _sized(usable, paths["train"][0], options)
    target = roles.targets[0] if len(roles.targets) == 1 else ""
    class_names = _class_names(root, target) if target in labels else ()
    return RecordLayout(
        paths,
        FeatureDescription(usable, class_names=class_names),
        roles,
        (*notes, *sizes),
        {use: counts[name] for use, name in splits.by_use.items()},
        str(info.get("name", "")),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """A feature of TensorFlow Datasets; ``feature`` is ``None`` if it cannot be read."""

    kind: str
    feature: Feature | None

    @property
    def is_label(self) -> bool:
        return self.kind == "ClassLabel"


def _features(values: dict[str, Any], path: tuple[str, ...], window: int | None) -> list[tuple[str, _Found]]:
    """All features with their paths, those of nested dictionaries joined by slashes as in the records."""
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


def _sized(features: dict[str, Feature], records: Path, options: DataOptions) -> tuple[dict[str, Feature], list[str]]:
    """Features with images of a size that is known: that of the plan, their own, or the most common one."""
    sized, notes = dict(features), []
    for name, feature in features.items():
        if feature.encoding != "image":
            continue
        shape = feature.shape or (-1, -1, -1)
        if options.image_size is not None:
            shape = (*parse_size(options.image_size), shape[2])
        if -1 in shape:
            files = RecordFiles([records], _HEADERS_READ)
            examples = [parse_example(content) or {} for content in files.get(np.arange(len(files)))]
            headers = [
                header for each in examples if name in each and (header := parse_header(each[name][1][0])) is not None
            ]
            if not headers:
                raise DataError(f"{records} has no {FORMATS} files as {name}")
            (height, width), _ = Counter((header.height, header.width) for header in headers).most_common(1)[0]
            channels = max(header.channels for header in headers)
            shape = tuple(
                given if given > 0 else known for given, known in zip(shape, (height, width, channels), strict=True)
            )
            notes.append(
                f"images have several sizes: resized to {shape[0]}x{shape[1]}, the most common one "
                "(change it with image_size)"
            )
        sized[name] = replace(feature, shape=(*shape[:2], min(shape[2], 3)))
    return sized, notes


def _files(root: Path, split: str) -> list[Path]:
    # {DATASET}-{SPLIT}.tfrecord-{SHARD_X_OF_Y} unless the dataset has a template of its own.
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
