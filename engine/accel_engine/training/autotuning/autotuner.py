"""Chooses the fastest execution mode of a run while it trains.

On a CPU, XLA made a perceptron four times as fast and a convolutional network five times slower; micro-batches made a
convolutional network 1.8 times as fast and a perceptron slower. So the other mode is compiled while the run trains in
the plan's, and then both take the run's steps in turns: nothing is trained twice. Modes differ in the rounding of sums
only, and have the same random numbers. The rates are remembered for later runs of the same kind, for a week; a mode
that could not be compiled is tried again.
"""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace

from accel_engine.data.structure import describe
from accel_engine.devices.installation import cuda_cure
from accel_engine.doctor.tf_probe import xla_flags_problem
from accel_engine.errors import AccelError, RunError
from accel_engine.events import MicroBatchesTried, Phase, XlaTried
from accel_engine.measure.cache import Cache, key_of
from accel_engine.plan import USES
from accel_engine.private_names.keras_names import unseeded_generator, use_unseeded_generator
from accel_engine.training.autotuning.mode_choice import ModeChoice, TrialSpeeds, alternative_mode, plan_mode
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.device_visibility import threads_in_use
from accel_engine.training.core.feed import Segment
from accel_engine.training.core.loop import ChunkResult, ExecutionMode, Loop
from accel_engine.training.core.step_rate import ChunkRate
from accel_engine.training.reporting.error_explanation import message_of, print_traceback
from accel_engine.training.reporting.run_reporter import RunReporter

SETTLED_SECONDS = 0.3
"""Seconds of training after which the rate of the plan's mode is known well enough."""

WORTHWHILE_SECONDS = 4.0
"""Remaining seconds of a run from which an unknown mode is tried."""

ASSUMED_GAIN = 1.5
"""The ratio of rates with which a mode that has not been tried must pay for its compilation."""

COMPILE_FACTOR = 5.0
"""How much longer XLA took to compile a chunk than TensorFlow to trace one, for small models on a CPU."""


_DATA = ("data", "batch_size")
"""Fields that are not in a trial's key, which has the form of the data and each replica's batch instead."""

_AUTOTUNED = tuple(name for name, use in USES.items() if use.is_autotuned)
"""Fields that are not in a trial's key, which has the tried mode and the threads in use instead."""


TRIALS = Cache("autotune", TrialSpeeds)
"""The trials of earlier runs, by :func:`trial_key`."""

_MISSING = {
    "libdevice": "XLA finds no libdevice, a part of CUDA",
    "ptxas": "XLA finds no ptxas, a part of CUDA",
}
"""What messages of XLA mean, by a word in them. Installing CUDA's compiler, or naming its place, helps."""

_INSTALL = "run pip install 'tensorflow[and-cuda]'"
_NAME_IT = "set XLA_FLAGS=--xla_gpu_cuda_data_dir= to CUDA's directory"


class LoopCompilation:
    """Traces and compiles a loop.

    Args:
        make_loop: Creates the loop.
        segment: Steps to compile it for; none of them is taken.
        background: Whether to compile in another thread, rather than before this returns.

    Attributes:
        seconds: How long it took.
        problem: Why the loop cannot be compiled; empty if it can, or before that is known.
    """

    def __init__(self, make_loop: Callable[[], Loop], segment: Segment, *, background: bool) -> None:
        self._make_loop, self._segment = make_loop, segment
        self._generator = unseeded_generator()
        self._loop: Loop | None = None
        self.seconds = 0.0
        self.problem = ""
        # The process may end while XLA compiles, which nothing can interrupt.
        self._thread = threading.Thread(target=self._compile, name="compile", daemon=True)
        self._thread.start()
        if not background:
            self.wait()

    def wait(self) -> None:
        """Wait until the loop is compiled, or cannot be."""
        self._thread.join()

    @property
    def has_ended(self) -> bool:
        """Whether the loop is compiled, or cannot be."""
        return not self._thread.is_alive()

    @property
    def loop(self) -> Loop | None:
        """The compiled loop; ``None`` if it cannot be compiled."""
        return self._loop if self.has_ended else None

    def _compile(self) -> None:
        began = time.perf_counter()
        use_unseeded_generator(self._generator)
        try:
            loop = self._make_loop()
            loop.compile(self._segment)
        except Exception as error:  # noqa: BLE001 (XLA cannot compile some operations, and the model is the user's)
            print_traceback(error)
            self.problem = why_not_compiled(error)
        else:
            self._loop = loop
        self.seconds = time.perf_counter() - began


def why_not_compiled(error: Exception) -> str:
    """Why XLA cannot compile a step, with what helps, if that is known."""
    if isinstance(error, AccelError):
        return str(error)
    message = message_of(error)
    missing = next((meaning for word, meaning in _MISSING.items() if word in message), "")
    return f"{missing}: {cuda_cure(_INSTALL)}, or {_NAME_IT}" if missing else message


class AutoTuner:
    """Chooses the loop of each chunk of a run.

    Args:
        assembly: Model, data and strategy.
        reporter: The run's step and phase.
        hardware: The devices' product names.
        default: The loop in the plan's mode, traced.
        trace_seconds: How long tracing it took.
        seconds_left: Returns the seconds until the run's time limit, infinite without one.
    """

    def __init__(
        self,
        assembly: Assembly,
        reporter: RunReporter,
        hardware: tuple[str, ...],
        default: Loop,
        trace_seconds: float,
        seconds_left: Callable[[], float] = lambda: math.inf,
    ) -> None:
        self._assembly, self._reporter, self._default = assembly, reporter, default
        self._seconds_left = seconds_left
        self._alternative = alternative_mode(assembly, plan_mode(assembly))
        self._key = trial_key(assembly, hardware, self._alternative) if self._alternative else ""
        self._remembered = TRIALS.load(self._key) if self._alternative else None
        self._compile_seconds = COMPILE_FACTOR * trace_seconds
        self._measured = ChunkRate(warm_up=True)
        self._compilation: LoopCompilation | None = None
        self._choice = ModeChoice()
        if self._remembered is not None and not self._remembered.alternative_is_faster:
            self._report(self._remembered, remembered=True)
            self._alternative = None

    def loop_for(self, segment: Segment) -> Loop:
        """The loop that takes the next steps, of a segment."""
        other = self._compilation.loop if self._compilation and self._choice.uses_alternative else None
        return other if other is not None and other.is_traced_for(segment) else self._default

    @property
    def has_chosen(self) -> bool:
        """Whether the run is in the mode that it will keep, as far as is known."""
        return self._alternative is None or self._choice.is_settled

    @property
    def is_trying(self) -> bool:
        """Whether another mode may be compiled before the next chunk, or take it."""
        return self._alternative is not None and (self._compilation is None or self._choice.is_trying)

    @property
    def has_compiled(self) -> bool:
        """Whether the other mode was compiled, or is just being compiled."""
        return self._compilation is not None

    def wait(self) -> None:
        """Wait until the other mode is compiled, if it is just being compiled."""
        if self._compilation:
            self._compilation.wait()

    def observe(self, chunk: ChunkResult, segment: Segment) -> None:
        """Take note of a chunk of a segment of full batches, after which another loop may continue."""
        if self._alternative is None:
            return
        if self._compilation is None:
            self._measured.add(chunk)
            if self._pays:
                self._compilation = self._compile(self._alternative, segment)
        elif self._compilation.has_ended:
            self._choose(chunk, self._compilation)

    def _choose(self, chunk: ChunkResult, compilation: LoopCompilation) -> None:
        """Choose between the loops, as far as the alternative one could be compiled."""
        if compilation.loop is None:
            # Not remembered: what XLA lacks may be there for the next run.
            self._report(TrialSpeeds(self._rate, 0.0), remembered=False, reason=compilation.problem)
            self._alternative = None
        elif self._remembered is not None:
            self._choice.use(self._remembered)
            self._report(self._remembered, remembered=True)
            self._remembered = None
        elif (speeds := self._choice.add(chunk)) is not None:
            self._end_trial(speeds, compilation.seconds)

    def _end_trial(self, speeds: TrialSpeeds, compile_seconds: float) -> None:
        if speeds.settled:
            TRIALS.save({self._key: replace(speeds, compile_seconds=compile_seconds)})
        self._report(speeds, remembered=False)

    def _compile(self, mode: ExecutionMode, segment: Segment) -> LoopCompilation:
        """Compile the alternative mode: on an accelerator before the next step, as both need its memory."""
        assembly, rate = self._assembly, self._rate

        def make_loop() -> Loop:
            if mode.xla and (problem := xla_flags_problem()):
                raise RunError(f"XLA would end the process: {problem}")
            return self._default.in_mode(mode, rate)

        background = assembly.on_cpu
        if not background:
            self._reporter.enter_phase(Phase.TRACING, "compiling with XLA")
        compilation = LoopCompilation(make_loop, segment, background=background)
        if not background:
            self._reporter.enter_phase(Phase.TRAINING)
        return compilation

    @property
    def _pays(self) -> bool:
        """Whether what is left of the run is likely to gain more time than it takes to compile the alternative mode."""
        if self._remembered is not None:
            return self._remembered.pays(self._steps_left)
        if not self._rate or self._measured.seconds < SETTLED_SECONDS:
            return False
        left = self._steps_left / self._rate
        return left > WORTHWHILE_SECONDS and left * (1 - 1 / ASSUMED_GAIN) > self._compile_seconds

    @property
    def _rate(self) -> float:
        """Steps per second in the plan's mode; an earlier run's until it is measured."""
        return self._measured.value or (self._remembered.default if self._remembered else 0.0)

    @property
    def _steps_left(self) -> float:
        total = self._assembly.step_counts.total_steps
        left = total - self._reporter.step if total else math.inf
        return min(left, self._seconds_left() * self._rate)

    def _report(self, speeds: TrialSpeeds, *, remembered: bool, reason: str = "") -> None:
        if self._alternative is not None:
            _report_trial(self._reporter, self._alternative, speeds, remembered=remembered, reason=reason)


def _report_trial(
    reporter: RunReporter, tried: ExecutionMode, speeds: TrialSpeeds, *, remembered: bool, reason: str = ""
) -> None:
    """Write the event of a trial.

    Args:
        reporter: The run's step.
        tried: The alternative mode.
        speeds: What the trial measured.
        remembered: Whether in an earlier run.
        reason: Why the alternative mode is not possible; empty if it is.
    """
    step, used = reporter.step, speeds.alternative_is_faster
    common = {"step": step, "remembered": remembered, "settled": speeds.settled}
    if tried.xla:
        reporter.emit(XlaTried, xla=used, plain=speeds.default, compiled=speeds.alternative, reason=reason, **common)
    else:
        rates = {"whole": speeds.default, "split": speeds.alternative}
        chosen = tried.micro_batches if used else 1
        reporter.emit(MicroBatchesTried, micro_batches=chosen, tried=tried.micro_batches, **rates, **common)


def trial_key(assembly: Assembly, hardware: tuple[str, ...], alternative: ExecutionMode) -> str:
    """Everything that a trial's rates depend on, as JSON."""
    plan = {name: value for name, value in assembly.plan.to_mapping().items() if name not in (*_DATA, *_AUTOTUNED)}
    return key_of(
        hardware,
        plan,
        modified=assembly.model_modified,
        data=[describe(assembly.dataset.spec), assembly.dataset.classes, assembly.step_counts.per_replica_batch],
        variables=len(assembly.model.trainable_variables),
        logical=assembly.devices,
        threads=threads_in_use(),
        tried=asdict(alternative),
    )
