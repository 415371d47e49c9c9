"""Finds a batch size: throughput and memory of rising sizes through the real loop, each in its own processes."""

import os
from collections.abc import Callable
from dataclasses import replace

from accel_engine import strategies
from accel_engine.devices import detect
from accel_engine.errors import RunError
from accel_engine.finders.throughput import (
    ChosenSizes,
    FoundSize,
    MeasuredSize,
    OnSize,
    SizeOptions,
    SizeProgress,
    choose_sizes,
    expected_sizes,
    got_slower,
    leaves_margin,
    predicted_memory,
    sizes_between,
)
from accel_engine.measure.plan_trials import PlanTrial, PlanTrials
from accel_engine.measure.remaining_time import RemainingTime
from accel_engine.measure.trial_memory import check_trial_memory, place_trial
from accel_engine.measure.trial_process import TrialFailedError
from accel_engine.memory import available_memory
from accel_engine.plan import Plan
from accel_engine.plan.placement import check_measurable, find_cluster
from accel_engine.plan.resolved_plan import resolve
from accel_engine.requests.try_plan import TrialReady, TrialStart
from accel_engine.words import numbers

SMALLEST = 8
"""Examples of a replica that the first size has at least, unless the user says otherwise."""

CONFIRM_FACTOR = 2.0
"""How much longer than a size the answer is measured again."""

STEP_SECONDS = 2.0
"""A step that takes longer than this is the last one: larger ones would take minutes to measure."""


def check_plan(plan: Plan) -> None:
    """Check that batch sizes can be measured for a plan, before TensorFlow starts.

    Raises:
        PlanError: The plan's strategy or cluster cannot be measured.
        UsageError: The environment describes an invalid cluster.
    """
    entry = strategies.find(plan.strategy)
    check_measurable(entry, find_cluster(entry, os.environ))


def find_batch_size(
    plan: Plan,
    on_progress: OnSize = lambda _: None,
    *,
    options: SizeOptions | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    noise_scale: float | None = None,
) -> FoundSize:
    """Find the batch size of a plan. Blocks; nothing is written.

    Args:
        plan: The plan, checked.
        on_progress: Called now and then.
        options: Which sizes are measured.
        should_stop: Whether to give up; asked all the time.
        noise_scale: What a run of this plan has recorded of its gradients, in examples.

    Raises:
        AccelError: No batch size can be found, or the search was cancelled.
        OSError: No process can be started.
    """
    check_plan(plan)
    check_trial_memory((place_trial(plan),), grows=True)
    return _Search(plan, on_progress, options or SizeOptions(), should_stop, noise_scale).run()


class _Search:
    """The sizes of one plan."""

    def __init__(
        self,
        plan: Plan,
        on_progress: OnSize,
        options: SizeOptions,
        should_stop: Callable[[], bool],
        noise_scale: float | None,
    ) -> None:
        self._plan, self._options, self._should_stop = plan, options, should_stop
        self._on_progress, self._noise_scale = on_progress, noise_scale
        self._measured: list[MeasuredSize] = []
        self._ready: TrialReady | None = None
        self._memory: float | None = float(available_memory())
        self._expected_replicas = _replicas(plan)
        self._remaining = RemainingTime()
        self._expected: int | None = None  # sizes, the present one included, before the answer is confirmed

    def run(self) -> FoundSize:
        """Measure the sizes, and confirm the answer."""
        stopped = self._grow()
        chosen = choose_sizes(self._measured, self._memory)
        if chosen is not None:
            between = sizes_between(self._measured, chosen.knee.batch_size, self._multiple)
            for index, size in enumerate(between):
                self._expected = len(between) - index
                if not self._too_large(size):
                    self._add(self._measure(size, self._options.seconds))
            self._expected = 0
        chosen = self._measure_answer_again()
        confirmed = chosen.knee if chosen else None
        replicas = self._ready.replicas if self._ready else 1
        measured = tuple(sorted(self._measured, key=lambda each: each.batch_size))
        found = FoundSize(
            measured,
            chosen,
            confirmed,
            None,
            replicas,
            self._memory,
            stopped,
            self._plan,
            self._ready,
            self._noise_scale,
        )
        return replace(found, effects=found.effects_of(confirmed.batch_size)) if confirmed else found

    @property
    def _multiple(self) -> int:
        """The common factor of all sizes."""
        return (self._ready.replicas if self._ready else 1) * (self._plan.micro_batches or 1)

    def _grow(self) -> str:
        """Measure rising sizes; returns why there is no larger one."""
        size = self._first_size()
        while not (problem := self._too_large(size)):
            self._expected = expected_sizes(size, self._largest)
            found = self._measure(size, self._options.seconds)
            self._add(found)
            if found.problem:
                if len(self._measured) == 1 and self._options.smallest is None:
                    self._shrink(size)
                return f"{found.batch_size:,} cannot be trained: {found.problem}"
            if got_slower(self._measured):
                return "larger ones are slower"
            if found.steps_per_second * STEP_SECONDS < 1:
                return f"a step of {size:,} takes {1 / found.steps_per_second:.1f} s"
            size *= 2
        return problem

    @property
    def _largest(self) -> int | None:
        """The largest size that may be tried, as far as is known."""
        known = [each for each in (self._options.largest, self._ready and self._ready.examples) if each]
        return min(known, default=None)

    def _shrink(self, size: int) -> None:
        """Measure smaller sizes than the first one, which does not fit, up to one that does."""
        least = self._expected_replicas * (self._plan.micro_batches or 1)
        while size // 2 >= least and size // 2 % least == 0 and not any(each.fits for each in self._measured):
            size //= 2
            self._expected = expected_sizes(least, size)
            self._add(self._measure(size, self._options.seconds))

    def _first_size(self) -> int:
        share = self._plan.micro_batches or 1
        while share < SMALLEST:
            share *= 2
        return self._options.smallest or share * self._expected_replicas

    def _too_large(self, size: int) -> str:
        """Why a size is not tried; empty if it is."""
        options, ready = self._options, self._ready
        if options.largest is not None and size > options.largest:
            return f"{options.largest:,} is the largest one to be tried"
        if ready is None:
            return ""
        if ready.examples is not None and size > ready.examples:
            return f"there are {ready.examples:,} training examples"
        needed = predicted_memory(self._measured, size)
        if ready.on_cpu and needed is not None and self._memory is not None and needed > self._memory:
            problem = f"would take about {numbers.size(needed)} of memory; {numbers.size(self._memory)} are available"
            share = size // ready.replicas
            self._add(MeasuredSize(size, share, problem=problem, memory=needed, out_of_memory=True, was_skipped=True))
            return f"{size:,} {problem}"
        return ""

    def _add(self, size: MeasuredSize) -> None:
        self._measured = [each for each in self._measured if each.batch_size != size.batch_size] + [size]
        self._on_progress(SizeProgress(f"batch size {size.batch_size:,} is measured", tuple(self._measured)))

    def _measure(self, size: int, seconds: float, *, confirms: bool = False) -> MeasuredSize:
        """Train with a size for some seconds, and validate, in a fresh process."""
        what, measured = "confirming" if confirms else "measuring", tuple(self._measured)
        self._remaining.begin()

        def show(detail: str) -> None:
            words = f"{what} batch size {size:,}: {detail}"
            self._on_progress(SizeProgress(words, measured, size, confirms, self._seconds_left()))

        show("starting an engine process")
        start = TrialStart(self._plan.replace(batch_size=size))
        with PlanTrials((start,), self._should_stop) as trials:
            trials.wait_ready(lambda detail: show("warming up" if "compiled" in detail else detail))
            trial = trials.trials[0]
            if trial.problem is None:
                self._take_note(trial.ready, size)
                trials.take_turns(seconds, lambda done, of: show(f"{done:.0f} of {of:.0f} s"))
            validated = _validated(trial) if trial.problem is None else 0.0
            self._remaining.end(counts=not confirms)
            return self._result(trial, size, validated)

    def _seconds_left(self) -> float | None:
        """Seconds of all sizes that are expected, and of the answer, which is measured longer."""
        if self._expected is None:
            return None
        return self._remaining.seconds_left(self._expected + 1, (CONFIRM_FACTOR - 1) * self._options.seconds)

    def _take_note(self, ready: TrialReady, size: int) -> None:
        if ready.examples is None and ready.global_batch // ready.replicas != size // ready.replicas:
            raise RunError(
                f"the data is a stream with batches of {ready.global_batch:,} examples: only its own code can change "
                "them"
            )
        self._ready = ready
        if not ready.on_cpu:
            self._memory = ready.device_memory or None  # 0 if it is unknown

    def _result(self, trial: PlanTrial, size: int, validated: float) -> MeasuredSize:
        replicas = self._ready.replicas if self._ready else self._expected_replicas
        share = size // replicas
        if trial.problem is not None:
            problem, out_of_memory = str(trial.problem), trial.problem.out_of_memory
            if not self._measured and not out_of_memory:
                raise trial.problem  # it is not about the size
            return MeasuredSize(size, share, problem=problem, out_of_memory=out_of_memory)
        low, high = trial.examples_per_second_between
        return MeasuredSize(
            size, share, trial.examples_per_second, low, high, trial.memory, validation_seconds=validated
        )

    def _measure_answer_again(self) -> ChosenSizes | None:
        """Measure the answer again, longer; another one if it does not fit after all, or is not the answer any more.

        So the knee follows from the figures that are shown. No size is measured again twice.
        """
        confirmed: set[int] = set()
        while (chosen := choose_sizes(self._measured, self._memory)) and chosen.knee.batch_size not in confirmed:
            size = chosen.knee.batch_size
            again = self._measure(size, CONFIRM_FACTOR * self._options.seconds, confirms=True)
            if again.fits and not leaves_margin(again, self._memory):
                again = replace(again, problem="it leaves too little memory", out_of_memory=True)
            confirmed.add(size)
            self._add(again)
        return chosen


def _replicas(plan: Plan) -> int:
    """Replicas of a plan, as far as they are known before its devices are connected."""
    placement = resolve(plan, detect().devices).placement
    return (placement.replicas if placement else None) or 1


def _validated(trial: PlanTrial) -> float:
    """How long a validation takes, whose memory counts as a checkpoint's does; 0 if the trial fails."""
    process = trial.process
    try:
        seconds = process.validate()[1]
        process.restore()  # weights that are not finite cannot be saved
        process.save()
        process.take(1)  # its reply has the memory since then
    except TrialFailedError as error:
        trial.problem = error
        return 0.0
    return seconds
