"""Chooses the fastest execution mode by a trial on this machine.

On a CPU, XLA made a perceptron twice as fast and a convolutional network five times slower; micro-batches made a
convolutional network 1.8 times as fast and a perceptron slower. The trial runs real steps in both modes and then
restores the state, so that the run's results do not change. Its rates are saved for later runs of the same kind.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass

import keras
import tensorflow as tf

from accel_engine.data.structure import describe, has_texts
from accel_engine.devices.host_probe import processors
from accel_engine.events import MicroBatchesTried, Phase, XlaTried
from accel_engine.keras_support.model_structure import walk
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.feed import Segment
from accel_engine.training.core.loop import ExecutionMode, Loop
from accel_engine.training.core.micro_batches import candidate_count, supports_micro_batches
from accel_engine.training.reporting.run_reporter import RunReporter
from accel_engine.training.tuning_cache import load, save
from accel_engine.version import __version__

SETTLED_SECONDS = 1.0
"""Seconds of training before a trial, so that the rate of the default mode is known."""

WORTHWHILE_SECONDS = 30.0
"""Remaining seconds of a run, at the default rate, from which a trial and its compilation are worthwhile."""

WORTHWHILE_STEPS = 100
"""Remaining steps of a run from which a trial is worthwhile: it takes four slow ones."""

TRIAL_SECONDS = 0.5
"""How long each mode is measured, after a warm-up."""

_FILE = "autotune.json"


@dataclass(frozen=True, slots=True)
class TrialSpeeds:
    """The rates that a trial measured.

    Attributes:
        default: Steps per second in the plan's mode.
        alternative: Steps per second in the alternative mode; 0 if it cannot run the step.
    """

    default: float
    alternative: float

    @property
    def alternative_is_faster(self) -> bool:
        """Whether the alternative mode is the faster one."""
        return self.alternative > self.default


class AutoTuner:
    """Chooses the execution mode of a run.

    Args:
        assembly: Model, data and strategy.
        reporter: The run's step and phase.
        hardware: The devices' product names.

    Attributes:
        mode: The current one: the plan's, or the faster one of a trial.
    """

    def __init__(self, assembly: Assembly, reporter: RunReporter, hardware: tuple[str, ...]) -> None:
        self._assembly = assembly
        self._reporter = reporter
        self.mode = ExecutionMode(assembly.plan.xla == "on" or assembly.on_tpu, assembly.plan.micro_batches or 1)
        self._alternative = alternative_mode(assembly, self.mode) or self.mode
        self._cache_key = _cache_key(assembly, hardware, self._alternative)
        has_alternative = self._alternative != self.mode
        self._cached = _cached(self._cache_key) if has_alternative else None
        self._pending = has_alternative and self._cached is None
        rates, compiles = self._cached, self._alternative.xla
        if rates and rates.alternative_is_faster and (not compiles or self._is_long(rates.default)):
            self.mode = self._alternative

    def report_cached(self) -> None:
        """Emit the rates of an earlier run's trial, if there are any."""
        if self._cached is not None:
            self._report(self._cached, remembered=True)

    def is_due(self, seconds: float, rate: float) -> bool:
        """Whether to run the trial now.

        Args:
            seconds: Seconds of training so far.
            rate: Steps per second.
        """
        worthwhile = self._steps_left > WORTHWHILE_STEPS and self._is_long(rate)
        return self._pending and seconds >= SETTLED_SECONDS and worthwhile

    def run_trial(self, default: Loop, segment: Segment) -> Loop:
        """Run the trial, save and emit its rates, and return the faster loop; see :func:`compare_modes`."""
        self._pending = False
        detail = "the step with XLA" if self._alternative.xla else "the step in micro-batches"
        self._reporter.enter_phase(Phase.TRACING, detail)
        faster, rates = compare_modes(self._assembly, default, self._alternative, segment)
        self.mode = faster.mode
        save(_FILE, self._cache_key, asdict(rates))
        self._report(rates, remembered=False)
        self._reporter.enter_phase(Phase.TRAINING)
        return faster

    def _is_long(self, rate: float) -> bool:
        """Whether the rest of the run takes long enough, at this many steps per second, for a trial."""
        return rate > 0 and self._steps_left / rate > WORTHWHILE_SECONDS

    @property
    def _steps_left(self) -> int:
        return self._assembly.step_counts.total_steps - self._reporter.step

    def _report(self, rates: TrialSpeeds, *, remembered: bool) -> None:
        step, mode, tried = self._reporter.step, self.mode, self._alternative
        if tried.xla:
            fields = {"xla": mode.xla, "plain": rates.default, "compiled": rates.alternative}
            self._reporter.emit(XlaTried, step=step, remembered=remembered, **fields)
        else:
            fields = {"micro_batches": mode.micro_batches, "tried": tried.micro_batches}
            fields |= {"whole": rates.default, "split": rates.alternative}
            self._reporter.emit(MicroBatchesTried, step=step, remembered=remembered, **fields)


def alternative_mode(assembly: Assembly, default: ExecutionMode) -> ExecutionMode | None:
    """The mode that may be faster than the plan's and that the plan allows; ``None`` where a trial makes no sense.

    There is none for a custom ``train_step``, whose Python must not run more often than it should, nor with other
    workers, which would have to agree on it.

    XLA is not tried on a TPU, which compiles everything; nor mirrored on CPUs or with central storage, which do not
    support it; nor for texts, which it cannot compile; nor for convolutions on a CPU, which took 6 to 12 seconds to
    compile and ran 2 to 5 times slower in all measurements. These are tried in micro-batches instead, if that changes
    nothing but the rounding of sums.
    """
    plan = assembly.plan
    if assembly.has_custom_train_step or not assembly.single_process or assembly.on_tpu:
        return None
    if has_texts(assembly.dataset.spec):
        return None
    if not assembly.on_cpu:
        stored = isinstance(assembly.strategy, tf.distribute.experimental.CentralStorageStrategy)
        return ExecutionMode(True, default.micro_batches) if plan.xla == "auto" and not stored else None
    if assembly.replicas > 1:
        return None
    if not any("conv" in type(layer).__name__.lower() for layer, _ in walk(assembly.model)):
        return ExecutionMode(True, default.micro_batches) if plan.xla == "auto" else None
    count = candidate_count(assembly.step_counts.per_replica_batch)
    allowed = plan.micro_batches is None and plan.xla != "on" and count > 1
    return ExecutionMode(micro_batches=count) if allowed and supports_micro_batches(assembly.model) else None


def compare_modes(
    assembly: Assembly, default: Loop, alternative: ExecutionMode, segment: Segment
) -> tuple[Loop, TrialSpeeds]:
    """Run steps in both modes, restore the state, and return the faster loop with the measured rates.

    Args:
        assembly: Model, data and strategy.
        default: The loop in the plan's mode.
        alternative: The other mode.
        segment: Steps of the epoch.
    """
    other = Loop(assembly, alternative)
    with _restored_state(assembly):
        try:
            rate = other.measure_rate(segment, TRIAL_SECONDS)
        except (tf.errors.OpError, RuntimeError, TypeError, ValueError):
            rate = 0.0  # XLA cannot compile some operations, nor the steps of some strategies
        rates = TrialSpeeds(default.measure_rate(segment, TRIAL_SECONDS), rate)
    return (other if rates.alternative_is_faster else default), rates


def _cached(key: str) -> TrialSpeeds | None:
    """The rates of an earlier trial with the same key; ``None`` if there was none."""
    with suppress(TypeError):
        return TrialSpeeds(**load(_FILE, key))
    return None


def _cache_key(assembly: Assembly, hardware: tuple[str, ...], alternative: ExecutionMode) -> str:
    """Everything that a trial's rates depend on, as JSON."""
    plan = assembly.plan
    key: list[object] = [
        plan.model,
        assembly.model_modified,
        describe(assembly.dataset.spec),
        assembly.dataset.classes,
        assembly.step_counts.per_replica_batch,
    ]
    key += [
        plan.policy,
        plan.optimizer,
        plan.gradient_norm,
        plan.cpu_kernels,
        assembly.remat.count,
        plan.augmentation,
        len(assembly.model.trainable_variables),
        plan.strategy,
        assembly.devices,
        hardware,
    ]
    key += [processors(), __version__, tf.__version__, keras.__version__, asdict(alternative)]
    key.append(os.environ.get("TF_ENABLE_ONEDNN_OPTS"))
    return json.dumps(key)


@contextmanager
def _restored_state(assembly: Assembly) -> Iterator[None]:
    """Restore the model, the optimizer and the random state at the end of the ``with`` block."""
    variables = [*assembly.model.variables, *assembly.model.optimizer.variables, *assembly.random_states]
    with assembly.strategy.scope():
        before = [variable.numpy() for variable in variables]  # on the host: the device may lack memory for a copy
        try:
            yield
        finally:
            for variable, value in zip(variables, before, strict=True):
                variable.assign(value)
