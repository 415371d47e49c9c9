"""Losses that are not finite."""

import re
from collections.abc import Iterator

from accel_engine.advice.finding import Confidence, Cure, Evidence, Finding
from accel_engine.advice.quality.findings import clip_cures, of_loss, quality_finding, rate_cure, text_cure
from accel_engine.advice.quality.learning import Learning
from accel_engine.advice.quality.usual_rates import is_rate_high, rates_of
from accel_engine.advice.recorded import RecordedSeries
from accel_engine.events import NOT_A_NUMBER, Outcome, Recovered
from accel_engine.run.history.history import skipped_steps
from accel_engine.run.store.steps import THROUGHPUT, TIME

_AT_FAULT = re.compile(r"\b(inputs|targets|weights)\b[^;]*\b(not finite|extreme)\b[^;]*\(")
"""Finds the engine's message on a batch whose examples are at fault."""

MIN_LOST = 3
"""Steps at the end of a live run whose losses must be lost: a single one may be infinite."""

MIN_LOST_SCALED = 20
"""The same with ``mixed_float16``, also of an ended run: its loss scale is halved at each such step."""


def not_a_number(learning: Learning) -> Iterator[Finding]:
    """The loss is NaN or infinite up to the last step, or was so before a repair."""
    repairs, first = number_repairs(learning), _first_lost(learning)
    if first is not None:
        yield quality_finding(
            "not-a-number",
            "The loss is not a number",
            [
                of_loss(learning, f"the loss is NaN or infinite from step {first:,} on", (first, first + 1)),
                *(Evidence(text) for text in _engine_findings(learning) if text),
            ],
            "all weights are NaN from then on",
            _cures(learning),
            weight=1.0,
            confidence=Confidence.CERTAIN,
        )
    elif repairs:
        yield quality_finding(
            "not-a-number",
            "The loss was not a number, and training returned",
            [_repair_text(learning, repairs[0])],
            "steps are trained again from a checkpoint",
            _cures(learning),
            weight=0.5,
            confidence=Confidence.CERTAIN,
        )


def _cures(learning: Learning) -> list[Cure]:
    """Correct the examples that the engine has found at fault; else a usual learning rate, or a tenth of one."""
    rate, usual, cures = learning.highest_rate, rates_of(learning), list[Cure]()
    if found := next((text for text in _engine_findings(learning) if _AT_FAULT.search(text)), ""):
        cures.append(
            text_cure(f"Correct or remove what the engine has found: {found}", "x = x[np.isfinite(x).all(axis=1)]")
        )
    elif rate:
        wanted = usual.usual if usual and is_rate_high(learning) else rate / 10
        cures.append(rate_cure(wanted, "steps that stay finite", "updates in proportion to the rate"))
    return [*cures, *clip_cures(learning)]


def _engine_findings(learning: Learning) -> list[str]:
    """The causes that the engine has found for losses or weights that are not finite."""
    ended = learning.recorded.ended
    return [repair.reason for repair in number_repairs(learning)] + [ended.reason if ended else ""]


def _repair_text(learning: Learning, repair: Recovered) -> Evidence:
    step = repair.failed_step
    reason = repair.reason or f"the loss was NaN or infinite about step {step:,}"
    return of_loss(learning, ": ".join(filter(None, (reason, repair.action))), (step, step + 1))


def number_repairs(learning: Learning) -> list[Recovered]:
    """The repairs of losses or weights that were not finite, or of a loss that exploded."""
    return [each for each in learning.recorded.all(Recovered) if each.trouble == NOT_A_NUMBER]


def has_lost(learning: Learning) -> bool:
    """Whether a loss was not finite: of any step in a run of this program, of the last ones in a script."""
    if not learning.loss_name or learning.recorded.info.kind != "training":
        return _first_lost(learning) is not None
    taken = _taken(learning, learning.first, learning.recorded.steps)
    return taken > int(_losses(learning).finite.sum())


def _first_lost(learning: Learning) -> int | None:
    """The first of the last steps whose losses are all not finite; ``None`` if the last loss is.

    A script may leave steps out, so there, as many as a tenth of the run are needed.
    """
    if not learning.loss_name:
        return None
    is_plan = learning.recorded.info.kind == "training"
    return _first_lost_of_plan(learning) if is_plan else _first_lost_of_script(learning)


def _first_lost_of_plan(learning: Learning) -> int | None:
    """The same for a run of this program, which records the loss of all steps but those that it skips."""
    steps, loss = learning.recorded.steps, _losses(learning)
    bucket = int(loss.first[-1]) if len(loss) else learning.first
    stop = min(bucket + loss.width, steps) if len(loss) else bucket
    within = max(0, _taken(learning, bucket, stop) - int(loss.finite[-1])) if len(loss) else 0
    after = _taken(learning, stop, steps)
    if not after and not has_failed(learning):
        return None  # those within the last bucket may be any of its steps
    return stop - within if within + after >= _min_lost(learning) else None


def _losses(learning: Learning) -> RecordedSeries:
    """The loss, also one that need not fall."""
    return learning.recorded.of(learning.loss_name).between(learning.first, learning.recorded.steps)


def _taken(learning: Learning, first: int, stop: int) -> int:
    """Number of steps with a loss, of some steps."""
    skipped = learning.recorded.history.skipped_steps | skipped_steps(learning.settings.get("skip_steps"))
    return stop - first - sum(first <= step < stop for step in skipped)


def _min_lost(learning: Learning) -> int:
    """Lost steps from which no later one has a finite loss."""
    recorded = learning.recorded
    if has_failed(learning):
        return 1
    if recorded.built is not None and recorded.built.precision == "mixed_float16":
        return MIN_LOST_SCALED
    return MIN_LOST if recorded.info.status.live else 1


def has_failed(learning: Learning) -> bool:
    """Whether the run has failed."""
    ended = learning.recorded.ended
    return ended is not None and ended.outcome is Outcome.FAILED


def _first_lost_of_script(learning: Learning) -> int | None:
    recorded, loss = learning.recorded, learning.loss
    if not len(loss):
        return None
    last = int(loss.first[-1]) + loss.width
    is_lost = recorded.steps - last >= max(3, recorded.steps // 10) and bool((loss.finite >= loss.width).all())
    return last if is_lost and not _logs_something_else(learning, last) else None


def _logs_something_else(learning: Learning, step: int) -> bool:
    """Whether a script logs other values from a step on than before, so that the loss is left out, not lost."""
    recorded = learning.recorded
    others = [series for name, series in recorded.series.items() if name not in (learning.loss_name, TIME, THROUGHPUT)]
    return any(
        len(each.between(step, recorded.steps)) and not len(each.between(learning.first, step)) for each in others
    )
