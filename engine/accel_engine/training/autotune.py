"""Which way of taking steps is the fastest: tried on this machine, not assumed.

On a CPU XLA was seen to make a perceptron twice as fast and a convolutional network five times
slower, and micro-batches a convolutional network 1.8 times as fast and a perceptron slower, so nothing
but trying tells. The trial takes real steps both ways and then puts everything back, so that the run is
the same run; what it found is kept for the next run of the same kind.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine import __version__, models
from accel_engine.devices.host_probe import processors
from accel_engine.events import MicroBatchesTried, Phase, XlaTried
from accel_engine.models import UserModel
from accel_engine.training.assembly import Assembly
from accel_engine.training.layer_table import walk
from accel_engine.training.loop import ExecutionMode, Loop
from accel_engine.training.micro_batches import parts_worth_trying, same_in_parts
from accel_engine.training.run_reporter import RunReporter
from accel_engine.training.tuning_cache import keep, recall

SETTLED_SECONDS = 1.0
"""Training before a trial, so that the plain rate is known."""

WORTHWHILE_SECONDS = 30.0
"""What must be left of a run, at the plain rate, for a trial and its compilation to pay."""

WORTHWHILE_STEPS = 100
"""The same in steps: of slow ones a trial takes four."""

TRIAL_SECONDS = 0.5
"""How long either way is measured, once it is warm."""

_FILE = "ways.json"


@dataclass(frozen=True, slots=True)
class Rates:
    """What a trial found.

    Attributes:
        plain: Steps a second the way that the plan asks for.
        other: Steps a second the other way; 0 when steps cannot be taken so.
    """

    plain: float
    other: float

    @property
    def pays(self) -> bool:
        """Whether the other way is the faster."""
        return self.other > self.plain


class AutoTuner:
    """Which way a run takes its steps.

    Args:
        assembly: What is trained.
        progress: Where the run stands.
        hardware: What the makers of the devices call them.

    Attributes:
        way: The one that the run begins with: as the plan says, or as a trial of an earlier run found.
    """

    def __init__(self, assembly: Assembly, progress: RunReporter, hardware: tuple[str, ...]) -> None:
        self._assembly = assembly
        self._progress = progress
        self.way = ExecutionMode(assembly.plan.xla == "on" or assembly.on_tpu, assembly.plan.micro_batches or 1)
        self._other = another(assembly, self.way) or self.way
        self._kind = _kind(assembly, hardware, self._other)  # of the user's file as it is now, which may be gone later
        tries = self._other != self.way
        self._remembered = _remembered(self._kind) if tries else None
        self._open = tries and self._remembered is None
        if (known := self._remembered) and known.pays and (not self._other.xla or self._is_long(known.plain)):
            self.way = self._other  # XLA only where compiling pays

    def tell_remembered(self) -> None:
        """Say what is known from an earlier run, if anything is."""
        if self._remembered is not None:
            self._tell(self._remembered, remembered=True)

    def is_due(self, seconds: float, rate: float) -> bool:
        """Whether it is time to try both ways.

        Args:
            seconds: Of training so far.
            rate: Steps a second.
        """
        worthwhile = self._steps_left > WORTHWHILE_STEPS and self._is_long(rate)
        return self._open and seconds >= SETTLED_SECONDS and worthwhile

    def tried(self, plain: Loop, order: npt.NDArray[np.int32]) -> Loop:
        """Try both ways once and for all, and give the loop to go on with; see :func:`try_both`."""
        self._open = False
        self._progress.enter(Phase.TRACING, "the step with XLA" if self._other.xla else "the step in micro-batches")
        faster, rates = try_both(self._assembly, plain, self._other, order)
        self.way = faster.way
        keep(_FILE, self._kind, asdict(rates))
        self._tell(rates, remembered=False)
        self._progress.enter(Phase.TRAINING)
        return faster

    def _is_long(self, rate: float) -> bool:
        """Whether what is left takes long enough, at this many steps a second, for a trial to pay."""
        return rate > 0 and self._steps_left / rate > WORTHWHILE_SECONDS

    @property
    def _steps_left(self) -> int:
        return self._assembly.plan.epochs * self._assembly.schedule.steps_per_epoch - self._progress.step

    def _tell(self, rates: Rates, *, remembered: bool) -> None:
        step, way = self._progress.step, self.way
        if self._other.xla:
            found = {"xla": way.xla, "plain": rates.plain, "compiled": rates.other}
            self._progress.say(XlaTried, step=step, remembered=remembered, **found)
        else:
            found = {"micro_batches": way.parts, "tried": self._other.parts, "whole": rates.plain, "split": rates.other}
            self._progress.say(MicroBatchesTried, step=step, remembered=remembered, **found)


def another(assembly: Assembly, plain: ExecutionMode) -> ExecutionMode | None:
    """The way that may be faster than the plan's and that it leaves open; ``None`` where no trial makes sense.

    Not for a ``train_step`` of the user's, whose Python must not run more often than it should; and not with other
    workers, who would have to agree on it.

    XLA not on a TPU, which compiles everything; not mirrored on CPUs nor with central storage, where it cannot; and
    not for convolutions on a CPU, which took it 6 to 12 seconds to compile and ran 2 to 5 times slower wherever they
    were measured. These are tried in micro-batches there, where that changes nothing but the rounding of sums.
    """
    plan = assembly.plan
    if assembly.own_train_step or not assembly.alone or assembly.on_tpu:
        return None
    if not assembly.on_cpu:
        stored = isinstance(assembly.strategy, tf.distribute.experimental.CentralStorageStrategy)
        return ExecutionMode(True, plain.parts) if plan.xla == "auto" and not stored else None
    if assembly.replicas > 1:
        return None
    if not any("conv" in type(layer).__name__.lower() for layer, _ in walk(assembly.model)):
        return ExecutionMode(True, plain.parts) if plan.xla == "auto" else None
    parts = parts_worth_trying(assembly.schedule.per_replica_batch)
    open_to_parts = plan.micro_batches is None and plan.xla != "on" and parts > 1
    return ExecutionMode(parts=parts) if open_to_parts and same_in_parts(assembly.model) else None


def try_both(assembly: Assembly, plain: Loop, other: ExecutionMode, order: npt.NDArray[np.int32]) -> tuple[Loop, Rates]:
    """Take steps both ways, put everything back, and give the faster loop.

    Args:
        assembly: What is trained.
        plain: Its loop as the plan asks for it.
        other: The other way.
        order: Row numbers of an epoch, int32 ``[steps, replicas, per_replica_batch]``.
    """
    changed = Loop(assembly, other)
    with _put_back(assembly):
        try:
            fast = changed.rate(order, TRIAL_SECONDS)
        except (tf.errors.OpError, RuntimeError, TypeError, ValueError):
            fast = 0.0  # some operations have no form that XLA can compile, and some strategies no step
        rates = Rates(plain.rate(order, TRIAL_SECONDS), fast)
    return (changed if rates.pays else plain), rates


def _remembered(kind: str) -> Rates | None:
    """What an earlier trial of the same kind found, if there was one."""
    with suppress(TypeError):
        return Rates(**recall(_FILE, kind))
    return None


def _kind(assembly: Assembly, hardware: tuple[str, ...], other: ExecutionMode) -> str:
    """All that a trial's outcome depends on."""
    plan, model = assembly.plan, models.find(assembly.plan.model)
    edited = None
    if isinstance(model, UserModel) and model.kind != "module":
        edited = Path(model.target).expanduser().stat().st_mtime
    kind: list[object] = [
        plan.model,
        edited,
        assembly.dataset.shape,
        assembly.dataset.classes,
        assembly.schedule.per_replica_batch,
    ]
    kind += [plan.policy, plan.optimizer, plan.gradient_norm, plan.strategy, assembly.devices, hardware]
    kind += [processors(), __version__, tf.__version__, keras.__version__, asdict(other)]
    kind.append(os.environ.get("TF_ENABLE_ONEDNN_OPTS"))
    return json.dumps(kind)


@contextmanager
def _put_back(assembly: Assembly) -> Iterator[None]:
    """Undo whatever steps do to the model and its optimizer."""
    variables = [*assembly.model.variables, *assembly.model.optimizer.variables, *assembly.unseeded]
    with assembly.strategy.scope():
        before = [variable.numpy() for variable in variables]  # a device may have no room for them twice
        try:
            yield
        finally:
            for variable, value in zip(variables, before, strict=True):
                variable.assign(value)
