"""The same table in another format is the same values: as training, validation and predicted rows."""

import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from accel_engine.data import DataOptions, find, load, survey
from accel_engine.data.data_options import ColumnFormat
from accel_engine.data.roles import Roles
from accel_engine.data.tables.column_reading import read_columns
from accel_engine.data.tables.preprocessing import unseen_notes
from accel_engine.data.tables.raw_inputs import raw_inputs
from accel_engine.data.tables.rows_to_predict import read_rows_to_predict
from accel_engine.errors import DataError

ROWS = 60
GENERATOR = np.random.default_rng(5)
CODES = [100123.1, 100123.2, 100123.4]
IDS = [9007199254740993, 9007199254740992, 9007199254740994]


def table(rows: int = ROWS) -> pa.Table:
    """A table as pandas writes it to Parquet: its column ``size`` decides ``ok``."""
    size = GENERATOR.normal(10, 3, rows)
    return pa.table(
        {
            "member": pa.array((size > 10).tolist()),
            "size": size.round(3),
            "rooms": pa.array([None if row % 9 == 0 else row % 4 for row in range(rows)], pa.int32()),
            "floor": pa.array([float(row % 3) for row in range(rows)]),
            "code": pa.array([CODES[row % 3] for row in range(rows)]),
            "shop": pa.array([IDS[row % 3] for row in range(rows)]),
            "price": pa.array([Decimal(row % 5) / 4 for row in range(rows)], pa.decimal128(10, 2)),
            "colour": pa.array(["red", "blue", "green"] * (rows // 3)).dictionary_encode(),
            "seen": pa.array([86_400_000 * (row % 70) for row in range(rows)], pa.timestamp("ms", "Europe/Berlin")),
            "ok": pa.array((size > 10).tolist()),
        }
    )


KINDS = ("floor=category", "code=category", "shop=category", "price=category")


def write(rows: pa.Table, path, **changes) -> str:
    """Write a table as the suffix says; ``changes`` are columns in another form."""
    for name, values in changes.items():
        rows = rows.set_column(rows.column_names.index(name), name, pa.array(values))
    if path.suffix == ".parquet":
        parquet.write_table(rows, path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row, default=as_json) + "\n" for row in rows.to_pylist()))
    else:
        plain = {
            name: rows[name].cast(rows[name].type.value_type) if pa.types.is_dictionary(rows[name].type) else rows[name]
            for name in rows.column_names
        }
        arrow_csv.write_csv(pa.table(plain), path)
    return str(path)


def as_json(value):
    return float(value) if isinstance(value, Decimal) else value.isoformat()


def options(**more) -> DataOptions:
    return DataOptions(target=("ok",), kinds=KINDS, split="ordered", validation_split=0.25, **more)


SUFFIXES = (".parquet", ".csv", ".jsonl")


def test_a_table_is_the_same_examples_in_each_format(tmp_path):
    rows = table()
    found = [load(write(rows, tmp_path / f"t{suffix}"), options()) for suffix in SUFFIXES]
    for other in found[1:]:
        assert other.feature_names == found[0].feature_names
        assert other.class_names == found[0].class_names == ("false", "true")
        np.testing.assert_array_equal(other.train.inputs, found[0].train.inputs)
        np.testing.assert_array_equal(other.train.targets, found[0].train.targets)
    names = found[0].feature_names
    assert {f"code={code}" for code in CODES} <= set(names)
    assert {f"shop={number}" for number in IDS} <= set(names)
    assert {"floor=0", "floor=1", "floor=2", "price=0.25", "price=1"} <= set(names)


@pytest.mark.parametrize("trained", SUFFIXES)
@pytest.mark.parametrize("given", SUFFIXES)
def test_validation_data_in_another_format(tmp_path, trained, given):
    rows, others = table(), table()
    path = write(rows, tmp_path / f"train{trained}")
    same = load(path, options(validation_data=write(others, tmp_path / f"same{trained}")))
    other = load(path, options(validation_data=write(others, tmp_path / f"other{given}")))
    np.testing.assert_array_equal(other.validation.inputs, same.validation.inputs)
    np.testing.assert_array_equal(other.validation.targets, same.validation.targets)
    assert other.warnings == ()


@pytest.mark.parametrize("words", [("False", "True"), (0, 1), ("no", "yes"), (0.0, 1.0), ("F", "T"), ("FALSE", "TRUE")])
def test_true_and_false_in_other_words(tmp_path, words):
    rows = table()
    path = write(rows, tmp_path / "train.parquet")
    changed = {name: [words[value] for value in rows[name].to_pylist()] for name in ("member", "ok")}
    for suffix in (".csv", ".jsonl"):
        other = write(rows, tmp_path / f"other{suffix}", **changed)
        found = load(path, options(validation_data=other))
        np.testing.assert_array_equal(found.validation.targets, pc.cast(rows["ok"], pa.int32()).to_numpy())
        column = found.feature_names.index("member=true")
        np.testing.assert_array_equal(found.validation.inputs[:, column], pc.cast(rows["ok"], pa.int8()).to_numpy())
        # The other way round, numbers and words are given true and false.
        back = load(other, options(validation_data=path))
        np.testing.assert_array_equal(back.validation.targets, found.validation.targets)
        assert back.warnings == ()


def test_values_that_training_has_not_seen_are_counted(tmp_path):
    rows = table()
    path = write(rows, tmp_path / "train.parquet")
    colours = ["violet", "red", "blue"] * (ROWS // 3)
    found = load(path, options(validation_data=write(rows, tmp_path / "other.csv", colour=colours)))
    assert found.warnings == (
        "other.csv: 20 values of column colour not in the training data, such as 'violet': taken as other values",
    )
    other = write(rows, tmp_path / "all.csv", colour=["violet", "rose", "pink"] * (ROWS // 3))
    assert load(path, options(validation_data=other)).warnings == (
        "all.csv: not one of 60 values of column colour is in the training data, such as 'violet': "
        "taken as other values",
    )
    other = write(rows, tmp_path / "numbers.csv", size=["many"] * ROWS)
    with pytest.raises(DataError, match=r"numbers\.csv: .*60 values of size .*no numbers.*not one value is"):
        load(path, options(validation_data=other))


def test_predicted_rows_know_the_categories_that_training_has_seen(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("colour\nred\nviolet\n\n")
    inputs = raw_inputs(read_columns(file, DataOptions(kinds=("colour=category",))).columns, ["colour"])
    vocabulary = {"colour": ("red", "blue")}
    assert len(unseen_notes(vocabulary, inputs, np.arange(2), file)) == 1
    assert unseen_notes(vocabulary, inputs, np.array([0]), file) == ()
    file.write_text("colour\nviolet\n")
    found = read_rows_to_predict(file, [ColumnFormat("colour", "category")], vocabulary)
    assert found.notes == (
        "1 value of column colour not in the training data, such as 'violet': taken as other values",
    )
    assert (found.names, found.problems) == (("1",), {})


def test_versions_and_codes_stay_as_they_are_spelled(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("version,zip,pi\n1.1,01234,3.50\n1.10,1234,4\n1.1,00012,4.0\n")
    kinds = ("version=category", "zip=category", "pi=category")
    columns = read_columns(file, DataOptions(kinds=kinds))
    assert columns.columns["version"].categories == ("1.1", "1.10")
    assert columns.columns["zip"].categories == ("00012", "01234", "1234")
    assert columns.columns["pi"].categories == ("3.5", "4")
    file.write_text("version,zip,pi\n1.10,01234,3.500\n")
    assert read_columns(file, DataOptions(), like=columns.formats).columns["version"].values.tolist() == ["1.10"]


def test_long_whole_numbers_are_names_where_numbers_would_lose_digits(tmp_path):
    for suffix in SUFFIXES:
        path = write(table(), tmp_path / f"t{suffix}")
        column = read_columns(tmp_path / f"t{suffix}", DataOptions()).columns["shop"]
        assert (column.kind, column.categories) == ("category", tuple(sorted(map(str, IDS)))), path


def test_dates_are_read_as_in_training_or_refused(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("when,a\n13/02/2020,1\n01/03/2020,2\n")
    training = read_columns(file, DataOptions())
    assert training.formats["when"].date_format == "%d/%m/%Y"
    file.write_text("when,a\n2020-02-13,1\n01/03/2020,2\n01/03/2020 12:00,2\n2020-03-01T00:00:00+00:00,2\n")
    seconds = read_columns(file, DataOptions(), like=training.formats).columns["when"].values
    expected = ["2020-02-13", "2020-03-01", "2020-03-01T12:00", "2020-03-01"]
    np.testing.assert_array_equal(seconds, np.array(expected, "datetime64[s]").astype(int))
    for text in ("02/13/2020", "13.02.2020", "13 Feb 2020"):
        file.write_text(f"when,a\n01/03/2020,1\n{text},2\n")
        with pytest.raises(DataError, match=rf"'{text}' in row 2 is .*, not day/month/year"):
            read_columns(file, DataOptions(), like=training.formats)


def test_dates_that_may_be_of_either_order_are_said(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("when,a\n01/02/2020,1\n03/04/2020,2\n")
    changes = read_columns(file, DataOptions()).changes_of(Roles(("when",), ()))
    assert [*map(str, changes)] == [
        "values of when read as dates: such as 01/02/2020 as month/day/year; otherwise write 2024-12-31"
    ]


@pytest.mark.parametrize(
    ("texts", "expected"), [([20241231, 20250101], "2024-12-31"), ([1735603200, 1735689600], "2024-12-31")]
)
def test_declared_dates_of_numbers_are_the_same_in_each_format(tmp_path, texts, expected):
    rows = pa.table({"when": texts, "a": [1, 2]})
    for suffix in SUFFIXES:
        path = tmp_path / f"t{suffix}"
        write(rows, path)
        seconds = read_columns(path, DataOptions(kinds=("when=date",))).columns["when"].values
        assert seconds[0] == np.datetime64("2024-12-31", "s").astype(int)


def test_a_date_that_is_predicted_is_said(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("a,day\n" + "".join(f"{number},2020-01-{number + 1:02d}\n" for number in range(20)) + ",\n")
    found = load(str(file), DataOptions(target=("day",), split="none"))
    assert [*map(str, found.changes)] == [
        "1 row at the end left out: all their cells are empty",
        "dates of day read as numbers: predicted in seconds since 1970",
    ]
    assert found.train.targets[:2].ravel().tolist() == [1577836800, 1577923200]


def test_the_first_rows_alone_do_not_tell_the_kind(tmp_path):
    file = tmp_path / "t.csv"
    dates = [f"2020-{number % 12 + 1:02d}-{number % 28 + 1:02d}" for number in range(3000)]
    rows = [("pending", f"n{number}", "soon") for number in range(120)]
    rows += [(dates[number], f"{number},5", f"{number % 24:02d}:30") for number in range(3000)]
    file.write_text("day;price;time\n" + "".join(f"{';'.join(row)}\n" for row in rows))
    columns = read_columns(file, DataOptions()).columns
    assert {name: (column.kind, column.missing) for name, column in columns.items()} == {
        "day": ("date", 120),
        "price": ("number", 120),
        "time": ("number", 120),
    }


def test_dates_without_values_are_an_empty_column(tmp_path):
    rows = table().append_column("left", pa.array([None] * ROWS, pa.timestamp("us")))
    path = write(rows, tmp_path / "rows.parquet")
    described = {each.name: each for each in survey(find(path), DataOptions(target=("ok",))).columns}
    assert (described["left"].kind, described["left"].missing, described["left"].detail) == ("empty", ROWS, "")
    assert not any("left" in name for name in load(path, DataOptions(target=("ok",))).feature_names)
    whole = write(rows, tmp_path / "whole.parquet", left=rows["seen"])
    assert len(load(whole, DataOptions(target=("ok",), validation_data=path)).validation) == ROWS


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_numbers_that_are_declared_missing(tmp_path, suffix):
    path = tmp_path / f"rows{suffix}"
    write(table(), path, floor=[-99.0 if row % 2 else 1.5 for row in range(ROWS)])
    columns = read_columns(path, DataOptions(missing=("unknown", "-99", "2"))).columns
    assert columns["floor"].missing == ROWS // 2
    assert columns["rooms"].missing == sum(row % 9 == 0 or row % 4 == 2 for row in range(ROWS))
