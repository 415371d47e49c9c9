"""Reads a dataset that the ``datasets`` library of Hugging Face saved with ``save_to_disk``."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import DataOptions, Progress
from accel_engine.data.dataset import Dataset
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.data.folders.image_folder import ImageDecoder
from accel_engine.data.prepared.columns_dataset import PreparedSplits, build_dataset
from accel_engine.data.prepared.hugging_face_survey import SavedLayout, image_contents, read_layout
from accel_engine.data.prepared.padding import pad
from accel_engine.data.prepared.rows import Rows, fixed, numpy_type
from accel_engine.data.structure import ArraySpec
from accel_engine.errors import DataError


def read(entry: DatasetEntry, options: DataOptions, progress: Progress) -> Dataset:
    """Read a saved dataset: into memory if it fits; otherwise its Arrow files stay mapped into memory.

    Args:
        entry: Has the folder's path.
        options: Which columns are inputs and targets, the size of images, how examples are split, and whether examples
            with missing values are skipped.
        progress: Reports the number of examples read.

    Raises:
        DataError: pyarrow is not installed, or the dataset is damaged.
        PlanError: An option does not fit.
    """
    layout = read_layout(entry, options)
    decoders = {name: ImageDecoder(fixed(layout.specs[name])) for name in layout.images}
    sources = {use: ArrowSource(table, use, layout, decoders) for use, table in layout.tables.items()}
    return build_dataset(
        entry,
        PreparedSplits(sources["train"], sources.get("validation"), sources.get("test")),
        layout.roles,
        options,
        progress,
        class_names=layout.class_names,
        images=layout.images,
        notes=layout.notes,
    )


class ArrowSource:
    """The columns of an Arrow table.

    Args:
        table: The table.
        name: Name of the split, for messages.
        layout: What the columns are.
        decoders: Decoders of the images.
    """

    def __init__(self, table: Any, name: str, layout: SavedLayout, decoders: dict[str, ImageDecoder]) -> None:
        self.specs = layout.specs
        self._table = table
        self._name = name
        self._decoders = decoders
        self._padded = layout.padded

    def __len__(self) -> int:
        count: int = self._table.num_rows
        return count

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
        return values, valid

    def problem(self, row: int) -> DataError:
        """The reason why a row cannot be decoded."""
        example = self._table.slice(row, 1)
        missing = [name for name in self.specs if example[name].null_count]
        reason = f"{', '.join(missing)} is missing" if missing else "an image in it cannot be decoded"
        return DataError(f"cannot read example {row} of the split {self._name}: {reason}")


def _pad_lists(values: Any, spec: ArraySpec) -> npt.NDArray[Any]:
    """The lists of an array, padded."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks() if values.num_chunks else pa.array([], values.type)
    return pad(_to_numpy(values), pc.list_value_length(values).to_numpy(zero_copy_only=False), spec)


def _to_numpy(values: Any) -> npt.NDArray[Any]:
    """The numbers or texts of an array, those of lists one after the other."""
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks() if values.num_chunks else pa.array([], values.type)
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    while (
        pa.types.is_list(values.type) or pa.types.is_large_list(values.type) or pa.types.is_fixed_size_list(values.type)
    ):
        values = values.flatten()
    array: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return array
