"""Writes a run's tables to files."""

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from accel_engine.errors import UsageError
from accel_engine.events import to_json_object
from accel_engine.export.run_tables import TABLE_READERS, Column, run_description, shortest_texts, validation_objects
from accel_engine.run import RunReader
from accel_engine.run.store.sample_packing import SampleUnpacker

METADATA = b"accel_tui"
"""Key of the run's description, a JSON object, in the metadata of a Parquet file."""


def write_csv(source: RunReader, table: str, stream: TextIO) -> int:
    """Write a table as CSV with a header; missing values are empty, others may be ``nan`` or ``inf``.

    Args:
        source: The run.
        table: One of :data:`~accel_engine.export.run_tables.TABLE_READERS`.
        stream: The output, opened with ``newline=""``.

    Returns:
        Number of rows.
    """
    found = TABLE_READERS[table](source)
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(found.columns)
    rows = 0
    for batch in found.batches():
        writer.writerows(zip(*(_texts(column) for column in batch), strict=True))
        rows += len(batch[0])
    return rows


def write_run_json(source: RunReader, stream: TextIO) -> int:
    """Write a whole run as one JSON object; NaN and infinities are null.

    Of images, texts and histograms it has names and steps.

    Args:
        source: The run.
        stream: The output.

    Returns:
        Number of rows of the table ``steps``.
    """
    lead = json.dumps(run_description(source))[:-1]
    stream.write(f'{lead},\n"validation": {json.dumps(validation_objects(source))}')
    _write_items(stream, "events", (json.dumps(to_json_object(event)) for _, event in source.events()))
    stream.write(',\n"steps": {')
    steps = TABLE_READERS["steps"](source)
    count = 0
    for index, name in enumerate(steps.columns):
        stream.write(f"{',' * (index > 0)}\n{json.dumps(name)}: [")
        count = 0
        for batch in steps.batches():  # once per column, as the columns are written one after another
            column = np.asarray(batch[index])
            finite = np.isfinite(column)
            stream.write(("," if count else "") + ",".join(np.where(finite, shortest_texts(column), "null").tolist()))
            count += len(column)
        stream.write("]")
    stream.write("}")
    _write_items(stream, "samples", _samples(source))
    _write_items(stream, "media", _media(source))
    stream.write("}\n")
    return count


def write_parquet(source: RunReader, table: str, path: Path) -> int:
    """Write a table as Parquet, with the run's description and validations in the metadata.

    Args:
        source: The run.
        table: One of :data:`~accel_engine.export.run_tables.TABLE_READERS`.
        path: Path of the file.

    Returns:
        Number of rows.

    Raises:
        UsageError: PyArrow is not installed.
    """
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError as error:
        raise UsageError(
            "Parquet needs PyArrow, which is not installed: run pip install 'accel-tui[parquet]' "
            "(or pip install pyarrow)"
        ) from error
    found = TABLE_READERS[table](source)
    about = {**run_description(source), "validation": validation_objects(source)}
    types = {name: arrow.type_for_alias("string" if kind == "str" else kind) for name, kind in found.columns.items()}
    schema = arrow.schema(list(types.items()), metadata={METADATA: json.dumps(about).encode()})
    rows = 0
    with parquet.ParquetWriter(path, schema) as writer:
        for batch in found.batches():
            writer.write_batch(arrow.record_batch([arrow.array(column) for column in batch], schema=schema))
            rows += len(batch[0])
    return rows


def _texts(column: Column) -> Sequence[Any]:
    if not isinstance(column, np.ndarray):
        return column
    return (shortest_texts(column) if column.dtype.kind == "f" else column).tolist()


def _write_items(stream: TextIO, name: str, items: Iterable[str]) -> None:
    stream.write(f',\n"{name}": [')
    stream.writelines(f"{',' * (index > 0)}\n{item}" for index, item in enumerate(items))
    stream.write("]")


def _samples(source: RunReader) -> Iterable[str]:
    for _, samples in source.sample_batches(SampleUnpacker()):
        for sample in samples:
            readings = {}
            for name, reading in sample.readings.items():
                readings[name] = {"value": reading.value, "unit": reading.unit}
                if reading.reason:
                    readings[name]["reason"] = reading.reason
            yield json.dumps({"time": sample.time, "device": sample.device, "readings": readings})


def _media(source: RunReader) -> Iterable[str]:
    for series in source.media_list():
        yield json.dumps({"kind": series.kind, "name": series.name, "steps": source.media_steps(series)})
