from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from accel_engine import data
from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset import Split
from accel_engine.data.tables import table
from accel_engine.errors import DataError, PlanError

HOURS = np.arange("2024-01-01", "2024-01-11", dtype="datetime64[h]")  # 240 rows
TABLE: dict[str, Any] = {
    "when": HOURS.astype("datetime64[s]"),
    "temperature": 10 + 5 * np.sin(np.arange(240) / 24 * 2 * np.pi),
    "rain": np.where(np.arange(240) % 5 == 0, "yes", "no"),
    "wind": np.array(["north", "south", "east"])[np.arange(240) % 3],
    "place": np.where(np.arange(240) % 2, "a", "b"),
    "part": np.array(["train", "valid", "test"])[np.repeat([0, 1, 2], [160, 40, 40])],
}
"""Hourly values; ``place`` makes two series of them."""


@pytest.fixture(params=["csv", "parquet"])
def write(request: pytest.FixtureRequest, tmp_path: Path):
    def write(table: dict[str, Any], name: str = "mine") -> str:
        path = tmp_path / f"{name}.{request.param}"
        writer = {"csv": pa.csv.write_csv, "parquet": pa.parquet.write_table}[request.param]
        writer(pa.table(table), path)
        return str(path)

    return write


def options(**values: Any) -> DataOptions:
    return DataOptions(**{"window": 4, **values})


CASES: list[dict[str, Any]] = [
    {"time": "when", "target": ("temperature",), "ignore": ("part", "place")},
    {"time": "when", "group": "place", "target": ("temperature", "rain"), "horizon": 3, "test_split": 0.1},
    {"features": ("temperature",), "target": ("temperature",), "split": "column:part"},
    {"time": "when", "features": ("rain",), "target": ("temperature",), "split": "none"},
]


@pytest.mark.parametrize("values", CASES)
def test_survey_says_what_reading_gives(write, values: dict[str, Any]) -> None:
    spec = write(TABLE)
    made, entry = data.load(spec, options(**values)), data.survey(data.find(spec), options(**values))
    assert (entry.kind, entry.task, entry.classes, entry.shape) == ("series", "regression", 0, made.shape)
    assert (entry.spec, entry.value_range) == (made.spec, made.value_range)
    assert (entry.notes, entry.changes) == (made.notes, made.changes)
    splits = (made.train, made.validation, made.test)
    lengths = [len(split) if isinstance(split, Split) else 0 for split in splits]
    assert [entry.examples, entry.validation_examples, entry.test_examples] == lengths
    roles = {column.name: column.role for column in entry.columns}
    assert [name for name in roles if roles[name] == "target"] == list(values["target"])
    assert roles["when"] == ("time" if "time" in values else "unused")
    assert roles["place"] == ("group" if "group" in values else "unused")
    assert roles["part"] == ("split" if "column:" in values.get("split", "") else "unused")
    assert set(made.feature_names) <= {"temperature", "rain"}


def test_first_rows_of_a_large_file_are_checked(write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "LARGE", 0)
    monkeypatch.setattr(table, "_ROWS", 50)
    spec = write(TABLE)
    chosen = options(time="when", target=("temperature",), ignore=("part", "place"))
    entry, made = data.survey(data.find(spec), chosen), data.load(spec, chosen)
    assert entry.spec == made.spec
    if spec.endswith(".parquet"):  # whose number of rows is known
        assert isinstance(made.train, Split)
        assert entry.examples == len(made.train)
    with pytest.raises(DataError, match=r"column 'wind' has text, but .* choose others with --target"):
        data.survey(data.find(spec), options(target=("wind",)))


def test_columns_without_numbers_are_left_out(write) -> None:
    spec = write(TABLE)
    made = data.load(spec, options(scale="none"))
    assert made.feature_names == ("temperature", "rain")
    listed = "when (date), wind (category), place (category), part (category)"
    assert [*map(str, made.changes)] == [f"4 columns without numbers left out: {listed}"]
    assert "rows are in the order of the file; --time 'when' puts them in order" in made.notes
    assert isinstance(made.train, Split)
    np.testing.assert_array_equal(made.train.inputs[:, 0, 1], np.arange(len(made.train)) % 5 == 0)
    with pytest.raises(DataError, match=r"column 'wind' has text, but .* choose others with --features"):
        data.load(spec, options(features=("wind", "temperature")))


def test_rows_of_a_column_s_split(write) -> None:
    made = data.load(write(TABLE), options(**CASES[2], scale="none"))
    assert [len(split) for split in (made.train, made.validation, made.test) if isinstance(split, Split)] == [
        156,
        36,
        36,
    ]


def test_validation_file(write) -> None:
    later = {**TABLE, "temperature": TABLE["temperature"] + 100}
    spec, other = write(TABLE), write(later, "later")
    made = data.load(spec, options(time="when", validation_data=other, target=("temperature",), scale="none"))
    assert isinstance(made.train, Split)
    assert isinstance(made.validation, Split)
    assert (len(made.train), len(made.validation)) == (236, 236)
    assert made.train.targets.max() < 20 < made.validation.targets.min()
    lacking = write({name: column for name, column in TABLE.items() if name != "temperature"}, "lacking")
    with pytest.raises(PlanError, match=r"validation_data = .*: the file has no column temperature"):
        data.load(spec, options(validation_data=lacking))


def test_missing_numbers(write) -> None:
    table = {**TABLE, "temperature": np.where(np.arange(240) == 100, None, TABLE["temperature"].astype(object))}
    spec = write(table)
    words = "'temperature' has no finite number in 1 of 240 rows, first in row 101"
    for call in (lambda: data.load(spec, options()), lambda: data.survey(data.find(spec), options())):
        with pytest.raises(DataError, match=words):
            call()
    made = data.load(spec, options(invalid_examples="skip", split="none"))
    assert isinstance(made.train, Split)
    assert len(made.train) == (100 - 4) + (139 - 4)


def test_rows_in_another_order(write) -> None:
    shuffled = np.random.default_rng(0).permutation(240)
    spec = write({name: column[shuffled] for name, column in TABLE.items()})
    chosen = options(time="when", features=("temperature",), target=("temperature",), horizon=2, scale="none")
    made = data.load(spec, chosen)
    assert isinstance(made.train, Split)
    np.testing.assert_allclose(made.train.inputs[7, :, 0], TABLE["temperature"][7:11], rtol=1e-6)
    np.testing.assert_allclose(made.train.targets[7], TABLE["temperature"][11:13], rtol=1e-6)
    assert "rows were put in the order of 'when'" in made.notes
    with pytest.raises(PlanError, match=r"time = 'whem': .*did you mean when"):
        data.survey(data.find(spec), options(time="whem"))


def test_missing_times(write) -> None:
    when = TABLE["when"].copy()
    when[4] = "NaT"
    with pytest.raises(DataError, match="column 'when' has no time in 1 rows, first in row 5"):
        data.load(write({**TABLE, "when": when}), options(time="when"))


def test_times_of_day_do_not_order_rows_as_they_may_go_past_midnight(write) -> None:
    when = np.array([f"{row // 60 % 24:02d}:{row % 60:02d}" for row in range(240)], object)
    with pytest.raises(DataError, match=r"'when' has values such as '00:00', .*replace --time when by --ignore when"):
        data.load(write({**TABLE, "when": when}), options(time="when"))
