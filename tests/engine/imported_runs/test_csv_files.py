"""Runs of CSV files."""

import csv
import math
import random
from pathlib import Path

import pytest

from accel_engine.errors import DataError, UsageError
from accel_engine.imported_runs import find
from accel_engine.imported_runs.csv_files import ColumnNames
from accel_engine.imported_runs.source_run import SourceRun
from engine.imported_runs.reading import values


def read(tmp_path: Path, text: str, **columns: str) -> SourceRun:
    file = tmp_path / "results.csv"
    file.write_text(text)
    (source,) = find(file, ColumnNames(**columns))
    return source.read()


def test_a_row_per_step(tmp_path: Path) -> None:
    run = read(tmp_path, "step,time,loss,val_loss\n0,1700000000,0.5,\n1,1700000001.5,0.25,0.75\n")
    assert values(run) == {"loss": [(0, 0.5), (1, 0.25)], "val loss": [(2, 0.75)]}
    assert run.series["loss"].times.tolist() == [1700000000.0, 1700000001.5]
    assert (run.name, run.began, run.notes, run.epochs) == ("results", 1700000000.0, [], [])


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiters(tmp_path: Path, delimiter: str) -> None:
    run = read(
        tmp_path, "\ufeff" + delimiter.join(["step", "loss"]) + "\r\n" + delimiter.join(["3", "0.5"]) + "\r\n\r\n"
    )
    assert values(run) == {"loss": [(3, 0.5)]}


def test_an_epoch_per_row_of_keras(tmp_path: Path) -> None:
    run = read(tmp_path, "epoch,accuracy,loss,val_accuracy,val_loss\n0,0.5,1.0,0.25,2.0\n1,0.75,0.5,NA,NA\n")
    assert values(run) == {
        "accuracy": [(0, 0.5), (1, 0.75)],
        "loss": [(0, 1.0), (1, 0.5)],
        "val accuracy": [(1, 0.25)],
        "val loss": [(1, 2.0)],
    }
    assert [(epoch.number, epoch.step, epoch.metrics) for epoch in run.epochs] == [
        (1, 1, {"accuracy": 0.5, "loss": 1.0}),
        (2, 2, {"accuracy": 0.75, "loss": 0.5}),
    ]
    assert (run.notes, run.times_expected) == ([], False)


@pytest.mark.parametrize("epochs", [(0, 1, 0, 1), (0, 5, 10), (0, 0)])
def test_other_rows_without_steps_have_a_note(tmp_path: Path, epochs: tuple[int, ...]) -> None:
    run = read(tmp_path, "epoch,loss\n" + "".join(f"{epoch},1\n" for epoch in epochs))
    (note,) = run.notes
    assert "the rows are numbered from 0" in note


def test_sparse_columns_of_lightning(tmp_path: Path) -> None:
    rows = "0,9,1.0,\n0,19,0.5,\n0,19,,0.75\n1,29,0.25,\n1,39,0.125,\n1,39,,0.5\n2,49,0.1,\n"
    run = read(tmp_path, f"epoch,step,train_loss,val_loss\n{rows}")
    assert values(run) == {
        "loss": [(9, 1.0), (19, 0.5), (29, 0.25), (39, 0.125), (49, 0.1)],
        "val loss": [(20, 0.75), (40, 0.5)],
    }
    # The last epoch has fewer steps: it has not ended.
    assert [(epoch.number, epoch.step, epoch.metrics) for epoch in run.epochs] == [
        (1, 20, {"loss": 0.75}),
        (2, 40, {"loss": 0.1875}),
    ]
    assert (run.notes, run.times_expected) == ([], False)


def test_dates_and_milliseconds(tmp_path: Path) -> None:
    run = read(tmp_path, "step,timestamp,loss\n0,2026-11-01T12:00:00+00:00,1\n1,2026-11-01 12:00:01.5+00:00,2\n")
    assert run.series["loss"].times.tolist() == [1793534400.0, 1793534401.5]
    assert read(tmp_path, "step,timestamp,loss\n0,1793534400500,1\n").began == 1793534400.5


def test_numbers_that_are_no_dates_are_a_series(tmp_path: Path) -> None:
    run = read(tmp_path, "step,time,loss\n0,1.5,1\n1,2.5,2\n")
    assert values(run)["time"] == [(0, 1.5), (1, 2.5)]


def test_named_columns(tmp_path: Path) -> None:
    run = read(tmp_path, "tick,round,loss\n5,1,0.5\n6,1,0.25\n7,2,0.125\n8,2,0.0625\n", step="tick", epoch="round")
    assert list(values(run)) == ["loss"]
    assert [(epoch.number, epoch.step) for epoch in run.epochs] == [(1, 7), (2, 9)]
    with pytest.raises(UsageError, match=r"--step tock: .* has no such column; did you mean tick\?"):
        read(tmp_path, "tick,loss\n0,1\n", step="tock")


@pytest.mark.parametrize("name", ["batch", "step", "iter"])
def test_steps_that_start_again_in_each_epoch_are_numbered(tmp_path: Path, name: str) -> None:
    run = read(tmp_path, f"epoch,{name},loss\n0,0,4\n0,1,3\n1,0,2\n1,1,1\n")
    assert values(run) == {"loss": [(0, 4), (1, 3), (2, 2), (3, 1)]}
    assert [(epoch.number, epoch.step) for epoch in run.epochs] == [(1, 2), (2, 4)]
    assert run.notes == [f"the column {name!r} starts again in each epoch: the rows are numbered from 0"]


def test_a_run_that_goes_back_to_an_earlier_epoch_keeps_its_steps(tmp_path: Path) -> None:
    run = read(tmp_path, "epoch,step,loss\n0,0,4\n1,1,3\n0,0,2\n1,1,1\n")
    assert values(run) == {"loss": [(0, 2), (1, 1)]}


def test_fractions_of_epochs_are_a_series(tmp_path: Path) -> None:
    run = read(tmp_path, "step,epoch,loss\n0,0.5,4\n1,1.0,3\n")
    assert values(run)["epoch"] == [(0, 0.5), (1, 1.0)]
    assert run.epochs == []


def test_later_rows_replace_those_of_the_same_steps(tmp_path: Path) -> None:
    run = read(tmp_path, "step,loss\n0,4\n1,3\n2,2\n1,9\n")
    assert values(run) == {"loss": [(0, 4), (1, 9)]}
    assert run.notes == ["left out: 2 values in loss: the run went back to the same step or an earlier one"]


def test_a_step_before_which_the_run_went_back_was_not_recorded_again(tmp_path: Path) -> None:
    run = read(tmp_path, "step,loss\n0,1\n0,2\n5,3\n3,4\n")
    assert values(run) == {"loss": [(0, 2), (3, 4)]}
    assert run.notes == ["left out: 2 values in loss: the run went back to the same step or an earlier one"]


def test_texts_are_named(tmp_path: Path) -> None:
    run = read(tmp_path, "step,phase,loss\n0,warmup,4\n1,main,nan\n")
    assert list(values(run)) == ["loss"]
    assert run.notes == ["columns that are not numbers are left out: phase"]


def test_columns_of_which_most_cells_are_texts_are_left_out(tmp_path: Path) -> None:
    run = read(tmp_path, "step,loss,phase\n0,4,1\n1,3,a\n2,2,b\n")
    assert list(values(run)) == ["loss"]
    assert run.notes == ["columns that are not numbers are left out: phase"]


def test_a_column_of_nan_is_a_series(tmp_path: Path) -> None:
    run = read(tmp_path, "epoch,loss\n0,nan\n1,NaN\n")
    assert run.series["loss"].values == pytest.approx([math.nan, math.nan], nan_ok=True)
    assert [epoch.metrics["loss"] for epoch in run.epochs] == pytest.approx([math.nan, math.nan], nan_ok=True)


def test_spellings_of_nan_and_infinity(tmp_path: Path) -> None:
    nan = ["nan", "-NaN", "nan(ind)", "-nan(snan)", "1.#QNAN", "-1.#IND00"]
    infinite = ["inf", "+Infinity", "1.#INF", "∞"]
    run = read(tmp_path, "loss\n" + "".join(f"{cell}\n" for cell in (*nan, *infinite, "-1.#inf", "-∞")))
    expected = [math.nan] * len(nan) + [math.inf] * len(infinite) + [-math.inf] * 2
    assert run.series["loss"].values == pytest.approx(expected, nan_ok=True)
    assert not any("infinite" in note for note in run.notes)


def test_values_beyond_float32_are_infinite(tmp_path: Path) -> None:
    run = read(tmp_path, "step,loss,val_loss\n0,1e308,1\n1,-1e400,1e39\n2,3.4e38,inf\n")
    assert values(run) == {
        "loss": [(0, math.inf), (1, -math.inf), (2, 3.4e38)],
        "val loss": [(1, 1), (2, math.inf), (3, math.inf)],
    }
    assert run.notes == ["read as infinite: 3 values in loss, val_loss: beyond the range of float32"]


@pytest.mark.parametrize("column", ["epoch", "time"])
def test_numbers_that_are_too_large_for_epochs_and_times_are_a_series(tmp_path: Path, column: str) -> None:
    run = read(tmp_path, f"step,{column},loss\n0,1e308,1\n1,inf,2\n")
    assert values(run) == {column: [(0, math.inf), (1, math.inf)], "loss": [(0, 1), (1, 2)]}
    assert (run.epochs, math.isnan(run.began)) == ([], True)


def test_the_last_line_may_be_incomplete(tmp_path: Path) -> None:
    run = read(tmp_path, "step,loss,accuracy\n0,4,1\n1,3")
    assert values(run) == {"loss": [(0, 4)], "accuracy": [(0, 1)]}
    assert run.notes == ["its last line is incomplete: the writer was interrupted, or still writes it"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: the first line must have the names of the columns"),
        ("1,2\n3,4\n", "line 1: the first line must have the names of the columns; it has numbers"),
        ("step,loss,loss\n", "line 1: two columns have the name 'loss'"),
        ("step,loss\n0,1\n1,2,3\n", "line 3: 3 values, but the header has 2 names"),
        ("step,loss\n0\n1,2\n", "line 2: 1 values, but the header has 2 names"),
        ("step,loss\n0,1\n1,much\n", "line 3: 'much' in the column 'loss' is not a number"),
        ('step,"' + "9" * 200_000 + '"\n0,1\n', "line 1: field larger than field limit"),
        ("step,loss\n0,1\n1.5,1\n", "line 3: '1.5' in the column 'step' is not the number of a step"),
        ("step,loss\n0,1\n,1\n", "line 3: '' in the column 'step' is not the number of a step"),
        ("step,loss\n-1,1\n", "line 2: '-1' in the column 'step' is not the number of a step"),
        ("step,loss\n0,1\n1,x\n2,1\n", "correct the cell, leave it empty, or remove the column"),
        ("step,loss\n0,x\n1,1\n2,1\n", "line 2: 'x' in the column 'loss' is not a number"),
        (
            "step,time,loss\n0,2026-11-23T10:00:00,1\n1,yesterday,1\n",
            "line 3: 'yesterday' in the column 'time' is not a time: a date such as 2026-11-23T10:00:00, or seconds",
        ),
        (
            "step;loss\n1;0,9\n",
            "line 2: '0,9' in the column 'loss' has a decimal comma: replace the decimal",
        ),
        ("step;loss\n0;1\n1;-0,9e-3\n", "line 3: '-0,9e-3' in the column 'loss' has a decimal comma"),
        ("1;0,9\n", "line 1: the first line must have the names of the columns; it has numbers"),
        ('step,loss\n0,"' + "9" * 200_000 + '"\n', "line 2: field larger than field limit"),
    ],
)
def test_mistakes_have_their_line(tmp_path: Path, text: str, said: str) -> None:
    csv.field_size_limit(1 << 30)  # as where tables of data were read
    with pytest.raises(DataError) as raised:
        read(tmp_path, text)
    assert said in str(raised.value)


def test_a_file_of_other_bytes(tmp_path: Path) -> None:
    file = tmp_path / "results.csv"
    file.write_bytes(b"step,loss\n\xff\xfe,1\n")
    with pytest.raises(DataError, match="is not text in UTF-8"):
        find(file)[0].read()


def test_any_damage_is_an_error_with_a_message(tmp_path: Path) -> None:
    file, chance = tmp_path / "results.csv", random.Random(0)
    intact = b"epoch,step,time,loss,val_loss\n" + b"".join(
        b"%d,%d,17000000%02d,0.5,0.25\n" % (n // 5, n, n) for n in range(20)
    )
    for _ in range(300):
        data = bytearray(intact[: chance.randrange(len(intact) + 1)])
        for _ in range(chance.randrange(4)):
            if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
        file.write_bytes(data)
        try:
            find(file)[0].read()
        except DataError as error:
            message = str(error)
            assert message.startswith(str(file))


def test_an_exported_table_reads_as_it_was_written(tmp_path: Path) -> None:
    header = ["step", "epoch", "time", "loss", "learning_rate", "steps_per_second"]
    with (tmp_path / "results.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([header, *([n, n // 2 + 1, 1.7e9 + n, 1 / (n + 1), 0.1, 1.0] for n in range(4))])
    (source,) = find(tmp_path / "results.csv")
    run = source.read()
    assert list(run.series) == ["loss", "learning_rate"]
    assert [(epoch.number, epoch.step) for epoch in run.epochs] == [(1, 2), (2, 4)]
