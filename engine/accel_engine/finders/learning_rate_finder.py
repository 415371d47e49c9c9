"""Finds a learning rate: a ramp through the real loop for each of several seeds, in its own processes."""

import math
import os
import statistics
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from accel_engine import strategies
from accel_engine.errors import PlanError, RunError, UsageError
from accel_engine.finders.rate_curve import Ramp, has_exploded, ramp_rates
from accel_engine.finders.rate_suggestions import Rule, Suggestion, Suggestions, suggest
from accel_engine.measure.plan_trials import PlanTrial, PlanTrials
from accel_engine.measure.trial_memory import check_trial_memory, place_trial
from accel_engine.plan import Plan
from accel_engine.plan.changed_plan import scaling_factor
from accel_engine.plan.options import OptionSpec, option
from accel_engine.plan.placement import check_measurable, find_cluster
from accel_engine.process.run_change import PauseNote, paused, send_to_run, steps_taken
from accel_engine.requests.try_plan import TrialStart
from accel_engine.run import RunInfo, read_run
from accel_engine.run.directory.run_paths import check_is_here, latest_checkpoint
from accel_engine.run.history.history import read_history

STEPS_PER_REQUEST = 5
"""Steps between two looks at the losses."""

LEAST_STEPS = 20
"""Steps of a ramp at least: fewer say nothing."""

LAST_PART = 4
"""Suggestions are compared by the mean loss over the last of this many parts of the steps."""

LONGEST_PAUSE = 600.0
"""Seconds after which a paused run resumes by itself: this program was killed, or ramps take longer."""


@dataclass(frozen=True, slots=True)
class RampOptions:
    """How learning rates are tried.

    Raises:
        UsageError: The range is empty or reversed, or there are too few steps.
    """

    seeds: int = option(3, OptionSpec("Number of ramps.", int, minimum=1, maximum=20))
    """Number of ramps, each with its own initial weights and order of the examples; from a checkpoint, only with an
    order."""
    steps: int = option(
        120, OptionSpec("Steps of each ramp.", int, minimum=LEAST_STEPS, label="ramp steps", flags=("--ramp-steps",))
    )
    compare_steps: int = option(
        200, OptionSpec("Steps with each suggestion, to choose one; 0 for none.", int, minimum=0)
    )
    """Steps for which the plan is trained with each suggestion, from its initial weights; 0 for none."""
    lowest: float = option(1e-6, OptionSpec("Rate to begin at.", float, above=0))
    highest: float = option(10.0, OptionSpec("Rate to end at.", float, above=0))

    def __post_init__(self) -> None:
        if not 0 < self.lowest < self.highest:
            raise UsageError(
                f"the lowest learning rate, {self.lowest:g}, must be above 0 and below the highest, {self.highest:g}"
            )
        if self.steps < LEAST_STEPS:
            raise UsageError(f"a ramp needs at least {LEAST_STEPS} steps")


@dataclass(frozen=True, slots=True)
class RampProgress:
    """How far the ramps are."""

    detail: str
    """The present phase, in words."""
    ramps: tuple[Ramp, ...] = ()
    """The ramps so far, the last one perhaps unfinished."""
    seed: int = 0
    """Number of the present ramp, from 1; 0 before the first one."""
    seeds: int = 0
    """Number of all ramps."""
    share: float = 0.0
    """How much of them is done, 0 to 1."""


OnRamp = Callable[[RampProgress], object]


@dataclass(frozen=True, slots=True)
class FoundRate:
    """The result of the search for a learning rate."""

    suggestions: Suggestions
    """The learning rates of the optimizer, or why there are none."""
    ramps: tuple[Ramp, ...]
    """A ramp for each seed."""
    factor: float
    """By how much the plan multiplies its learning rate to get the optimizer's."""
    step: int = 0
    """The step that all ramps began at; 0 for the initial weights."""
    rate: float | None = None
    """The optimizer's constant rate before; ``None`` if it follows a schedule."""
    has_schedule: bool = False
    """Whether the plan has a schedule, whose highest rate the suggestions are."""
    notes: tuple[str, ...] = ()
    """Notes for the user."""
    compared: Mapping[Rule, float] = field(default_factory=dict)
    """The loss after some steps with each suggestion; empty if they were not compared."""
    compared_steps: int = 0
    """Number of these steps."""

    @property
    def compared_last(self) -> int:
        """Over how many of the last of these steps the losses are means."""
        return _last(self.compared_steps)

    @property
    def best(self) -> Suggestion | None:
        """The suggestion to take; ``None`` if there is none."""
        return self.suggestions.best_of(self.compared)

    def planned(self, rate: float) -> float:
        """The plan's learning rate for one of the optimizer, rounded to three digits."""
        return float(f"{rate / self.factor:.3g}")

    @property
    def optimizer_rate(self) -> float | None:
        """The optimizer's learning rate to take, rounded to three digits; ``None`` if there is none."""
        best = self.best
        return None if best is None else float(f"{best.rate:.3g}")

    @property
    def learning_rate(self) -> float | None:
        """The plan's learning rate to take; ``None`` if there is none."""
        best = self.best
        return None if best is None else self.planned(best.rate)


def check_plan(plan: Plan, total_steps: int = 0) -> None:
    """Check that a learning rate can be found for a plan, before TensorFlow starts.

    Args:
        plan: The plan.
        total_steps: Steps of all its epochs; 0 if they are unknown.

    Raises:
        PlanError: The plan's strategy or cluster cannot be measured, or the plan has too few steps.
        UsageError: The environment describes an invalid cluster.
    """
    entry = strategies.find(plan.strategy)
    check_measurable(entry, find_cluster(entry, os.environ))
    if 0 < total_steps < LEAST_STEPS:
        reason = f"too few: the plan takes {total_steps} steps in all, and a ramp needs at least {LEAST_STEPS}"
        raise PlanError("epochs", plan.epochs, reason)


def find_learning_rate(
    plan: Plan,
    on_progress: OnRamp = lambda _: None,
    *,
    options: RampOptions | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> FoundRate:
    """Find the learning rate of a plan from its initial weights. Blocks; nothing is written.

    Args:
        plan: The plan, checked.
        on_progress: Called now and then.
        options: How rates are tried.
        should_stop: Whether to give up; asked all the time.

    Raises:
        AccelError: No learning rate can be found, or the search was cancelled.
        OSError: No process can be started.
    """
    check_plan(plan)
    check_trial_memory((place_trial(plan),))
    return _find(TrialStart(plan), options or RampOptions(), on_progress, should_stop, None)


def find_rate_of_run(
    directory: Path,
    on_progress: OnRamp = lambda _: None,
    *,
    options: RampOptions | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> FoundRate:
    """Find a learning rate to continue a run with, from its last checkpoint. Blocks; the run is not changed.

    A live run writes a checkpoint first if it has none, and is paused during the ramps, not while they are compiled.

    Args:
        directory: The run's directory.
        on_progress: Called now and then.
        options: How rates are tried.
        should_stop: Whether to give up; asked all the time.

    Raises:
        AccelError: No learning rate can be found, or the search was cancelled.
        OSError: No process can be started.
    """
    info, plan, total_steps = _recorded(directory)
    check_plan(plan, total_steps)
    check_trial_memory((place_trial(plan),))
    step = latest_checkpoint(directory)
    if not step and info.status.live and steps_taken(directory):
        send_to_run(directory, "checkpoint")
        step = latest_checkpoint(directory)
    start = TrialStart(plan, step, directory if step else None)
    return _find(start, options or RampOptions(), on_progress, should_stop, directory)


def _recorded(directory: Path) -> tuple[RunInfo, Plan, int]:
    """A run, its plan with what it chose by itself, and the plan's steps; 0 if they are unknown."""
    info = read_run(directory)
    plan = info.require_plan("a learning rate can only be found for a run of this program")
    check_is_here(directory, "this machine has no checkpoint of it: use accel-tui find learning-rate --run there")
    if strategies.find(plan.strategy).processes:
        raise RunError(
            f"run {info.id} trains in several processes, each with its own checkpoints: find the rate of its plan, "
            "from the initial weights, without --run"
        )
    history = read_history(directory)
    steps_per_epoch = history.built.steps_per_epoch if history.built else None
    return info, history.autotuned_plan(plan), plan.epochs * (steps_per_epoch or 0)


def _find(
    start: TrialStart, options: RampOptions, on_progress: OnRamp, should_stop: Callable[[], bool], live: Path | None
) -> FoundRate:
    on_progress(RampProgress("starting an engine process, which compiles the steps"))
    with PlanTrials((start,), should_stop) as trials:
        trials.wait_ready(lambda detail: on_progress(RampProgress(detail)))
        trial = trials.trials[0]
        steps = _ramp_steps(trial, options)
        ready, plan = trial.ready, start.plan
        with paused(live, LONGEST_PAUSE, should_stop) if live else nullcontext(PauseNote()) as note:
            ramps = _ramps(trial, options, steps, on_progress, note.now)
            suggestions = suggest(ramps)
            count = 0 if start.step else min(options.compare_steps, _total_steps(trial) or options.compare_steps)
            compared = _compare(trial, suggestions, ramps, count, on_progress) if count else {}
    factor = scaling_factor(plan, ready.replicas) * plan.learning_rate_factor
    notes = [note.after] if note.after else []
    if start.step and not ready.has_orders and options.seeds > 1:
        notes.append("one ramp only, as every seed gives the same order of the examples")
    if live and not start.step:
        notes.append("measured from the initial weights, as the run has no checkpoint yet")
    if strategies.find(plan.strategy).coordinated and plan.local_workers > 1:
        notes.append("ramps take one step after the other, not several at the same time as the workers do in training")
    if steps < options.steps:
        notes.append(f"ramps of {steps} steps, as the plan takes no more")
    has_schedule = plan.schedule not in ("auto", "constant") or plan.warmup > 0
    return FoundRate(
        suggestions, ramps, factor, start.step, ready.learning_rate, has_schedule, tuple(notes), compared, count
    )


def _total_steps(trial: PlanTrial) -> int:
    """Steps of the whole plan; 0 if they are unknown."""
    return trial.start.plan.epochs * trial.ready.steps_per_epoch


def _ramp_steps(trial: PlanTrial, options: RampOptions) -> int:
    """Steps of a ramp: at most as many as the whole plan has."""
    total = _total_steps(trial)
    check_plan(trial.start.plan, total)
    return min(options.steps, total) if total else options.steps


def _compare(
    trial: PlanTrial, suggestions: Suggestions, ramps: tuple[Ramp, ...], steps: int, on_progress: OnRamp
) -> dict[Rule, float]:
    """The loss of the last steps of short trainings with each suggestion, in the same order of the examples.

    Not from a checkpoint: in the middle of a run, the lowest rate has the lowest loss for a while.
    """
    found: dict[Rule, float] = {}
    for each in suggestions.found:
        detail = f"comparing the suggestions: {steps} steps at {each.rate:.2g}"
        on_progress(RampProgress(detail, ramps, len(ramps), len(ramps), 1.0))
        trial.process.restore(trial.start.plan.seed)
        losses = trial.process.take_at([each.rate]).losses
        losses += trial.process.take(steps - 1).losses if steps > 1 else ()
        last = losses[-_last(steps) :]
        found[each.rule] = statistics.fmean(last) if all(map(math.isfinite, last)) else math.inf
    return found


def _last(steps: int) -> int:
    return max(1, steps // LAST_PART)


def _ramps(trial: PlanTrial, options: RampOptions, steps: int, on_progress: OnRamp, detail: str) -> tuple[Ramp, ...]:
    rates = ramp_rates(options.lowest, options.highest, steps)
    count = options.seeds if trial.ready.has_orders or not trial.start.step else 1
    done: list[Ramp] = []
    for number in range(count):
        seed = trial.start.plan.seed + number
        trial.process.restore(seed, initialize=True)
        losses: list[float] = []
        ramp = Ramp.of(seed, rates, losses)
        while len(losses) < steps and not has_exploded(losses):
            first = len(losses)
            losses += trial.process.take_at(rates[first : first + STEPS_PER_REQUEST]).losses
            ramp = Ramp.of(seed, rates, losses)
            share = (number + len(losses) / steps) / count
            on_progress(RampProgress(detail, (*done, ramp), number + 1, count, share))
        done.append(ramp)
    return tuple(done)
