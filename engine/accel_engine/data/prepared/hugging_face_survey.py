"""Finds the columns and splits of a dataset that the ``datasets`` library of Hugging Face saved.

A saved dataset is a folder with Arrow files and two JSON files, or a folder with one of these per split. pyarrow reads
them; the library itself is not needed.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset_entry import DatasetEntry, parse_size
from accel_engine.data.prepared.feature_description import read_json
from accel_engine.data.prepared.padding import padding_note
from accel_engine.data.prepared.roles import Roles, choose_roles, describe_columns, kind_and_range, task_of
from accel_engine.data.prepared.split_names import choose_splits
from accel_engine.data.splits import split_counts
from accel_engine.data.structure import ArraySpec
from accel_engine.errors import DataError, PlanError
from accel_engine.image_files import FORMATS, parse_header
from accel_engine.user_paths import is_file, user_path

_IMAGES_READ = 64
"""Number of images whose headers are read to find a size."""

_NUMBERS = ("bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "float16", "float32")


class _Splits(msgspec.Struct):
    """What ``dataset_dict.json`` says."""

    splits: tuple[str, ...] = ()


class _Info(msgspec.Struct):
    """What is read of ``dataset_info.json``."""

    features: dict[str, dict[str, Any]] | None = None


class _DataFile(msgspec.Struct):
    filename: str


class _State(msgspec.Struct, rename={"data_files": "_data_files"}):
    """What is read of ``state.json``."""

    data_files: tuple[_DataFile, ...] = ()


@dataclass(frozen=True, slots=True)
class SavedLayout:
    """What is known of a saved dataset before it is read.

    Attributes:
        tables: The Arrow tables of the splits ``train``, ``validation`` and ``test``, mapped into memory.
        specs: Shape and type of each column that can be used.
        images: Names of the columns that are images.
        padded: Names of the columns of lists that are padded to one length, or cut.
        roles: Which columns are what.
        class_names: Names of the classes of the target.
        notes: Notes for the user.
    """

    tables: dict[str, Any]
    specs: dict[str, ArraySpec]
    images: tuple[str, ...]
    padded: tuple[str, ...]
    roles: Roles
    class_names: tuple[str, ...]
    notes: tuple[str, ...]


def survey(entry: DatasetEntry, options: DataOptions) -> DatasetEntry:
    """Find columns, classes and counts.

    Raises:
        DataError: pyarrow is not installed, or the dataset is damaged.
        PlanError: An option does not fit.
    """
    layout = read_layout(entry, options)
    roles, specs = layout.roles, layout.specs
    counts = {use: table.num_rows for use, table in layout.tables.items()}
    validation, test = split_counts(counts["train"], options)
    validation, test = (0 if "validation" in counts else validation), (0 if "test" in counts else test)
    kind, values = kind_and_range(roles, specs, layout.images)
    task = task_of(roles, specs, options, layout.class_names)
    single = specs[roles.inputs[0]].shape if len(roles.inputs) == 1 else None
    class_counts: tuple[int, ...] = ()
    if layout.class_names:
        labels = [column.to_numpy() for column in (table[roles.targets[0]] for table in layout.tables.values())]
        found = np.concatenate(labels)
        found = found[np.isfinite(found) & (found >= 0)].astype(np.int64)  # missing labels are NaN or -1
        class_counts = tuple(np.bincount(found, minlength=len(layout.class_names)).tolist())
    missing = {name: sum(table[name].null_count for table in layout.tables.values()) for name in specs}
    return replace(
        entry,
        shape=tuple(side or 0 for side in single) if single is not None else None,
        classes=len(layout.class_names) or None,
        examples=counts["train"] - validation - test,
        validation_examples=counts.get("validation", validation),
        test_examples=counts.get("test", test),
        value_range=values,
        notes=(*entry.notes, *layout.notes),
        kind=kind,
        task=task,
        spec=roles.spec(specs, task),
        columns=tuple(
            replace(each, missing=missing[each.name]) for each in describe_columns(roles, specs, layout.images)
        ),
        class_names=layout.class_names,
        class_counts=class_counts,
    )


def read_layout(entry: DatasetEntry, options: DataOptions) -> SavedLayout:
    """Open the tables of each split, and find what their columns are.

    Raises:
        DataError: pyarrow is not installed, or the dataset is damaged.
        PlanError: An option does not fit.
    """
    root = Path(entry.path or ".")
    folders = _split_folders(root)
    splits = choose_splits(folders, options)
    used = {use: folders[name] for use, name in splits.by_use.items()}
    if options.validation_data:
        folder = user_path(options.validation_data)
        if not is_file(folder / "state.json"):
            raise PlanError("validation_data", options.validation_data, "must be a saved dataset, as data is one")
        used["validation"] = folder
    tables = {use: _open(folder) for use, folder in used.items()}
    features = read_json(used["train"] / "dataset_info.json", _Info).features or {}
    specs: dict[str, ArraySpec] = {}
    left_out: list[str] = []
    padded: list[str] = []
    notes = list(splits.notes)
    for name, feature in features.items():
        if any(name not in table.column_names for table in tables.values()):
            raise DataError(f"{root}: not all splits have the column {name}")
        spec, remark = _spec(feature, [table[name] for table in tables.values()], options.window)
        if spec is None:
            left_out.append(f"{name} ({remark})")
        else:
            specs[name] = spec
            padded += [name] if remark else []
    if left_out:
        notes.append(f"columns left out: {', '.join(left_out)}")
    if padded:
        notes.append(padding_note({name: specs[name].shape[0] for name in padded}, options.window))
    images = tuple(name for name in specs if features[name].get("_type") == "Image")
    for name in images:
        specs[name], note = _sized(name, tables["train"][name], options)
        notes += note
    labels = [name for name in specs if features[name].get("_type") == "ClassLabel"]
    roles = choose_roles(tuple(specs), options, labels if len(labels) == 1 else None)
    target = roles.targets[0] if len(roles.targets) == 1 else ""
    names = tuple(map(str, features[target].get("names") or ())) if target in labels else ()
    return SavedLayout(tables, specs, images, tuple(padded), roles, names, tuple(notes))


def _split_folders(root: Path) -> dict[str, Path]:
    if (root / "dataset_dict.json").is_file():
        return {name: root / name for name in read_json(root / "dataset_dict.json", _Splits).splits}
    return {"train": root}


def _open(folder: Path) -> Any:
    """The table of a split, mapped into memory."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise DataError(
            f"{folder} is a saved dataset of Arrow files, which pyarrow reads: pip install 'accel-tui[parquet]'"
        ) from error
    files = [folder / each.filename for each in read_json(folder / "state.json", _State).data_files]
    if not files:
        raise DataError(f"{folder / 'state.json'} names no data files")
    tables = []
    for file in files:
        try:
            tables.append(pa.ipc.open_stream(pa.memory_map(str(file))).read_all())
        except (OSError, pa.ArrowInvalid) as error:
            raise DataError(f"cannot read {file}: {error}") from error
    return pa.concat_tables(tables)


def _spec(feature: Mapping[str, Any], columns: list[Any], window: int | None) -> tuple[ArraySpec | None, str]:
    """The spec of a column, and why it is padded or cannot be used; empty for neither.

    Lists of several lengths get the length of the window, or of the longest list.
    """
    remark = ""
    shape: list[int] = []
    if not isinstance(feature, dict):
        return None, "nested"
    kind = feature.get("_type", "")
    if kind == "Image":
        return ArraySpec((None, None, 3), "uint8"), ""
    if kind == "ClassLabel":
        return ArraySpec((), "int64"), ""
    if kind.startswith("Array") and kind.endswith("D"):
        if None in feature["shape"]:
            return None, "arrays of several sizes"
        return ArraySpec(tuple(feature["shape"]), _dtype(feature["dtype"])), ""
    chunks = [chunk for column in columns for chunk in column.chunks if len(chunk)]
    while kind in ("List", "LargeList", "Sequence") and isinstance(feature.get("feature"), dict):
        lengths = _lengths(chunks)
        if len(lengths) != 1:
            remark = "lists of several lengths"
            if shape:  # inside of lists
                return None, remark
        length = window if len(lengths) != 1 and window else max(lengths, default=0)
        if not length:
            return None, "empty lists"
        shape.append(length)
        chunks = [chunk.flatten() for chunk in chunks]
        feature = feature["feature"]
        kind = feature.get("_type", "")
    dtype = _dtype(str(feature.get("dtype", "")))
    if kind not in ("Value", "ClassLabel") or not dtype:
        return None, str(feature.get("dtype") or kind or "nested")
    return ArraySpec(tuple(shape), dtype), remark


def _dtype(name: str) -> str:
    """The type of an array of Arrow values; empty if there is none."""
    if name in ("string", "large_string"):
        return "string"
    return "float32" if name in ("float64", "double", "float") else name if name in _NUMBERS else ""


def _lengths(chunks: list[Any]) -> set[int]:
    """The different lengths of lists that are not missing."""
    import pyarrow.compute as pc

    return {value for chunk in chunks for value in pc.unique(pc.list_value_length(chunk)).to_pylist()} - {None}


def _sized(name: str, column: Any, options: DataOptions) -> tuple[ArraySpec, list[str]]:
    """The spec of a column of images of the size of the plan, or the most common one."""
    headers = [header for content in image_contents(column[:_IMAGES_READ]) if (header := parse_header(content))]
    if not headers:
        raise DataError(f"the column {name} has no {FORMATS} files")
    channels = max(header.channels for header in headers)
    if options.image_size is not None:
        return ArraySpec((*parse_size(options.image_size), channels), "uint8"), []
    sizes = Counter((header.height, header.width) for header in headers)
    (height, width), _ = sizes.most_common(1)[0]
    note = f"images have several sizes: resized to {height}x{width}, the most common one (change it with image_size)"
    return ArraySpec((height, width, channels), "uint8"), [note] if len(sizes) > 1 else []


def image_contents(column: Any) -> Iterator[bytes]:
    """Yield the bytes of each image of a column, which has these or paths; empty if there is none."""
    for value in column.to_pylist():
        content = (value or {}).get("bytes")
        if content is None and (value or {}).get("path"):
            try:
                content = Path(value["path"]).read_bytes()
            except OSError:  # it cannot be decoded then
                content = b""
        yield content or b""
