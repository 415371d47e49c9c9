"""A dataset that the ``datasets`` library of Hugging Face saved with ``save_to_disk``.

It is a folder with Arrow files and two JSON files, or a folder with one of these per split. A dataset that was
downloaded from the hub is a folder with Parquet files. pyarrow reads both; the library itself is not needed.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from accel_engine.arrow import import_pyarrow
from accel_engine.data.dataset import spread_rows
from accel_engine.data.folders.image_folder import ImageDecoder
from accel_engine.data.prepared.columns import ColumnSource, Rows, fixed, not_finite, numpy_type, pad
from accel_engine.data.prepared.features import read_json
from accel_engine.data.prepared.prepared_source import LOOKED_AT, Layout, PreparedSource, padding, size_images
from accel_engine.data.roles import check_named_columns, choose_roles
from accel_engine.data.source import DatasetEntry
from accel_engine.data.splits import choose_splits
from accel_engine.data.standardization import precision_warnings
from accel_engine.data.structure import ArraySpec
from accel_engine.errors import DataError, PlanError
from accel_engine.files import regular
from accel_engine.json_values import decode
from accel_engine.memory import check_fits_memory
from accel_engine.user_paths import is_file, user_path

_NUMBERS = ("bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "float16", "float32")


_COMPARED = 1_000_000
"""Numbers of some examples that tell whether float32 keeps the digits of columns."""


class _Splits(msgspec.Struct):
    """The contents of ``dataset_dict.json``."""

    splits: tuple[str, ...] = ()


class _Info(msgspec.Struct, frozen=True):
    """The part of ``dataset_info.json`` that is read."""

    features: dict[str, Any] | None = None


class _HubInfo(msgspec.Struct):
    """The metadata of Parquet files of the hub."""

    info: _Info = _Info()


class _DataFile(msgspec.Struct):
    filename: str


class _State(msgspec.Struct, rename={"data_files": "_data_files"}):
    """The part of ``state.json`` that is read."""

    data_files: tuple[_DataFile, ...] = ()


class HuggingFace(PreparedSource):
    """A saved dataset. Its Arrow files are mapped into memory, and columns that do not fit there are read as needed."""

    takes_window = True

    @cached_property
    def layout(self) -> Layout:
        """The layout by the JSON files, the lengths of lists and the first images."""
        tables, options, features = self._tables, self.options, self._features
        specs: dict[str, ArraySpec] = {}
        left_out: list[str] = []
        for name, feature in features.items():
            if any(name not in table.column_names for table in tables.values()):
                raise DataError(f"{self.path}: not all splits have the column {name}")
            spec, remark = _spec(feature, [table[name] for table in tables.values()], options.window)
            if spec is not None and options.keeps_split:  # other data is read as the run's own
                spec, without = _spec(feature, [table[name] for table in self._own_tables], options.window)
                remark = remark if spec else without
            if spec is None:
                left_out.append(f"{name} ({remark})")
            else:
                specs[name] = spec
                if remark:
                    self._padded.append(name)
        _, notes = self._splits
        if left_out:
            notes += (f"columns left out: {', '.join(left_out)}",)
        labels = [name for name in specs if features[name].get("_type") == "ClassLabel"]
        check_named_columns(options, specs)
        roles = choose_roles(tuple(specs), options, labels if len(labels) == 1 else None)
        padded = {name: specs[name].shape[0] for name in self._padded if name in roles.names}
        changes = padding(padded, options.window)
        images = tuple(name for name in specs if features[name].get("_type") == "Image")
        for name in images:
            column = tables["train"][name]
            contents = list(image_contents(column[:LOOKED_AT]))
            specs[name], own = size_images(name, contents, (None, None, None), len(column), options)
            changes += own if name in roles.names else ()
        target = roles.targets[0] if len(roles.targets) == 1 else ""
        names: tuple[str, ...] = ()
        if target in labels:
            names = tuple(map(str, features[target].get("names") or ()))
            notes += tuple(self._leave_out_unlabelled(target))
        return Layout(specs, roles, images, names, notes, changes)

    def count(self) -> Mapping[str, int]:
        """Number of examples of each split."""
        return {use: table.num_rows for use, table in self._tables.items()}

    def open(self) -> Mapping[str, ColumnSource]:
        """The columns of each split."""
        layout = self.layout
        return {use: _ArrowColumns(table, use, layout, self._padded) for use, table in self._tables.items()}

    def describe(self) -> DatasetEntry:
        """Find columns, classes and counts, also of classes and of missing values."""
        described, layout, tables = super().describe(), self.layout, self._tables.values()
        class_counts: tuple[int, ...] = ()
        if layout.class_names:
            labels = np.concatenate([table[layout.roles.targets[0]].to_numpy() for table in tables])
            labels = labels[np.isfinite(labels) & (labels >= 0)].astype(np.int64)  # missing labels are NaN or -1
            class_counts = tuple(np.bincount(labels, minlength=len(layout.class_names)).tolist())
        missing = {name: sum(table[name].null_count for table in tables) for name in layout.specs}
        columns = tuple(replace(each, missing=missing[each.name]) for each in described.columns)
        return replace(described, columns=columns, class_counts=class_counts)

    def precision_warnings(self) -> tuple[str, ...]:
        """A warning on columns of float64, by some training examples, whose digits float32 loses."""
        table, layout = self._tables["train"], self.layout
        specs = {name: layout.specs[name] for name in layout.roles.names if name not in self._padded}
        wide = {name: spec for name, spec in specs.items() if "double" in str(table.schema.field(name).type)}
        names = [name for name, spec in wide.items() if len(spec.shape) < 2]
        width = sum(prod(fixed(specs[name])) for name in names)
        some = table.select(names).take(spread_rows(table.num_rows, _COMPARED // max(width, 1))).drop_null()
        values = {name: _to_numpy(some[name].combine_chunks()) for name in names}
        return precision_warnings((name, each.reshape(len(some), *fixed(specs[name]))) for name, each in values.items())

    def _leave_out_unlabelled(self, target: str) -> Iterator[str]:
        """Leave out splits for a competition, whose labels are all -1."""
        for use in ("validation", "test"):
            if use in self._tables and bool(np.all(self._tables[use][target].to_numpy() == -1)):
                del self._tables[use]
                yield f"the {use} split has no labels: it is not used"

    @cached_property
    def _padded(self) -> list[str]:
        """Names of the columns of lists that are padded to one length, or cut; filled by the layout."""
        return []

    @cached_property
    def _splits(self) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Where each split is, and notes."""
        found = {"train": self.path}
        if (self.path / "dataset_dict.json").is_file():
            names = read_json(self.path / "dataset_dict.json", _Splits).splits
            found = {name: self.path / name for name in names}
        return choose_splits(found, self.options)

    @property
    def own_splits(self) -> Container[str]:
        """The splits of the data itself."""
        return self._splits[0]

    def _given(self, given: str) -> Any:
        """Where the validation examples are that the plan gives."""
        folder = user_path(given)
        if not is_file(folder / "state.json"):
            raise PlanError("validation_data", given, "must be a saved dataset, as data is one")
        return folder

    @cached_property
    def _features(self) -> dict[str, Any]:
        return read_json(self._splits[0]["train"] / "dataset_info.json", _Info).features or {}

    @cached_property
    def _tables(self) -> dict[str, Any]:
        """The Arrow table of each split."""
        places, given = self._splits[0], self.options.validation_data
        return self._open_splits({**places, "validation": self._given(given)} if given else places)

    @cached_property
    def _own_tables(self) -> Sequence[Any]:
        """The tables of the data itself, without other validation examples."""
        own = {use: place for use, place in self._splits[0].items() if use == "validation"}
        return [*(each for use, each in self._tables.items() if use != "validation"), *self._open_splits(own).values()]

    def _open_splits(self, places: Mapping[str, Any]) -> dict[str, Any]:
        """The Arrow table of each split, mapped into memory."""
        return {use: _open(folder) for use, folder in places.items()}


class ParquetFolder(HuggingFace):
    """Parquet files with features as the hub stores them; their names begin with their split."""

    @cached_property
    def _splits(self) -> tuple[dict[str, Any], tuple[str, ...]]:
        return choose_splits(_parquet_files(self.path), self.options)

    def _given(self, given: str) -> Any:
        if found := _parquet_files(user_path(given)):
            return [file for each in found.values() for file in each]
        raise PlanError("validation_data", given, "must be a folder of Parquet files, as the data is")

    @cached_property
    def _features(self) -> dict[str, Any]:
        file = self._splits[0]["train"][0]
        stored = (_read_parquet(file, "read_schema").metadata or {}).get(b"huggingface", b"{}")
        try:
            features = decode(stored.decode(errors="replace"), _HubInfo).info.features
        except ValueError as error:
            raise DataError(f"{file} has features that cannot be understood: {error}") from error
        if not features:
            reason = "no features of Hugging Face, which say what its columns are: give one of its files as a table"
            raise DataError(f"{self.path} is a folder of Parquet files with {reason}, e.g. {file}")
        return features

    def _open_splits(self, places: Mapping[str, Any]) -> dict[str, Any]:
        """The table of each split, which is read into memory."""
        metadata = [_read_parquet(file, "read_metadata") for each in places.values() for file in each]
        size = sum(each.row_group(group).total_byte_size for each in metadata for group in range(each.num_row_groups))
        check_fits_memory(f"reading {len(metadata)} Parquet files of {self.path}", size)
        names = list(self._features)
        tables = {
            use: [_read_parquet(file, "read_table", columns=names) for file in each] for use, each in places.items()
        }
        return {use: import_pyarrow(self.path).concat_tables(each) for use, each in tables.items()}


def _parquet_files(root: Path) -> dict[str, list[Path]]:
    """The Parquet files by split, which begins their names: ``train`` of ``train-00000-of-00002.parquet``."""
    found: dict[str, list[Path]] = {}
    for file in sorted([*root.glob("*.parquet"), *root.glob("data/*.parquet")]):
        found.setdefault(file.stem.partition("-")[0], []).append(file)
    return found


def _read_parquet(file: Path, function: str, **options: Any) -> Any:
    """Call a function of ``pyarrow.parquet`` that reads a file."""
    pyarrow = import_pyarrow(file)
    try:
        return getattr(import_module("pyarrow.parquet"), function)(regular(file), **options)
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(f"cannot read {file}: {error}") from error


def _open(folder: Path) -> Any:
    """The table of a split, mapped into memory."""
    pa = import_pyarrow(folder)
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


def _spec(feature: Any, columns: list[Any], window: int | None) -> tuple[ArraySpec | None, str]:
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


class _ArrowColumns:
    """The columns of an Arrow table.

    Args:
        table: The table.
        name: Name of the split, for messages.
        layout: What the columns are.
        padded: Names of the columns of lists that are padded to one length, or cut.
    """

    def __init__(self, table: Any, name: str, layout: Layout, padded: Sequence[str]) -> None:
        self.specs = layout.specs
        self._table = table
        self._name = name
        self._decoders = {each: ImageDecoder(fixed(layout.specs[each])) for each in layout.images}
        self._padded = padded

    def __len__(self) -> int:
        return self._table.num_rows

    def decode(self, rows: Rows, names: Sequence[str]) -> tuple[dict[str, npt.NDArray[Any]], npt.NDArray[np.bool_]]:
        """Decode some columns of some rows; those with missing values are not valid."""
        table = self._table.select(list(names)).take(rows)
        valid = np.ones(len(rows), np.bool_)
        for column in table.columns:
            valid &= column.is_valid().to_numpy()
        kept = np.flatnonzero(valid)
        table = table.take(kept)
        values: dict[str, npt.NDArray[Any]] = {}
        for name in names:
            spec = self.specs[name]
            values[name] = np.zeros((len(rows), *fixed(spec)), numpy_type(spec))
            if name in self._decoders:
                images = self._decoders[name](list(image_contents(table[name])))
                for place, image in images.items():
                    values[name][kept[place]] = image
                valid[np.delete(kept, list(images))] = False
            elif name in self._padded:
                values[name][kept] = _pad_lists(table[name].combine_chunks(), spec)
            elif len(kept):
                values[name][kept] = _to_numpy(table[name].combine_chunks()).reshape(len(kept), *fixed(spec))
        for wrong in not_finite(values).values():
            valid &= ~wrong
        return values, valid

    def problem(self, row: int) -> DataError:
        """The reason why a row cannot be decoded."""
        example = self._table.slice(row, 1)
        missing = [name for name in self.specs if example[name].null_count]
        reason = f"{', '.join(missing)} is missing" if missing else "an image in it cannot be decoded"
        if not missing and (wrong := not_finite(self.decode(np.array([row]), tuple(self.specs))[0])):
            reason = f"{', '.join(wrong)} has numbers that are NaN or infinite"
        return DataError(f"cannot read example {row} of the split {self._name}: {reason}")


def _pad_lists(values: Any, spec: ArraySpec) -> npt.NDArray[Any]:
    """The lists of an array, padded."""
    import pyarrow.compute as pc

    return pad(_to_numpy(values), pc.list_value_length(values).to_numpy(zero_copy_only=False), spec)


def _to_numpy(values: Any) -> npt.NDArray[Any]:
    """The numbers or texts of an array, of lists one after the other."""
    import pyarrow as pa

    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    while (
        pa.types.is_list(values.type) or pa.types.is_large_list(values.type) or pa.types.is_fixed_size_list(values.type)
    ):
        values = values.flatten()
    return values.to_numpy(zero_copy_only=False)
