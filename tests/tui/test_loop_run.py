"""A run of a script's own loop, of whose model nothing is known, is shown without made-up facts."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accel_engine.events import EpochEnded
from accel_engine.recording.loop_session import _built
from accel_engine.run import Chunk, RunInfo, RunSummary, Status, Update
from accel_tui.cli.event_text import format_event
from accel_tui.cli.progress import progress as progress_text
from accel_tui.run_list.comparison import ComparedRun, compare_runs
from accel_tui.run_state.fold_events import apply_update
from accel_tui.run_state.state import RunState
from accel_tui.widgets.run.phase_line import phase_progress
from accel_tui.widgets.run.run_details import RunDetails
from accel_tui.widgets.run.run_lines import RunTitle
from accel_tui.widgets.styled_text import plain_spans

VALUES: dict[str, Any] = {"name": "mine", "data": "loop.py", "config": {"lr": 0.5, "model.max_depth": 3}}

EPOCH = EpochEnded(time=1.0, epoch=2, step=40, metrics={"loss": 0.5}, seconds=1.0)


def info_of(values: Mapping[str, Any] = VALUES, name: str = "k3fp-loop") -> RunInfo:
    return RunInfo(name, Path(name), None, dict(values), 0.0, "h", 1, Status.RUNNING, script="python loop.py")


def state_of(*events: Any) -> RunState:
    chunks = tuple(Chunk(20 * number, 20, number, number + 1.0, {"loss": [0.5] * 20}) for number in range(3))
    return apply_update(RunState(info=info_of()), Update(events=events, chunks=chunks))


def shown(state: RunState) -> str:
    return " ".join(plain_spans(pair) for pair in phase_progress(state))


def test_the_title_names_the_script_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunTitle, "width", 100)
    text = RunTitle().build(state_of()).plain
    assert "k3fp-loop  mine  loop.py " in text
    assert "None" not in text


def test_settings_are_details_and_what_is_unknown_is_left_out() -> None:
    text = RunDetails().build(state_of(_built(100))).plain
    lines = [line.split() for line in text.splitlines()]
    assert ["config", "lr:", "0.5"] in lines
    assert ["model.max_depth:", "3"] in lines
    assert "unknown" not in text


def test_without_a_total_steps_are_counted() -> None:
    assert shown(state_of()) == "step 60 20.0 steps/s"
    assert shown(state_of(EPOCH)) == "epochs 2 step 60 20.0 steps/s"
    assert progress_text(state_of()).startswith("step 60  loss 0.5000  20.0 steps/s")


def test_a_total_of_steps_gives_the_progress() -> None:
    state = state_of(_built(100))
    assert shown(state) == "step 60/100 20.0 steps/s"
    assert state.remaining == 2.0
    assert progress_text(state) == "step 60  loss 0.5000  20.0 steps/s  0:02 left"
    assert format_event(_built(100), state) == "100 steps"
    assert format_event(EPOCH, state_of(_built(100), EPOCH)) == "epoch 2  loss 0.5000"


def test_settings_are_compared_under_their_names() -> None:
    def compared(name: str, config: Any) -> ComparedRun:
        info = info_of({**VALUES, "config": config}, name)
        return ComparedRun(RunSummary(name, Path(name), info), RunState(info=info))

    found = compare_runs(
        [compared("a", {"lr": 0.5, "max_depth": 3, "seed": 1}), compared("b", {"lr": 0.25, "seed": 1})]
    )
    assert {row.label: row.texts for row in found.plan} == {
        "config.lr": ("0.5", "0.25"),
        "config.max_depth": ("3", "—"),
    }
    assert found.summary == "Equal: data loop.py, seed 1."


@pytest.mark.parametrize(
    "config", ["a text", ["a", {"b": 1}], 5, None, {"nested": {"a": [{}]}, "list": [[1], {}], "seed": [{}], "xla": {}}]
)
def test_settings_in_another_form_break_nothing(config: Any) -> None:
    info = info_of({**VALUES, "config": config})
    state = RunState(info=info)
    run = ComparedRun(RunSummary("a", Path("a"), info), state)
    assert compare_runs([run, run, replace(run, run=RunSummary("b", Path("b"), info_of()))]).runs
    assert RunDetails().build(state).plain
