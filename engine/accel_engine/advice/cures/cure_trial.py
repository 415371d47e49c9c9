"""Tries a cure: some seconds of training with and without the changes of a plan, from the same start, in turns."""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accel_engine.advice.cures.cure_kinds import OTHER_LOSS, Quantity
from accel_engine.advice.cures.cure_results import CureResult as CureResult
from accel_engine.advice.cures.cure_results import check_compiled, interval_result, learning_result, step_result
from accel_engine.advice.cures.cure_task import cure_task
from accel_engine.advice.cures.interval_trial import measure_intervals
from accel_engine.advice.cures.learning_trial import compare_learning
from accel_engine.devices.device_types import Sample
from accel_engine.events import Event
from accel_engine.measure.plan_trials import PlanTrials
from accel_engine.measure.trial_room import PlacedTrial, check_room
from accel_engine.process.paused_run import paused
from accel_engine.run import RunInfo, RunReader
from accel_engine.run.reading.reader import drop_discarded

PREPARATION_SECONDS = 10.0
"""About how long it takes until the steps of a small model are compiled, for the progress."""

LONGEST_PAUSE = 5.0
"""How much longer than planned a trial may take, as a factor, until the engine resumes a paused run by itself."""

TAKING_TURNS = "taking turns with and without the changes"
"""What a trial of two plans does, in words."""


@dataclass(frozen=True, slots=True)
class CureProgress:
    """How far a trial is.

    Attributes:
        done: Seconds done.
        of: Seconds in all, about.
        detail: What it does now.
    """

    done: float
    of: float
    detail: str


def try_cure(
    directory: Path,
    changes: Mapping[str, Any],
    on_progress: Callable[[CureProgress], None],
    *,
    seconds: float = 10.0,
    should_stop: Callable[[], bool],
    quantity: Quantity | None = None,
) -> CureResult:
    """Train with and without changes of a run's plan, and compare. Blocks; nothing is written to the run.

    A live run is paused while both take turns, not while they are compiled, and resumed in any case.

    Args:
        directory: The run's directory.
        changes: Fields of the plan, with their new values.
        on_progress: Called now and then.
        seconds: How long both take turns, about.
        should_stop: Whether to give up; asked all the time.
        quantity: What is compared; by default it follows from the changed fields.

    Raises:
        AccelError: The changes cannot be tried, and why; or it was cancelled.
    """
    whole = PREPARATION_SECONDS + seconds
    on_progress(CureProgress(0.0, whole, "starting engine processes, which compile the steps"))
    info, events, samples = _recorded(directory)
    task = cure_task(info, events, changes, quantity)
    if info.status.live:
        check_room(events, samples, (PlacedTrial(), PlacedTrial()), info.id)
    has_one = task.quantity is Quantity.INTERVALS  # whose steps are those of both
    with PlanTrials((task.before,) if has_one else (task.before, task.after), should_stop) as trials:

        def prepared(detail: str) -> None:
            on_progress(CureProgress(PREPARATION_SECONDS / 2, whole, detail))

        trials.wait_ready(prepared)
        without, changed = trials.trials[0], trials.trials[-1]
        if task.quantity is not Quantity.MEMORY:
            check_compiled(without, changed)
        what = "measuring steps, validations and checkpoints" if has_one else TAKING_TURNS
        with paused(directory, LONGEST_PAUSE * whole, should_stop) as note:

            def measured(done: float, of: float) -> None:
                share = done / of if of else 1.0
                detail = "; ".join(filter(None, (what, note.now)))
                on_progress(CureProgress(PREPARATION_SECONDS + share * seconds, whole, detail))

            if task.quantity is Quantity.LEARNING:
                by_loss = not OTHER_LOSS & changes.keys()
                preferred = task.balanced_metric or "accuracy"
                learned = compare_learning(trials, seconds, measured, by_loss=by_loss, preferred=preferred)
                result = learning_result(learned, task)
            elif has_one:
                result = interval_result(measure_intervals(without, task.after.plan, seconds, measured))
            else:
                trials.take_turns(seconds, measured)
                result = step_result(without, changed, task)
    return replace(result, text="; ".join(filter(None, (result.text, note.after))))


def _recorded(directory: Path) -> tuple[RunInfo, list[Event], tuple[Sample, ...]]:
    with closing(RunReader(directory, steps=False, max_samples=64)) as reader:
        info, update = reader.info(), reader.poll()
    return info, drop_discarded(update.events), tuple(update.samples)
