"""Tries a cure: some seconds of training with and without the changes of a plan, from the same start, in turns."""

import math
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accel_engine import strategies
from accel_engine.devices import detect
from accel_engine.devices.device_types import Sample
from accel_engine.errors import RunError
from accel_engine.events import DevicesFound, Event
from accel_engine.launch.cure_kinds import OTHER_LOSS, Quantity, check_can_be_tried, quantity_of
from accel_engine.launch.learning_trial import LearningTrial, compare_learning
from accel_engine.launch.paused_run import paused
from accel_engine.launch.plan_trials import PlanTrial, PlanTrials
from accel_engine.launch.settled_plan import settled_plan
from accel_engine.launch.trial_process import TrialStart
from accel_engine.launch.trial_room import check_room
from accel_engine.launch.trial_statistics import Comparison, Verdict
from accel_engine.plan import Plan, resolved_plan
from accel_engine.plan.field_needs import without_ignored
from accel_engine.run import RunInfo, RunReader, Status
from accel_engine.run.plan_changes import CHANGEABLE
from accel_engine.run.reader import drop_discarded
from accel_engine.run.run_paths import latest_checkpoint

PREPARATION_SECONDS = 10.0
"""About how long it takes until the steps of a small model are compiled, for the progress."""

LONGEST_PAUSE = 10.0
"""How much longer than planned a trial may take, as a factor, until the engine resumes a paused run by itself."""

LESS_MEMORY = 0.97
"""A ratio of peaks from which memory is saved; two processes of one plan differed by less than a percent."""


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


@dataclass(frozen=True, slots=True)
class CureResult:
    """What a cure gains.

    Attributes:
        before: The measured value without the changes; infinite where memory ran out.
        after: The same with them; infinite where memory ran out.
        unit: Of both, such as ``examples/s``, ``GB`` or ``validation loss``.
        low: The lower end of the 95 percent interval of the value with the changes, if that without is ``before``;
            ``-inf`` if there were too few rounds to tell.
        high: The upper end; ``inf`` if there were too few rounds to tell.
        better: Whether the changes are better, and that is no chance as far as the rounds tell.
        text: All of it in words, with how it was measured.
    """

    before: float
    after: float
    unit: str
    low: float
    high: float
    better: bool
    text: str


@dataclass(frozen=True, slots=True)
class CureTask:
    """The two plans that are tried, and what of them is compared.

    Attributes:
        before: Without the changes.
        after: With them.
        quantity: What is compared.
        changes: The changes.
    """

    before: TrialStart
    after: TrialStart
    quantity: Quantity
    changes: Mapping[str, Any]

    @property
    def start(self) -> str:
        """Where both begin, in words."""
        return f"from the checkpoint of step {self.before.step:,}" if self.before.step else "from the initial weights"


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
    on_progress(CureProgress(0.0, whole, "starting two engine processes, which compile the steps"))
    info, events, samples = _recorded(directory)
    task = cure_task(info, events, changes, quantity)
    if info.status.live:
        check_room(events, samples, 2, info.id)
    with PlanTrials((task.before, task.after), should_stop) as trials:

        def prepared(detail: str) -> None:
            on_progress(CureProgress(PREPARATION_SECONDS / 2, whole, detail))

        trials.wait_ready(prepared)
        without, changed = trials.trials
        if task.quantity is not Quantity.MEMORY:
            _check_compiled(without, changed)
        with paused(directory, LONGEST_PAUSE * whole, should_stop) as note:

            def measured(done: float, of: float) -> None:
                share = done / of if of else 1.0
                detail = "; ".join(filter(None, ("taking turns with and without the changes", note.now)))
                on_progress(CureProgress(PREPARATION_SECONDS + share * seconds, whole, detail))

            if task.quantity is Quantity.LEARNING:
                by_loss = not OTHER_LOSS & changes.keys()
                learned = compare_learning(trials, seconds, measured, by_loss=by_loss)
                result = learning_result(learned, task)
            else:
                trials.take_turns(seconds, measured)
                result = step_result(without, changed, task)
    return replace(result, text="; ".join(filter(None, (result.text, note.after))))


def cure_task(
    info: RunInfo, events: list[Event], changes: Mapping[str, Any], quantity: Quantity | None = None
) -> CureTask:
    """The plans of a trial.

    Args:
        info: The run.
        events: Its events, without those of discarded steps.
        changes: Fields of the plan, with their new values.
        quantity: What is compared; by default it follows from the changed fields.

    Raises:
        AccelError: The changes cannot be tried, and why.
    """
    if not info.has_engine:
        raise RunError(f"run {info.id} was {info.made}: only a run of this program can be tried with other settings")
    if info.plan is None:
        raise RunError(f"the plan of run {info.id} cannot be read on this machine, so nothing can be tried")
    if strategies.find(info.plan.strategy).processes:
        raise RunError(f"strategy {info.plan.strategy} trains in several processes: only plans of one can be tried")
    found = [event for event in events if isinstance(event, DevicesFound)]
    on_cpu = bool(found) and all(device.kind == "cpu" for device in found[-1].devices)
    check_can_be_tried(changes)
    quantity = quantity or quantity_of(changes, on_cpu=on_cpu)
    before = settled_plan(info.plan, events)
    after = _with(before, changes)
    if after.to_mapping() == before.to_mapping():
        raise RunError("the run has these settings already")
    step = _first_step(info, changes, quantity)
    run = info.directory if step else None
    return CureTask(TrialStart(before, step, run), TrialStart(after, step, run), quantity, changes)


def _with(plan: Plan, changes: Mapping[str, Any]) -> Plan:
    """A plan with changes, checked on this machine; ``xla`` ``auto`` is what autotuning would try, ``on``."""
    tried = {**changes, **({"xla": "on"} if changes.get("xla") == "auto" else {})}
    values = without_ignored({**plan.to_mapping(), **tried}, wanted=tried)
    return resolved_plan.check(Plan.from_mapping(values), detect().devices, chosen=tried).plan


def _first_step(info: RunInfo, changes: Mapping[str, Any], quantity: Quantity) -> int:
    """The step of the checkpoint to start from, as the run would go on; 0 where it would start anew."""
    if not CHANGEABLE.issuperset(changes):
        return 0
    if quantity is Quantity.LEARNING and info.status is Status.FINISHED:
        return 0
    return latest_checkpoint(info.directory)


def _recorded(directory: Path) -> tuple[RunInfo, list[Event], tuple[Sample, ...]]:
    with closing(RunReader(directory, steps=False, max_samples=64)) as reader:
        info, update = reader.info(), reader.poll()
    return info, drop_discarded(update.events), tuple(update.samples)


def step_result(without: PlanTrial, changed: PlanTrial, task: CureTask) -> CureResult:
    """The result of steps that took turns."""
    if task.quantity is Quantity.MEMORY:
        return _memory_result(without, changed, task)
    _check_compiled(without, changed)
    comparison = changed.compared_with(without)
    before = without.examples_per_second
    after = before * comparison.value
    compiled = f"compiled in {without.ready.compile_seconds:.1f} and {changed.ready.compile_seconds:.1f} s"
    text = (
        f"{after:,.0f} examples/s with the changes, {before:,.0f} without: {_factor(comparison)}. "
        f"{comparison.rounds} rounds in turns, {task.start}; {compiled}"
    )
    return CureResult(
        before,
        after,
        "examples/s",
        before * comparison.low,
        before * comparison.high,
        comparison.verdict is Verdict.BETTER,
        text,
    )


def _check_compiled(without: PlanTrial, changed: PlanTrial) -> None:
    """Check that both plans can be tried.

    Raises:
        RunError: One cannot; which and why.
    """
    for trial, which in ((without, "without"), (changed, "with")):
        if trial.problem:
            raise RunError(f"the plan {which} the changes cannot be tried: {trial.problem}") from trial.problem


def _factor(comparison: Comparison) -> str:
    interval = f"{comparison.low:.2f} to {comparison.high:.2f} times as fast"
    if not math.isfinite(comparison.low) or not math.isfinite(comparison.high):
        return "too few rounds to tell"
    match comparison.verdict:
        case Verdict.BETTER:
            return f"faster, {interval}"
        case Verdict.WORSE:
            return f"slower, {interval}"
    return f"no difference that these rounds show, {interval}"


def _memory_result(without: PlanTrial, changed: PlanTrial, task: CureTask) -> CureResult:
    """The result of a trial for memory, where running out of it is a result as well."""
    for trial in (without, changed):
        if trial.problem and not trial.problem.out_of_memory:
            raise trial.problem
    before, after = (math.inf if each.problem else _gigabytes(each) for each in (without, changed))
    better = after < LESS_MEMORY * before or (math.isfinite(after) and not math.isfinite(before))
    shown = [f"{value:.2f} GB" if math.isfinite(value) else "out of memory" for value in (after, before)]
    text = f"peak memory: {shown[0]} with the changes, {shown[1]} without; {task.start}"
    if without.turns and changed.turns and not (without.problem or changed.problem):
        text += f"; {_factor(changed.compared_with(without))}"
    return CureResult(before, after, "GB", after, after, better, text)


def _gigabytes(trial: PlanTrial) -> float:
    if trial.memory is None:
        raise RunError("this system does not tell how much memory a process takes, so a trial cannot compare it")
    return trial.memory / 1e9


def learning_result(learned: LearningTrial, task: CureTask) -> CureResult:
    """The result of a trial of learning."""
    comparison = learned.comparison
    words = {
        Verdict.BETTER: "better",
        Verdict.WORSE: "worse",
        Verdict.NO_DIFFERENCE: "no difference that these orders show",
    }[comparison.verdict]
    orders = f"{comparison.rounds} orders of the examples" if comparison.rounds > 1 else "one order of the examples"
    text = (
        f"{learned.metric} {learned.after:.4g} with the changes, {learned.before:.4g} without: {words}. "
        f"After {learned.steps:,} steps {task.start}, in {orders}"
    )
    low, high = learned.before + comparison.low, learned.before + comparison.high
    return CureResult(
        learned.before, learned.after, learned.metric, low, high, comparison.verdict is Verdict.BETTER, text
    )
