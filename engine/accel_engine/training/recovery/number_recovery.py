"""Decides how a run continues after a loss or weights that are not a number, or a loss that explodes."""

from collections.abc import Iterable, Sequence

from accel_engine.events import NOT_A_NUMBER, LearningRateChanged
from accel_engine.plan import Plan
from accel_engine.training.recovery.loss_watch import LossTrouble
from accel_engine.training.recovery.not_finite_cause import Cause
from accel_engine.training.recovery.recovery_action import RecoveryAction

MAX_REPAIRS = 3
"""Repairs of one run; after them it stops."""

RATE_FACTOR = 0.5
"""The factor by which a repair multiplies the learning rate."""


class NumberRecovery:
    """Finds the repairs of one run.

    Args:
        repairs: How many repairs earlier engines have made.
    """

    def __init__(self, repairs: int = 0) -> None:
        self._repairs = repairs

    def repair(
        self,
        trouble: LossTrouble,
        cause: Cause,
        plan: Plan,
        checkpoints: Iterable[int],
        change: LearningRateChanged | None = None,
        rates: Sequence[tuple[int, float]] = (),
    ) -> RecoveryAction | None:
        """How the run continues; ``None`` if it has to stop.

        Args:
            trouble: What was seen.
            cause: What was found.
            plan: The plan of the run.
            checkpoints: The steps of its checkpoints.
            change: The last learning rate that a command has set; a checkpoint from before it undoes it.
            rates: First step and value of each learning rate.
        """
        start = start_of(trouble, checkpoints)
        if plan.on_nan == "stop" or self._repairs >= MAX_REPAIRS or start is None:
            return None
        skips = plan.on_nan == "skip" or bool(cause.batch)
        fault = trouble.step if cause.step is None else cause.step
        if str(fault) in plan.skip_steps:
            return None  # it did not help
        self._repairs += 1
        changes: dict[str, object] = {}
        actions, was_set = [], ""
        if skips:
            actions.append(f"the batch of step {fault:,} is skipped")
            changes = {"skip_steps": (*plan.skip_steps, str(fault))}
        if change and change.step > start:
            was_set = f"the learning rate was set to {change.learning_rate:g} at step {change.step:,}"
            before = next((rate for step, rate in reversed(rates) if step <= start), 0.0)
            if change.learning_rate > before and change.step <= (trouble.grew_from or trouble.step):
                actions.append(f"the learning rate from before step {change.step:,} is used again")
            else:  # it is not the cause
                was_set += ", and no longer is"
        if not actions:
            factor = plan.learning_rate_factor * RATE_FACTOR
            actions.append(f"the learning rate is halved, to {factor:g} of the plan's")
            changes = {"learning_rate_factor": factor}
        reason = "; ".join(filter(None, (trouble.text, cause.text, was_set)))
        return RecoveryAction(NOT_A_NUMBER, reason, ", and ".join(actions), start, changes)

    def end(self, trouble: LossTrouble, cause: Cause, plan: Plan, checkpoints: Iterable[int]) -> tuple[str, str]:
        """Why the run stops, and what the user can do.

        Args:
            trouble: What was seen.
            cause: What was found.
            plan: The plan of the run.
            checkpoints: The steps of its checkpoints.
        """
        tries = f", also after {self._repairs} repairs" if self._repairs else ""
        reason = "; ".join(filter(None, (f"{trouble.text}{tries}", cause.text)))
        if cause.batch:
            advice = "correct or remove these examples"
        elif plan.policy == "mixed_float16":
            advice = "try --precision mixed_bfloat16 or float32, a lower learning rate or --global-clip-norm 1"
        else:
            advice = "try a lower learning rate or --global-clip-norm 1"
        step = start_of(trouble, checkpoints)
        if step is None:
            return reason, f"{advice}; no checkpoint from before it is kept: keep more with --keep-checkpoints"
        return reason, f"{advice}; the last checkpoint before it is of step {step:,}" if step else advice


def start_of(trouble: LossTrouble, checkpoints: Iterable[int]) -> int | None:
    """The step of the checkpoint to return to after a trouble; 0 if there are none at all.

    No checkpoint has weights that are not finite, but one of the step from which the loss grew, or later, has the
    weights that made it grow: an older one is chosen. If none is kept, it is the oldest: a lower learning rate may
    still help there, and the start would lose all that was learned.

    Returns:
        ``None`` if all checkpoints are from after the trouble.
    """
    steps = sorted(checkpoints)
    usable = [step for step in steps if step <= trouble.step]
    if not usable:
        return None if steps else 0
    last = trouble.step if trouble.grew_from is None else trouble.grew_from - 1
    return newest_until(last, usable) or usable[0]


def newest_until(last: int, checkpoints: Iterable[int]) -> int:
    """The step of the newest checkpoint up to a step; 0 if there is none."""
    return max((step for step in checkpoints if step <= last), default=0)
