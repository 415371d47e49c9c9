"""A run's tables as files."""

import csv
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from accel_engine.errors import UsageError
from accel_engine.events import to_wire
from accel_engine.export.tables import TABLES, Column, description, points, texts
from accel_engine.run.bulk_reader import BulkReader
from accel_engine.run.sample_packing import SampleUnpacker

METADATA = b"accel_tui"
"""Under this key a Parquet file keeps what the run is, as a JSON object."""


def write_csv(source: BulkReader, table: str, stream: TextIO) -> int:
    """Write a table as CSV, with a header; what is not known is empty, what is no number is ``nan`` or ``inf``.

    Args:
        source: The run.
        table: One of :data:`~accel_engine.export.tables.TABLES`.
        stream: Where to, opened with ``newline=""``.

    Returns:
        How many rows were written.
    """
    found = TABLES[table](source)
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(found.columns)
    rows = 0
    for part in found.parts():
        writer.writerows(zip(*(_texts(column) for column in part), strict=True))
        rows += len(part[0])
    return rows


def write_json(source: BulkReader, stream: TextIO) -> int:
    """Write all that a run holds as one JSON object; null is what is no number.

    Args:
        source: The run.
        stream: Where to.

    Returns:
        How many steps were written.
    """
    lead = json.dumps(description(source))[:-1]
    stream.write(f'{lead},\n"validation": {json.dumps([to_wire(point) for point in points(source)])}')
    _write_items(stream, "events", (json.dumps(to_wire(event)) for _, event in source.events()))
    stream.write(',\n"steps": {')
    steps = TABLES["steps"](source)
    count = 0
    for index, name in enumerate(steps.columns):
        stream.write(f"{',' * (index > 0)}\n{json.dumps(name)}: [")
        count = 0
        for part in steps.parts():  # once for each column, as they stand one after another
            column = np.asarray(part[index])
            finite = np.isfinite(column)
            stream.write(("," if count else "") + ",".join(np.where(finite, texts(column), "null").tolist()))
            count += len(column)
        stream.write("]")
    stream.write("}")
    _write_items(stream, "samples", _samples(source))
    stream.write("}\n")
    return count


def write_parquet(source: BulkReader, table: str, path: Path) -> int:
    """Write a table as Parquet, with what the run is, and its validations, in the metadata.

    Args:
        source: The run.
        table: One of :data:`~accel_engine.export.tables.TABLES`.
        path: Of the file.

    Returns:
        How many rows were written.

    Raises:
        UsageError: PyArrow is not installed.
    """
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError as error:
        raise UsageError(
            "Parquet files are written by PyArrow, which is not installed: pip install 'accel-tui[parquet]' "
            "(or pip install pyarrow)"
        ) from error
    found = TABLES[table](source)
    about = {**description(source), "validation": [to_wire(point) for point in points(source)]}
    types = {name: arrow.type_for_alias("string" if kind == "str" else kind) for name, kind in found.columns.items()}
    schema = arrow.schema(list(types.items()), metadata={METADATA: json.dumps(about).encode()})
    rows = 0
    with parquet.ParquetWriter(path, schema) as writer:
        for part in found.parts():
            writer.write_batch(arrow.record_batch([arrow.array(column) for column in part], schema=schema))
            rows += len(part[0])
    return rows


def _texts(column: Column) -> Sequence[Any]:
    if not isinstance(column, np.ndarray):
        return column
    plain: list[Any] = (texts(column) if column.dtype.kind == "f" else column).tolist()
    return plain


def _write_items(stream: TextIO, name: str, items: Iterable[str]) -> None:
    stream.write(f',\n"{name}": [')
    stream.writelines(f"{',' * (index > 0)}\n{item}" for index, item in enumerate(items))
    stream.write("]")


def _samples(source: BulkReader) -> Iterable[str]:
    for _, samples in source.samples(SampleUnpacker()):
        for sample in samples:
            readings = {}
            for name, reading in sample.readings.items():
                known = reading.value is not None and math.isfinite(reading.value)
                readings[name] = {"value": reading.value if known else None, "unit": reading.unit}
                if reading.reason:
                    readings[name]["reason"] = reading.reason
            yield json.dumps({"time": sample.time, "device": sample.device, "readings": readings})
