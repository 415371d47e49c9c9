from typing import Any

import numpy as np
import pytest

from accel_engine.data.data_options import DataOptions
from accel_engine.data.series.series import order_series
from accel_engine.errors import DataError, PlanError


def options(**values: Any) -> DataOptions:
    return DataOptions(**{"window": 4, **values})


DAYS = np.arange("2024-01-01", "2024-01-31", dtype="datetime64[D]")


def test_rows_are_put_in_the_order_of_time() -> None:
    shuffled = np.random.default_rng(0).permutation(30)
    for times in (DAYS, np.arange(30), np.arange(30) * 0.5, DAYS.astype(str), DAYS.astype(str).astype(object)):
        series = order_series({"a": shuffled, "when": times[shuffled]}, options(time="when"))
        np.testing.assert_array_equal(series.values["a"], np.arange(30))
        np.testing.assert_array_equal(shuffled[series.order], np.arange(30))
        assert series.notes == ("rows were put in the order of 'when'",)
        assert order_series({"a": np.arange(30), "when": times}, options(time="when")).notes == ()


@pytest.mark.parametrize("names", [["b", "a"], [2.5, 1.5], [None, "a"]])
def test_series_are_told_apart_by_a_column(names: list[Any]) -> None:
    group = np.array(names, object if None in names else None)[np.arange(20) % 2]
    for time in ("", "t"):
        series = order_series({"a": np.arange(20), "g": group, "t": np.arange(20)}, options(group="g", time=time))
        parts = np.split(series.values["a"], np.cumsum(series.lengths)[:-1])
        assert sorted(map(list, parts)) == [list(range(0, 20, 2)), list(range(1, 20, 2))]


def test_steps_that_are_not_regular_are_counted() -> None:
    hours = np.delete(np.arange("2024-01-01", "2024-01-05", dtype="datetime64[h]"), [7, 50, 51, 52])
    (note,) = order_series({"a": np.arange(len(hours)), "t": hours}, options(time="t")).notes
    assert note == (
        "2 of 91 steps of 't' differ from the usual 1 h (2 h to 4 h); windows count rows, whatever the steps"
    )
    months = np.arange("2020-01", "2024-01", dtype="datetime64[M]").astype("datetime64[D]")
    assert order_series({"a": np.arange(48), "t": months}, options(time="t")).notes == ()
    (note,) = order_series({"a": np.arange(4), "t": np.array([0, 1, 2, 9], np.uint8)}, options(time="t")).notes
    assert "1 of 3 steps of 't' differ from the usual 1 (7 to 7)" in note


def test_several_series_have_steps_of_their_own() -> None:
    table = {"a": np.arange(20), "g": np.repeat([0, 1], 10), "t": np.concatenate([np.arange(10), np.arange(10)])}
    assert order_series(table, options(time="t", group="g")).notes == ()
    with pytest.raises(DataError, match=r"'t' repeats a time \(--group names the column .*\) in 10 of 20 rows"):
        order_series(table, options(time="t"))


def test_the_first_value_that_is_no_date_is_named() -> None:
    with pytest.raises(DataError, match=r"column 't' has values such as 'soon', which are not dates"):
        order_series({"a": np.arange(3), "t": np.array(["2024-01-01", "soon", "never"])}, options(time="t"))


def test_rows_that_repeat_a_time_can_be_skipped() -> None:
    times = np.array([0, 1, 1, 2, 3])
    series = order_series({"a": np.arange(5), "t": times}, options(time="t", invalid_examples="skip"))
    assert series.values["a"].tolist() == [0, 1, 3, 4]
    assert series.valid.all()
    assert series.lengths.tolist() == [4]
    assert str(series.changes[0]).startswith("rows that repeat a time left out: 't' repeats a time")


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_numbers_that_are_not_finite_are_counted(bad: float) -> None:
    values = np.arange(30.0)
    values[[4, 17]] = bad
    words = r"'a' has no finite number in 2 of 30 rows, first in row 5"
    with pytest.raises(DataError, match=rf"{words} \(--invalid-examples skip leaves windows with invalid rows out"):
        order_series({"a": values}, options())
    series = order_series({"a": values}, options(invalid_examples="skip"))
    assert np.flatnonzero(~series.valid).tolist() == [4, 17]
    assert list(map(str, series.changes)) == [f"windows with invalid rows left out: {words}"]


def test_columns_that_are_not_numbers() -> None:
    table = {"a": np.arange(30), "when": DAYS, "place": np.array(["x", "y"] * 15), "z": np.zeros(30, complex)}
    words = "column 'when' has dates, .* leave it out with --ignore z,when, or order the rows by it with --time when"
    with pytest.raises(DataError, match=words):
        order_series(table, options(ignore=("z",)))
    with pytest.raises(DataError, match=r"'place' has text, .* --ignore place, or tell series apart .* --group place"):
        order_series(table, options(time="when"))
    with pytest.raises(DataError, match="'z' has complex numbers"):
        order_series(table, options(time="when", group="place"))


@pytest.mark.parametrize("field", ["time", "group", "target", "features", "ignore"])
def test_columns_that_are_not_there(field: str) -> None:
    name = "temprature" if field in ("time", "group") else ("temprature",)
    with pytest.raises(PlanError, match=f"{field} = .* has no column 'temprature'; did you mean temperature"):
        order_series({"temperature": np.arange(9)}, options(**{field: name}))


def test_no_column_is_left() -> None:
    with pytest.raises(DataError, match="no inputs are left: the data has a"):
        order_series({"a": np.arange(9)}, options(time="a"))


def test_times_that_cannot_be_read() -> None:
    with pytest.raises(
        DataError, match=r"such as '31\.12\.2024', which are not dates .* replace --time t by --ignore t"
    ):
        order_series({"a": np.arange(2), "t": np.array(["31.12.2024", "1.1.2025"])}, options(time="t"))
    for times in (np.array([1, np.nan]), np.array(["2024-01-01", "NaT"], "datetime64[D]")):
        with pytest.raises(DataError, match="column 't' has no time in 1 rows, first in row 2"):
            order_series({"a": np.arange(2), "t": times}, options(time="t"))
