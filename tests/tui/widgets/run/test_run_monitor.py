"""The large number of a run."""

from dataclasses import replace
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


def test_of_a_regression_it_is_the_error_in_the_units_of_the_target_beside_the_loss_that_counts() -> None:
    losses, errors = ((100, 4e8), (200, 5e8)), ((100, 24_000.0), (200, 25_000.0))
    state = replace(state_of(), validation={"loss": losses, "mean_absolute_error": errors})
    said = ["val MAE, loss 500M", "▲ 1000 since 100", "best loss 400M ★ 100"]
    assert (state.monitor, caption(state).plain.splitlines()) == ("validation_loss", said)
