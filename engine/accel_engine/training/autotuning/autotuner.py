"""Chooses the fastest execution mode of a run while it trains.

On a CPU, XLA made a perceptron four times as fast and a convolutional network five times slower; micro-batches made a
convolutional network 1.8 times as fast and a perceptron slower. So the other mode is compiled while the run trains in
the plan's, and then both take the run's steps in turns: nothing is trained twice. Modes differ in the rounding of sums
only, and have the same random numbers. The rates are remembered for later runs of the same kind, for a week.
"""

import math

from accel_engine.events import MicroBatchesTried, Phase, XlaTried
from accel_engine.training.autotuning.candidates import alternative_mode, plan_mode
from accel_engine.training.autotuning.loop_compilation import LoopCompilation
from accel_engine.training.autotuning.rate_watch import RateWatch
from accel_engine.training.autotuning.remembered_trials import load_trial, save_trial, trial_key
from accel_engine.training.autotuning.trial import Trial, TrialSpeeds
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.feed import Segment
from accel_engine.training.core.loop import ChunkResult, Loop
from accel_engine.training.reporting.run_reporter import RunReporter

SETTLED_SECONDS = 0.3
"""Seconds of training after which the rate of the plan's mode is known well enough."""

WORTHWHILE_SECONDS = 4.0
"""Remaining seconds of a run from which an unknown mode is tried."""

ASSUMED_GAIN = 1.5
"""The ratio of rates with which a mode that has not been tried must pay for its compilation."""

COMPILE_FACTOR = 5.0
"""How much longer XLA took to compile a chunk than TensorFlow to trace one, for small models on a CPU."""


class AutoTuner:
    """Chooses the loop of each chunk of a run.

    Args:
        assembly: Model, data and strategy.
        reporter: The run's step and phase.
        hardware: The devices' product names.
        default: The loop in the plan's mode, traced.
        trace_seconds: How long tracing it took.
    """

    def __init__(
        self,
        assembly: Assembly,
        reporter: RunReporter,
        hardware: tuple[str, ...],
        default: Loop,
        trace_seconds: float,
    ) -> None:
        self._assembly, self._reporter = assembly, reporter
        self._default = default
        alternative = alternative_mode(assembly, plan_mode(assembly))
        self._alternative = alternative or plan_mode(assembly)
        self._key = trial_key(assembly, hardware, self._alternative) if alternative else ""
        self._remembered = load_trial(self._key) if alternative else None
        self._is_open = alternative is not None and not self._is_known_as_slower
        self._compile_seconds = COMPILE_FACTOR * trace_seconds
        self._steps, self._seconds, self._is_warm = 0, 0.0, False
        self._compilation: LoopCompilation | None = None
        self._trial: Trial | None = None
        self._uses_alternative = False
        self._watch = RateWatch()
        if self._remembered is not None and self._is_known_as_slower:
            self._report(self._remembered.speeds, remembered=True)

    def loop_for(self, segment: Segment) -> Loop:
        """The loop that takes the next steps, of a segment."""
        other = self._compilation.loop if self._compilation else None
        wanted = self._trial.on_alternative if self._trial else self._uses_alternative
        return other if other is not None and wanted and other.is_traced_for(segment) else self._default

    @property
    def has_chosen(self) -> bool:
        """Whether the run is in the mode that it will keep, as far as is known."""
        return not self._is_open or (self._trial is None and self._watch.is_settled)

    def observe(self, chunk: ChunkResult, segment: Segment) -> None:
        """Take note of a chunk of a segment of full batches, after which another loop may continue."""
        if not self._is_open:
            return
        if self._trial is not None:
            self._trial.add(chunk)
            if self._trial.has_ended:
                self._end_trial(self._trial.speeds)
        elif self._compilation is None:
            if self._is_warm:
                self._steps += chunk.count
                self._seconds += chunk.seconds
            self._is_warm = True
            if self._pays:
                self._compile(segment)
        elif not self._compilation.has_ended:
            return
        elif self._compilation.loop is None:
            self._end_trial(TrialSpeeds(self._rate, 0.0))
            self._is_open = False
        else:
            self._choose(chunk)

    def _choose(self, chunk: ChunkResult) -> None:
        """Begin with the compiled loop, or look again at which one is faster."""
        if self._remembered is not None:
            self._use(self._remembered.speeds)
            self._report(self._remembered.speeds, remembered=True)
            self._remembered = None
            return
        self._watch.add(chunk)
        if not self._watch.has_expectation or self._watch.must_look_again:
            self._trial = Trial()

    def _end_trial(self, speeds: TrialSpeeds) -> None:
        self._trial = None
        self._use(speeds)
        if speeds.settled and self._compilation is not None:
            save_trial(self._key, speeds, self._compilation.seconds)
        self._report(speeds, remembered=False)

    def _use(self, speeds: TrialSpeeds) -> None:
        self._uses_alternative = speeds.alternative_is_faster
        self._watch.expect(max(speeds.default, speeds.alternative), settled=speeds.settled)

    def _compile(self, segment: Segment) -> None:
        """Compile the alternative mode: on an accelerator before the next step, as both need its memory."""
        assembly, mode, rate = self._assembly, self._alternative, self._rate
        background = assembly.on_cpu
        if not background:
            self._reporter.enter_phase(Phase.TRACING, "compiling with XLA")
        self._compilation = LoopCompilation(lambda: Loop(assembly, mode, rate=rate), segment, background=background)
        if not background:
            self._reporter.enter_phase(Phase.TRAINING)

    @property
    def _is_known_as_slower(self) -> bool:
        return self._remembered is not None and not self._remembered.speeds.alternative_is_faster

    @property
    def _pays(self) -> bool:
        """Whether what is left of the run is likely to gain more time than it takes to compile the alternative mode."""
        if self._remembered is not None:
            left, gain = self._steps_left / self._remembered.default, self._remembered.speeds.gain
            return left * (1 - 1 / gain) > self._remembered.compile_seconds
        if not self._seconds or self._seconds < SETTLED_SECONDS:
            return False
        left = self._steps_left / self._rate
        return left > WORTHWHILE_SECONDS and left * (1 - 1 / ASSUMED_GAIN) > self._compile_seconds

    @property
    def _rate(self) -> float:
        """Steps per second in the plan's mode; an earlier run's until it is measured."""
        if self._seconds:
            return self._steps / self._seconds
        return self._remembered.default if self._remembered else 0.0

    @property
    def _steps_left(self) -> float:
        total = self._assembly.step_counts.total_steps
        return total - self._reporter.step if total else math.inf

    def _report(self, speeds: TrialSpeeds, *, remembered: bool) -> None:
        step, tried, used = self._reporter.step, self._alternative, speeds.alternative_is_faster
        common = {"step": step, "remembered": remembered, "settled": speeds.settled}
        if tried.xla:
            rates = {"plain": speeds.default, "compiled": speeds.alternative}
            self._reporter.emit(XlaTried, xla=used, **rates, **common)
        else:
            rates = {"whole": speeds.default, "split": speeds.alternative}
            chosen = tried.micro_batches if used else 1
            self._reporter.emit(MicroBatchesTried, micro_batches=chosen, tried=tried.micro_batches, **rates, **common)
