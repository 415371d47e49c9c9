import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accel_engine.run import Annotations, RunInfo, RunSummary, Status
from accel_engine.run.directory.disk_problem import DiskProblem
from accel_engine.run.runs.listing import thinned
from accel_tui.formatting.table_columns import GAP, KEPT, SortOrder, fitting_columns, sort_rows
from accel_tui.run_list.columns import COLUMNS, TITLES, monitor_of, run_title


def run(name: str, status: Status = Status.FINISHED, created: float = 0.0, **more: Any) -> RunSummary:
    plan = {
        "model": more.pop("model", "cnn"),
        "batch_size": more.pop("batch", 32),
        "monitor_mode": more.pop("mode", "auto"),
    }
    info = RunInfo(name, Path(name), None, plan, created, "h", 1, status, more.pop("annotations", Annotations()))
    return RunSummary(name, Path(name), info, **more)


def ids(runs: tuple[RunSummary, ...]) -> str:
    return "".join(each.id for each in runs)


UNREADABLE = RunSummary("x", Path("x"), None, problem="damaged")


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (SortOrder("created"), "cbax"),
        (SortOrder("created", reversed=True), "abcx"),
        (SortOrder("loss"), "bacx"),
        (SortOrder("loss", reversed=True), "abcx"),
        (SortOrder("accuracy"), "abcx"),
        (SortOrder("batch"), "cabx"),
        (SortOrder("model"), "bacx"),
        (SortOrder("status"), "bacx"),
        (SortOrder("steps"), "abcx"),
        (SortOrder("tags"), "cabx"),
    ],
)
def test_runs_are_put_in_order_with_what_has_no_value_last(order: SortOrder, expected: str) -> None:
    runs = (
        run("a", created=1, metrics={"loss": 0.5, "accuracy": 0.9}, steps=30, batch=64, model="mlp"),
        run("b", Status.RUNNING, created=2, metrics={"loss": 0.25}, steps=20, batch=128, model="cnn"),
        run(
            "c", Status.LOST, created=3, metrics={"loss": math.nan}, model="zebra", annotations=Annotations(tags=("t",))
        ),
        UNREADABLE,
    )
    assert ids(sort_rows(runs, COLUMNS, order)) == expected


def test_a_column_that_gives_the_order_already_turns_it() -> None:
    created, loss = COLUMNS[TITLES.index("created")], COLUMNS[TITLES.index("loss")]
    order = SortOrder("created").by("loss")
    assert (order, order.is_descending(loss)) == (SortOrder("loss"), False)
    assert (order.by("loss"), order.by("loss").is_descending(loss)) == (SortOrder("loss", reversed=True), True)
    assert SortOrder("created").is_descending(created)


@pytest.mark.parametrize("room", [0, 40, 78, 118, 198, 400])
def test_only_columns_that_there_is_room_for_are_chosen(room: int) -> None:
    columns = fitting_columns(COLUMNS, room - GAP)
    assert sum(column.width + GAP for column in columns) <= room
    assert [column.title for column in columns] == [title for title in TITLES if title in {c.title for c in columns}]
    assert room < 400 or tuple(columns) == COLUMNS


def test_a_renamed_run_goes_by_its_name_and_by_what_finds_it() -> None:
    assert run_title(run("k7m2-cnn-digits")) == "k7m2-cnn-digits"
    assert run_title(run("k7m2-cnn-digits", annotations=Annotations("the best"))) == "k7m2 the best"


def test_every_column_has_something_to_say_of_a_run_that_cannot_be_read() -> None:
    assert [column.text(UNREADABLE, 0.0) for column in COLUMNS if column.title in ("status", "run", "loss")] == [
        "! unreadable",
        "x",
        "—",
    ]


def test_the_best_run_comes_first_whether_high_or_low_is_better() -> None:
    accurate = (run("a", monitor="validation_accuracy", best=0.5), run("b", monitor="validation_accuracy", best=0.9))
    exact = (run("a", monitor="validation_loss", best=0.5), run("b", monitor="validation_loss", best=0.9))
    assert ids(sort_rows((*accurate, run("c")), COLUMNS, SortOrder("best"))) == "bac"
    assert ids(sort_rows((*exact, run("c")), COLUMNS, SortOrder("best"))) == "abc"
    highest = (
        run("a", monitor="validation_loss", best=0.5, mode="max"),
        run("b", monitor="validation_loss", best=0.9, mode="max"),
    )
    assert ids(sort_rows(highest, COLUMNS, SortOrder("best"))) == "ba"
    assert monitor_of(exact[0], 12) == "val loss"
    assert monitor_of(run("a", monitor="loss", best=1.0), 12) == "loss"
    assert monitor_of(run("a", monitor="validation_root_mean_squared_error", best=1.0), 12) == "val root me…"
    assert monitor_of(run("a", monitor="validation_loss"), 10) == ""


@pytest.mark.parametrize(
    ("problem", "shown"),
    [
        (None, "● running"),
        (DiskProblem.FULL, "● disk full"),
        (DiskProblem.QUOTA, "● disk quot…"),
        (DiskProblem.READ_ONLY, "● read-only…"),
        (DiskProblem.IO, "● disk I/O …"),
    ],
)
def test_the_status_says_what_a_run_waits_for(problem: DiskProblem | None, shown: str) -> None:
    waiting = run("a", Status.RUNNING)
    assert waiting.info is not None
    waiting = replace(waiting, info=replace(waiting.info, waiting=problem))
    column = COLUMNS[TITLES.index("status")]
    assert column.text(waiting, 0.0) == shown
    assert len(shown) <= column.width


def test_a_regression_has_its_errors_and_the_metric_that_counts_its_baseline() -> None:
    errors = {"validation_mean_absolute_error": 1.557e9, "validation_r2_score": 0.5}
    found = run("a", metrics=errors, monitor="validation_mean_absolute_error", baseline={"mean_absolute_error": 2e9})
    texts = {column.title: column.text(found, 0.0) for column in COLUMNS}
    assert (texts["val mae"], texts["val rmse"], texts["val r²"], texts["baseline"]) == ("1.557G", "—", "0.5000", "2G")
    assert ids(sort_rows((run("b"), found), COLUMNS, SortOrder("baseline"))) == "ab"


def test_columns_without_a_value_make_room_for_others() -> None:
    regression, labels = run("a", metrics={"validation_mean_absolute_error": 2.0}), run("b", metrics={"loss": 1.0})
    room = sum(each.width + GAP for each in COLUMNS if each.drop_priority <= KEPT or each.title == "val mae") - GAP
    titles = [{each.title for each in fitting_columns(COLUMNS, room, shown)} for shown in ((regression,), (labels,))]
    assert ["val mae" in each for each in titles] == [True, False]
    assert ["loss" in each for each in titles] == [False, True]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ((0.0, 0.5, 1.0), "▁▄▇"),
        ((3.0, math.nan, 1.0), "▇ ▁"),
        ((2.0, 2.0), "▇▇"),
        ((0.0, 0.0), "▇▇"),
        ((0.9944, 0.9917, 0.9944), "▇▇▇"),
        (tuple(map(float, range(24))), "▁▂▃▄▅▅▆▇"),
        ((1.0,), ""),
        ((math.nan, 1.0), ""),
    ],
)
def test_the_course_of_the_metric_is_drawn_from_its_lowest_to_its_highest_value(
    values: tuple[float, ...], shown: str
) -> None:
    column = next(column for column in COLUMNS if column.title == "curve")
    assert column.text(run("a", curve=values), 0.0) == shown


def test_a_curve_is_thinned_evenly_and_keeps_its_last_value() -> None:
    assert thinned([1, 2, 3], 5) == (1, 2, 3)
    assert thinned(list(range(100)), 4) == (24, 49, 74, 99)
