"""What other intervals of validations and checkpoints gain, from what each takes."""

from types import SimpleNamespace
from typing import Any

import pytest

from accel_engine.advice.cures import interval_trial
from accel_engine.advice.cures.interval_trial import Round, measure_intervals, rate_with
from accel_engine.errors import RunError
from accel_engine.measure.trial_statistics import LEAST_ROUNDS, Verdict
from accel_engine.plan import Plan
from accel_engine.requests.try_plan import TrialReady, TrialStart, Turn

MEASURED = Round(rate=100.0, validation=2.0, checkpoint=0.5)


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        ({"validation": "off", "checkpoint_every": "1 epoch"}, 0.01 + 0.5 / 50),
        ({"validation_every": "100 steps", "checkpoint_every": "1 epoch"}, 0.01 + 2 / 100 + 0.5 / 50),
        ({"validation_every": "4 epochs", "checkpoint_every": "2 minutes"}, 0.01 + 2 / 200 + 0.5 / 12000),
        ({"validation": "end", "checkpoint_every": "auto"}, 0.01 + 0.5 / 2500),
    ],
)
def test_a_step_takes_its_share_of_what_comes_between(settings: dict[str, Any], seconds: float) -> None:
    assert rate_with(Plan(**settings), MEASURED, 50) == pytest.approx(1 / seconds)


def test_epochs_of_unknown_length_cannot_be_compared() -> None:
    assert rate_with(Plan(validation="off", checkpoint_every="9 steps"), MEASURED, 0) > 0
    with pytest.raises(RunError, match="steps of an epoch is unknown"):
        rate_with(Plan(), MEASURED, 0)


def test_rounds_are_measured_until_there_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interval_trial, "PATIENCE", 1e12)
    plan, asked = Plan(checkpoint_every="1 epoch"), []

    def note(name: str, answer: Any) -> Any:
        asked.append(name)
        return answer

    process = SimpleNamespace(
        take_for=lambda seconds: note("steps", Turn(20, 1280, 0.2, ())),
        validate=lambda: note("validation", ({"loss": 1.0}, 2.0)),
        save=lambda: note("save", 0.5),
    )
    trial: Any = SimpleNamespace(
        start=TrialStart(plan), ready=TrialReady(1.0, 1.0, 64, 50, ("CPU:0",), True), process=process
    )
    found = measure_intervals(trial, plan.replace(validation_every="10 epochs"), 1e-9, lambda *_: None)
    assert found.before == pytest.approx(64 / (0.01 + 2 / 50 + 0.5 / 50))
    assert found.comparison.value == pytest.approx((0.01 + 2 / 50 + 0.5 / 50) / (0.01 + 2 / 500 + 0.5 / 50))
    assert (found.steps_per_second, found.validation_seconds, found.checkpoint_seconds) == (100.0, 2.0, 0.5)
    assert asked.count("save") == LEAST_ROUNDS
    assert found.comparison.verdict is Verdict.BETTER
