"""Reading a number of epochs, and how few are allowed."""

from types import SimpleNamespace
from typing import Any

import pytest

from accel_engine.errors import UsageError
from accel_engine.plan import Plan
from accel_engine.run import Status
from accel_tui.plan.trained_run import TrainedRun, parse_epochs


def run(planned: int, trained: float) -> TrainedRun:
    info: Any = SimpleNamespace(status=Status.FINISHED, plan_values={"epochs": planned})
    return TrainedRun(info, Plan(epochs=planned), trained)


@pytest.mark.parametrize(("text", "total"), [("20", 20), (" 11 ", 11), ("+1", 11), ("+ 5", 15), ("1,000", 1000)])
def test_totals_and_additions(text: str, total: int) -> None:
    assert parse_epochs(text, run(10, 10.0)) == total


@pytest.mark.parametrize("text", ["", "many", "1.5", "10", "0", "-3", "+0", "+"])
def test_what_does_not_train_longer(text: str) -> None:
    with pytest.raises(UsageError, match="must be"):
        parse_epochs(text, run(10, 10.0))


def test_a_run_that_stopped_early_can_be_trained_longer() -> None:
    early = run(10, 5.2)
    assert early.trained == 6
    assert early.minimum in (7, 11), "either what check_epochs takes as it is, or more than the plan's epochs"
    assert parse_epochs("+5", early) == 11
