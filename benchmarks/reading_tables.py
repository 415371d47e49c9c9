"""Measures how long reading tables takes: many rows as CSV and Parquet, and many columns and their saved preprocessing.

    python benchmarks/reading_tables.py [--megabytes 100] [--columns 3000 12000]

The tables have numbers, decimal numbers, categories and dates; the wide ones 60 rows of numbers. Each is described as
the dashboard does, and loaded as a run does. Files are in the page cache. The program and its libraries are imported
before.
"""

import argparse
import os
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from accel_engine import data

ROWS_OF_WIDE = 60


def long_table(rows: int) -> pa.Table:
    """Rows of about 40 bytes as CSV."""
    generator = np.random.default_rng(0)
    dates = np.datetime64("2020-01-01") + generator.integers(0, 1000, rows)
    return pa.table(
        {
            "age": generator.integers(18, 90, rows),
            "income": generator.normal(50_000, 9000, rows).round(2),
            "job": np.array(["clerk", "nurse", "cook"])[generator.integers(0, 3, rows)],
            "since": dates.astype("datetime64[D]"),
            "left": np.array(["no", "yes"])[generator.integers(0, 2, rows)],
        }
    )


def wide_table(columns: int) -> pa.Table:
    generator = np.random.default_rng(0)
    numbers = {f"gene {column}": generator.normal(size=ROWS_OF_WIDE).round(4) for column in range(columns)}
    return pa.table({**numbers, "ill": ["no", "yes"] * (ROWS_OF_WIDE // 2)})


def measure(path: Path, target: str, *, is_saved: bool) -> None:
    """Describe and load a table; for a wide one, also save and load the preprocessing."""
    options, entry = data.DataOptions(target=(target,)), data.find(str(path))
    described = timed(lambda: data.survey(entry, options))[0]
    loaded, dataset = timed(lambda: data.load(str(path), options))
    line = f"{path.name:15} {path.stat().st_size / 1e6:8.1f} MB   describe {described:6.2f} s   load {loaded:6.2f} s"
    if is_saved:
        file = path.with_suffix(".keras")
        built, model = timed(dataset.preprocess)
        saved = timed(lambda: model.save(file))[0] + timed(lambda: keras.models.load_model(file))[0]
        line += f"   build {built:6.2f} s   save and open {saved:6.2f} s"
    print(line, flush=True)


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = function()
    return time.perf_counter() - began, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=100, help="size of the long CSV file, about")
    parser.add_argument("--columns", type=int, nargs="*", default=[3000, 12_000], help="numbers of columns")
    options = parser.parse_args()
    print(f"{os.cpu_count()} CPUs, Python {platform.python_version()}, PyArrow {pa.__version__}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = long_table(options.megabytes * 1_000_000 // 36)
        csv.write_csv(table, folder / "long.csv")
        parquet.write_table(table, folder / "long.parquet")
        for suffix in ("csv", "parquet"):
            measure(folder / f"long.{suffix}", "left", is_saved=False)
        for columns in options.columns:
            csv.write_csv(wide_table(columns), folder / f"wide{columns}.csv")
            measure(folder / f"wide{columns}.csv", "ill", is_saved=True)


if __name__ == "__main__":
    main()
