import math
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accel_engine.run import Annotations, RunInfo, RunSummary, Status
from accel_tui.run_list.columns import TITLES, run_title
from accel_tui.run_list.groups import (
    GROUPINGS,
    Folds,
    GroupPath,
    RunGroup,
    group_runs,
    make_group,
    result_of,
    run_columns,
    visible,
)
from accel_tui.run_list.run_filter import matches, parse_filter
from accel_tui.settings.user_settings import RUN_COLUMNS, RUN_GROUPS
from tui.stand_in_hosts import run_of

ACCURACY, MAE = "validation_accuracy", "validation_mean_absolute_error"


def run(name: str, data: str = "digits", created: float = 0.0, **more: Any) -> RunSummary:
    status, tags = more.pop("status", Status.FINISHED), more.pop("tags", ())
    made = {key: more.pop(key) for key in ("script", "bench", "study", "trial") if key in more}
    plan = {"model": more.pop("model", "cnn"), "data": data}
    info = RunInfo(name, Path(name), None, plan, created, "h", 1, status, Annotations(tags=tags), **made)
    return RunSummary(name, Path(name), info, **{"monitor": ACCURACY, **more})


def shown(
    runs: list[RunSummary], grouping: str = "data", changed: Collection[GroupPath] = (), *, are_open: bool = False
) -> list[str]:
    lines = visible(group_runs(runs, grouping, Folds(changed, are_open=are_open)))
    return ["/".join(line.path) if isinstance(line, RunGroup) else line.id for line in lines]


RUNS = [
    run("old", created=1.0, best=0.8),
    run("trial", created=9.0, study="s", trial=0, best=0.9),
    run("house", "b/houses.csv", created=5.0, monitor="validation_loss", best=3.0, metrics={MAE: 24.0}),
    run("fit", "", created=3.0, script="train.py", best=0.7),
    run("bench", "", created=2.0, bench="offline", monitor="throughput", best=9000.0),
    run("new", created=4.0, best=0.95),
]


def test_runs_are_grouped_by_data_and_by_what_made_them_the_newest_first_and_trials_within_their_data() -> None:
    assert shown(RUNS) == [
        "digits",
        "old",
        "new",
        "digits/search s",
        "houses.csv",
        "house",
        "scripts",
        "fit",
        "benches",
    ]
    unfolded = shown(RUNS, changed={("digits", "search s"), ("benches",)})
    assert unfolded[3:5] == ["digits/search s", "trial"]
    assert unfolded[-2:] == ["benches", "bench"]
    assert {"trial", "bench"} <= {*shown(RUNS, are_open=True)}, "what a filter finds is seen"


def test_a_folded_group_hides_the_groups_in_it() -> None:
    changed = {("digits",), ("digits", "search s")}
    assert shown(RUNS, changed=changed)[:2] == ["digits", "houses.csv"]


def test_runs_of_one_group_need_no_heading() -> None:
    assert shown([RUNS[0], RUNS[-1]]) == ["old", "new"]
    assert shown(RUNS, "none") == [each.id for each in RUNS]


def test_runs_are_grouped_by_model_and_tag() -> None:
    runs = [run("a", model="m/net.py:build", tags=("x", "y")), run("b", model="mlp")]
    assert shown(runs, "model") == ["net.py:build", "a", "mlp", "b"]
    assert shown(runs, "tag") == ["#x", "a", "no tag", "b"]


def test_the_result_is_the_metric_that_counts_and_of_a_regression_its_error() -> None:
    found = {each.id: result_of(each) for each in RUNS}
    assert {name: (each.title, each.text) for name, each in found.items() if each} == {
        "old": ("best val acc", "0.8000"),
        "trial": ("best val acc", "0.9000"),
        "house": ("val MAE", "24"),
        "fit": ("best val acc", "0.7000"),
        "bench": ("examples/s", "9.00k"),
        "new": ("best val acc", "0.9500"),
    }
    assert result_of(run("none")) is None
    assert result_of(run("loss", monitor="validation_loss", best=3.0)).title == "best val loss"  # type: ignore[union-attr]


def test_a_column_has_one_kind_of_result_in_a_group() -> None:
    mixed = [*RUNS[:2], RUNS[2]]
    group = make_group(("any",), mixed)
    assert group.series == ACCURACY
    assert [each.text if (each := group.result(one)) else "" for one in mixed] == ["0.8000", "0.9000", ""]
    assert group.best
    assert group.best.value == 0.9
    assert group.high == 1.0, "accuracies are drawn from 0 to 1"
    assert make_group(("any",), [RUNS[2]]).high == 24.0
    assert make_group(("any",), [replace(RUNS[0], best=math.nan)]).best is None


def test_bars_are_as_long_as_the_results_of_their_group() -> None:
    group = make_group(("any",), [RUNS[0], RUNS[-1]])
    columns = {each.title: each for each in run_columns(lambda _: group, "", 80, (), "data")}
    assert [len(columns["bar"].text(each, 0.0)) for each in group.runs] == [7, 8]
    assert columns["result"].sort_key
    assert columns["result"].sort_key(RUNS[2]) == (-24.0, ""), "the lowest error is the best"


def test_without_groups_results_of_several_kinds_have_columns_of_their_own() -> None:
    titles = [each.title for each in run_columns(lambda _: None, "", 80, (), "none")]
    assert "result" not in titles
    assert {"val acc", "val mae", "examples/s"} <= {*titles}
    assert "result" in [each.title for each in run_columns(lambda _: None, "best val acc", 80, (), "none")]


def test_the_settings_name_all_columns_and_groups() -> None:
    assert {*RUN_COLUMNS} == {*TITLES, "result", "bar", "examples/s"}
    assert tuple(GROUPINGS) == RUN_GROUPS
    assert [each.title for each in run_columns(lambda _: None, "", 80, RUN_COLUMNS, "data")] == [*RUN_COLUMNS]


@pytest.mark.parametrize(("room", "text"), [(80, "✓"), (120, "✓ finished")])
def test_the_status_is_a_sign_where_there_is_no_room_for_words(room: int, text: str) -> None:
    (status, *_) = run_columns(lambda _: None, "", room, (), "data")
    assert status.text(RUNS[0], 0.0) == text


def test_runs_of_hosts_are_grouped_by_host_named_with_it_and_found_by_it() -> None:
    runs = [run_of("gpu-1", "k3fp-cnn", Status.RUNNING), run_of("", "m8w3-cnn", Status.FINISHED)]
    blocks = group_runs(runs, "host", Folds())
    assert {group.path for group, _ in blocks if group} == {("gpu-1",), ("this machine",)}
    assert runs[0].info
    named = replace(runs[0], info=replace(runs[0].info, annotations=Annotations(name="best")))
    assert run_title(named) == "gpu-1:k3fp best"
    assert [matches(run, parse_filter("host:gpu-1")) for run in runs] == [True, False]
