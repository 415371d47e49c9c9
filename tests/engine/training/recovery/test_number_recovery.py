"""How a run continues after a loss that is not a number."""

from dataclasses import replace

import numpy as np
import pytest

from accel_engine.events import LearningRateChanged
from accel_engine.plan import Plan
from accel_engine.training.core.feed import Segment
from accel_engine.training.recovery.loss_watch import LossTrouble
from accel_engine.training.recovery.not_finite_cause import Cause
from accel_engine.training.recovery.number_recovery import NumberRecovery, start_of
from accel_engine.training.recovery.replay import separated

TROUBLE = LossTrouble(57, "the loss of step 57 is NaN")
BAD_DATA = Cause(step=56, batch="inputs not finite", examples="training examples 3")


@pytest.mark.parametrize(
    ("trouble", "step"),
    [
        (TROUBLE, 50),
        (LossTrouble(50, ""), 50),
        (LossTrouble(49, ""), 40),
        (LossTrouble(39, ""), None),
        (LossTrouble(57, "", grew_from=50), 40),
        (LossTrouble(57, "", explodes=True, grew_from=57), 50),
        (LossTrouble(57, "", grew_from=8), 40),
        (LossTrouble(57, "", explodes=True, grew_from=40), 40),
    ],
)
def test_a_run_returns_to_a_checkpoint_from_before(trouble: LossTrouble, step: int | None) -> None:
    assert start_of(trouble, [60, 40, 50]) == step
    assert start_of(trouble, []) == 0


def test_a_run_without_a_checkpoint_from_before_keeps_the_others_and_stops() -> None:
    early = LossTrouble(9, "the loss explodes", explodes=True, grew_from=9)

    assert NumberRecovery().repair(early, Cause(), Plan(), [40, 50]) is None
    hint = NumberRecovery().end(early, Cause(), Plan(), [40, 50])[1]
    assert hint.endswith("no checkpoint from before it is kept: keep more with --keep-checkpoints")


def test_the_learning_rate_is_halved_at_most_three_times() -> None:
    recovery, plan = NumberRecovery(), Plan()
    for factor in (0.5, 0.25, 0.125):
        repair = recovery.repair(TROUBLE, Cause(), plan, [50])
        assert repair is not None
        assert repair.changes == {"learning_rate_factor": factor}
        assert repair.step == 50
        plan = plan.replace(**repair.changes)

    assert recovery.repair(TROUBLE, Cause(), plan, [50]) is None
    reason, hint = recovery.end(TROUBLE, BAD_DATA, plan, [50])
    assert reason == "the loss of step 57 is NaN, also after 3 repairs; inputs not finite (training examples 3)"
    assert hint == "correct or remove these examples; the last checkpoint before it is of step 50"


@pytest.mark.parametrize(
    ("cause", "step", "action"),
    [
        (Cause(unknown="all was finite"), 52, "the learning rate from before step 52 is used again"),
        (Cause(unknown="all was finite"), 50, "the learning rate is halved, to 0.5 of the plan's"),  # the checkpoint's
        (BAD_DATA, 52, "the batch of step 56 is skipped, and the learning rate from before step 52 is used again"),
    ],
)
def test_a_learning_rate_that_was_set_after_the_checkpoint_is_undone(cause: Cause, step: int, action: str) -> None:
    change = LearningRateChanged(time=1.0, step=step, learning_rate=3.0)
    repair = NumberRecovery().repair(TROUBLE, cause, Plan(), [50], change)

    assert repair is not None
    assert repair.action == action
    assert ("; the learning rate was set to 3 at step 52" in repair.reason) is (step > 50)
    assert bool(repair.changes) is not action.startswith("the learning rate from")


@pytest.mark.parametrize(("step", "rate"), [(52, 0.01), (57, 3.0)])
def test_a_learning_rate_that_cannot_be_the_cause_is_halved_as_any(step: int, rate: float) -> None:
    """One that a command has lowered, or set after the losses began to grow."""
    change = LearningRateChanged(time=1.0, step=step, learning_rate=rate)
    trouble = replace(TROUBLE, grew_from=55)
    repair = NumberRecovery().repair(trouble, Cause(), Plan(), [50], change, [(0, 0.1), (step, rate)])

    assert repair is not None
    assert repair.changes == {"learning_rate_factor": 0.5}
    assert f"the learning rate was set to {rate:g} at step {step}, and no longer is" in repair.reason


def test_the_repairs_of_engines_before_count() -> None:
    assert NumberRecovery(2).repair(TROUBLE, Cause(), Plan(), [50])
    assert NumberRecovery(3).repair(TROUBLE, Cause(), Plan(), [50]) is None


def test_a_batch_with_bad_data_is_skipped() -> None:
    recovery = NumberRecovery()
    repair = recovery.repair(TROUBLE, BAD_DATA, Plan(skip_steps=("9",)), [50])

    assert repair is not None
    assert repair.changes == {"skip_steps": ("9", "56")}
    assert repair.action == "the batch of step 56 is skipped"
    assert recovery.repair(TROUBLE, BAD_DATA, Plan(skip_steps=("56",)), [50]) is None


def test_what_the_plan_says() -> None:
    assert NumberRecovery().repair(TROUBLE, BAD_DATA, Plan(on_nan="stop"), [50]) is None
    repair = NumberRecovery().repair(TROUBLE, Cause(), Plan(on_nan="skip"), [50])
    assert repair is not None
    assert repair.changes == {"skip_steps": ("57",)}


def test_skipped_steps_have_segments_of_their_own() -> None:
    order = np.arange(10)[:, None, None]
    whole = [Segment(order, 10, 1), Segment(order, 10, 1)]
    parts: list[tuple[int, int, bool]] = []
    for segment, alone in separated(whole, {19, 20, 25, 39}, lambda: 20 + sum(steps for steps, *_ in parts)):
        parts.append((segment.steps, int(segment.order[0, 0, 0]), alone))

    assert parts == [(1, 0, True), (4, 1, False), (1, 5, True), (4, 6, False), (9, 0, False), (1, 9, True)]
