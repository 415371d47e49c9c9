"""The large number of a run."""

from pathlib import Path

import pytest

from accel_engine.run import RunInfo, Status
from accel_tui.run_state.state import RunState
from accel_tui.widgets.run.run_monitor import caption


def state_of(*values: float, name: str = "accuracy") -> RunState:
    info = RunInfo("k7m2", Path("k7m2"), None, {}, 0.0, "h", 1, Status.RUNNING)
    points = tuple((100 * (index + 1), value) for index, value in enumerate(values))
    return RunState(info=info, validation={name: points})


@pytest.mark.parametrize(
    ("values", "lines"),
    [
        ((0.5,), ["validation accuracy", "best 0.5000 ★ 100"]),
        ((0.5, 0.75), ["validation accuracy", "▲ 0.2500 since 100", "best 0.7500 ★ 200"]),
        ((0.75, 0.5), ["validation accuracy", "▼ 0.2500 since 100", "best 0.7500 ★ 100"]),
        ((0.5, 0.5), ["validation accuracy", "unchanged since 100", "best 0.5000 ★ 100"]),
    ],
)
def test_it_says_what_it_is_how_it_changed_and_what_was_best(values: tuple[float, ...], lines: list[str]) -> None:
    assert caption(state_of(*values)).plain.splitlines() == lines


def test_without_a_validation_there_is_no_number() -> None:
    assert RunState().monitored == ()
