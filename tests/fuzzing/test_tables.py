"""Tables with any bytes: each is surveyed and its cells are read, or it is refused with the reason."""

import io
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from accel_engine import data
from accel_engine.data.data_options import INVALID_EXAMPLES, DataOptions
from accel_engine.data.tables.table_file import read_cells
from accel_engine.errors import AccelError
from fuzzing.texts import edited

CELLS = st.sampled_from(["1", "2.5", "nan", "", "a", "é", "2024-01-01", "9" * 400, "1e999", "?", '"', "x" * 3000, "-0"])
CSV = st.lists(st.lists(CELLS, min_size=2, max_size=3).map(",".join), max_size=8).map("\n".join)
LINES = [
    '{"a": 1, "b": "x"}',
    '{"a": null}',
    '{"a": [1, {"b": 2}]}',
    '{"a": 1e999}',
    '{"a": ' + "9" * 5000 + "}",
    "[" * 3000,
]
JSON = st.lists(st.sampled_from(LINES), max_size=6).map("\n".join)


def parquet_file() -> bytes:
    file = io.BytesIO()
    parquet.write_table(pa.table({"a": list(range(20)), "b": [str(each % 3) for each in range(20)]}), file)
    return file.getvalue()


def read(path: Path, content: bytes, invalid: str) -> None:
    path.write_bytes(content)
    with suppress(AccelError):
        read_cells(path, skip_invalid=invalid == "skip")
    with suppress(AccelError):
        data.survey(data.find(str(path)), DataOptions(invalid_examples=invalid))


INVALID = st.sampled_from(INVALID_EXAMPLES)


@given(CSV.map("name,value,more\n".__add__).flatmap(edited), INVALID)
def test_csv(tmp_path: Path, content: bytes, invalid: str) -> None:
    read(tmp_path / "table.csv", content, invalid)


@given(JSON.flatmap(edited), INVALID)
def test_json_lines(tmp_path: Path, content: bytes, invalid: str) -> None:
    read(tmp_path / "table.jsonl", content, invalid)


@given(edited(parquet_file()), INVALID)
def test_parquet(tmp_path: Path, content: bytes, invalid: str) -> None:
    read(tmp_path / "table.parquet", content, invalid)
