"""Rules on validations, checkpoints and tracing that interrupt the steps too often."""

import math
import statistics
from collections.abc import Iterator
from itertools import pairwise

from accel_engine.advice.finding import Confidence, Cure, Evidence, Finding, Gain, speed_finding
from accel_engine.advice.recorded import Recorded
from accel_engine.advice.time_spent import TimeSpent, later_records, time_spent
from accel_engine.events import CheckpointSaved
from accel_engine.plan.array_bytes import FLOAT32_BYTES, optimizer_slots
from accel_engine.words.numbers import percent, size, span, times

VALIDATION_SHARE, CHECKPOINT_SHARE, TRACING_SHARE = 0.35, 0.1, 0.2
"""Shares of a run's time from which validations within epochs, checkpoints and tracing are too many."""

EPOCH_VALIDATION_SHARE = 0.5
"""The same for a validation after each epoch, which is the default, and more often welcome than not."""

WANTED_SHARE = {"validation": 0.15, "checkpoints": 0.03}
"""Shares that the cures aim at."""

MIN_COUNT = 3
"""Validations, checkpoints or records that must have been measured."""

MIN_LOST = 2.0
"""Seconds that must have been lost."""

MIN_LOST_BY_DEFAULT = 30.0
"""The same for a validation after each epoch."""

SLOW_DISK, SLOW_SAVE = 30e6, 2.0
"""Bytes per second below which a disk is slow, a fifth of what a hard disk writes; seconds of a checkpoint from which
it is the disk that takes them."""


def frequent_validation(recorded: Recorded) -> Iterator[Finding]:
    """Validations take more than a third of the time."""
    spent, steps = time_spent(recorded), [event.step for event in recorded.validations if not event.by_command]
    if spent is None or len(steps) < MIN_COUNT:
        return
    within_epochs = _usual_gap(steps) < _epoch_steps(recorded)
    least, lost = (VALIDATION_SHARE, MIN_LOST) if within_epochs else (EPOCH_VALIDATION_SHARE, MIN_LOST_BY_DEFAULT)
    if spent.share("validation") < least or spent.spent["validation"] < lost:
        return
    share, every = spent.share("validation"), _every(recorded, steps, _multiple(spent, "validation"))
    yield speed_finding(
        id="frequent-validation",
        title=f"Validation takes {percent(share)} of the time",
        evidence=(Evidence(f"{len(steps):,} validations of about {span(_seconds(recorded))}", "steps/s", spent.steps),),
        confidence=Confidence.CERTAIN,
        cost=f"{span(spent.spent['validation'])} of {span(spent.seconds)}",
        cures=(
            Cure(
                f"validate less often: --validation-every {every!r}",
                {"validation_every": every},
                script=f"validate less often: validation_freq={_multiple(spent, 'validation')} of fit",
                gain=_gain(spent, "validation"),
            ),
            Cure(
                "validate with fewer examples: a smaller --validation-split",
                script="validate with fewer examples: validation_steps of fit",
            ),
        ),
        weight=share - WANTED_SHARE["validation"],
    )


def frequent_checkpoints(recorded: Recorded) -> Iterator[Finding]:
    """Checkpoints take more than a tenth of the time; tells whether they are many, or the disk is slow."""
    spent, saved = time_spent(recorded), recorded.all(CheckpointSaved)
    if spent is None or len(saved) < MIN_COUNT or spent.share("checkpoints") < CHECKPOINT_SHARE:
        return
    if spent.spent["checkpoints"] < MIN_LOST:
        return
    share = spent.share("checkpoints")
    seconds = sum(event.seconds for event in saved) / len(saved)
    rate = _disk_rate(recorded, seconds)
    slow = rate is not None and rate < SLOW_DISK and seconds >= SLOW_SAVE
    disk = [Evidence(f"about {size(rate)}/s: the disk is slow")] if slow and rate else []
    every = _every(recorded, [event.step for event in saved], _multiple(spent, "checkpoints"))
    yield speed_finding(
        id="slow-disk" if slow else "frequent-checkpoints",
        title=f"Checkpoints take {percent(share)} of the time",
        evidence=(Evidence(f"{len(saved):,} checkpoints of about {span(seconds)}", "steps/s", spent.steps), *disk),
        confidence=Confidence.CERTAIN,
        cost=f"{span(spent.spent['checkpoints'])} of {span(spent.seconds)}",
        cures=(
            Cure(
                f"save less often: --checkpoint-every {every!r}",
                {"checkpoint_every": every},
                script="save less often: save_freq of ModelCheckpoint",
                gain=_gain(spent, "checkpoints"),
            ),
            *([Cure("keep runs on a faster disk: ACCEL_TUI_HOME names their directory")] if slow else []),
        ),
        weight=share,
    )


def retracing(recorded: Recorded) -> Iterator[Finding]:
    """Steps are traced again and again, as the shapes of batches change."""
    spent, later = time_spent(recorded), later_records(recorded)
    traced = [event for event in later if event.spent.get("tracing", 0.0) >= TRACING_SHARE * event.seconds / 2]
    if spent is None or len(traced) < MIN_COUNT or spent.share("tracing") < TRACING_SHARE:
        return  # the first smaller batch, or layers that train from an epoch on, are traced once
    share = spent.share("tracing")
    yield speed_finding(
        id="retracing",
        title=f"Tracing graphs again takes {percent(share)} of the time",
        evidence=(
            Evidence(
                f"{span(spent.spent['tracing'])} of tracing after step {spent.steps[0]:,}: batches have new shapes",
                "steps/s",
                spent.steps,
            ),
        ),
        confidence=Confidence.LIKELY,
        cost=f"{span(spent.spent['tracing'])} of {span(spent.seconds)}",
        cures=(
            Cure(
                "give batches one shape: pad sequences and images to one size, or to a few sizes; drop a smaller last "
                "batch with --last-batch drop",
                gain=_gain(spent, "tracing"),
            ),
        ),
        weight=share,
    )


def _seconds(recorded: Recorded) -> float:
    """How long a validation takes, on average."""
    return statistics.fmean(event.seconds for event in recorded.validations if not event.by_command)


def _every(recorded: Recorded, steps: list[int], multiple: int) -> str:
    """A longer interval as the plan takes it: a multiple of the usual one between some steps."""
    usual, epoch = _usual_gap(steps), _epoch_steps(recorded)
    if epoch and usual % epoch == 0:
        epochs = usual // epoch * multiple
        return f"{epochs} epochs" if epochs > 1 else "1 epoch"
    return f"{usual * multiple} steps"


def _usual_gap(steps: list[int]) -> int:
    gaps = sorted(after - before for before, after in pairwise(steps) if after > before)
    return gaps[len(gaps) // 2] if gaps else 1


def _epoch_steps(recorded: Recorded) -> int:
    return (recorded.built.steps_per_epoch or 0) if recorded.built else 0


def _multiple(spent: TimeSpent, what: str) -> int:
    """How many times as seldom something must be to take the wanted share of the time."""
    rest, wanted = 1 - spent.share(what), WANTED_SHARE[what]
    return max(2, math.ceil(spent.share(what) * (1 - wanted) / (max(rest, 0.01) * wanted)))


def _gain(spent: TimeSpent, what: str) -> Gain:
    share, left = spent.share(what), WANTED_SHARE.get(what, 0.0)
    factor = (1 - left) / max(1 - share, 0.01)
    return Gain(f"{times(factor)} the steps in the same time", "the measured share of the time", factor)


def _disk_rate(recorded: Recorded, seconds: float) -> float | None:
    """Bytes per second at which checkpoints are written, by the number of weights; ``None`` if that is unknown."""
    built, plan = recorded.built, recorded.plan
    if built is None or built.parameters is None or plan is None or seconds <= 0:
        return None
    trainable = built.parameters if built.trainable is None else built.trainable
    return FLOAT32_BYTES * (built.parameters + trainable * optimizer_slots(plan)) / seconds
