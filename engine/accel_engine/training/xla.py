"""Whether XLA compiles the step: tried on this machine, not assumed.

On a CPU XLA was seen to make a perceptron twice as fast and a convolutional network five times
slower, so nothing but trying tells. The trial takes real steps both ways and then puts everything
back, so that the run is the same run; what it found is kept for the next run of the same kind.
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

from accel_engine import models
from accel_engine.events import Phase, XlaTried
from accel_engine.models import UserModel
from accel_engine.training.assembly import Assembly
from accel_engine.training.kept import keep, recall
from accel_engine.training.layers import walk
from accel_engine.training.loop import Loop
from accel_engine.training.progress import Progress

SETTLED_SECONDS = 1.0
"""Training before a trial, so that the plain rate is known."""

WORTHWHILE_SECONDS = 30.0
"""What must be left of a run, at the plain rate, for a trial and its compilation to pay."""

TRIAL_SECONDS = 0.5
"""How long either way is measured, once it is warm."""

_FILE = "xla.json"


@dataclass(frozen=True, slots=True)
class Rates:
    """What a trial found.

    Attributes:
        plain: Steps a second without XLA.
        compiled: Steps a second with it; 0 when it cannot compile the step.
    """

    plain: float
    compiled: float

    @property
    def pays(self) -> bool:
        """Whether XLA is the faster way."""
        return self.compiled > self.plain


class Choice:
    """Which way a run trains: with XLA or without.

    Args:
        assembly: What is trained.
        progress: Where the run stands.

    Attributes:
        compiled: Whether the run begins with XLA: as the plan says, or as a trial of an earlier run found.
    """

    def __init__(self, assembly: Assembly, progress: Progress) -> None:
        self._assembly = assembly
        self._progress = progress
        self._open = may_try(assembly)
        self._remembered = remembered(assembly) if self._open else None
        self.compiled = assembly.plan.xla == "on" or assembly.on_tpu
        if self._remembered is not None:
            self._open = False
            self.compiled = self._remembered.pays and self._is_long(self._remembered.plain)

    def tell_remembered(self) -> None:
        """Say what is known from an earlier run, if anything is."""
        if self._remembered is not None:
            self._tell(self._remembered, compiled=self.compiled, remembered=True)

    def is_due(self, seconds: float, rate: float) -> bool:
        """Whether it is time to try both ways.

        Args:
            seconds: Of training so far.
            rate: Steps a second.
        """
        return self._open and seconds >= SETTLED_SECONDS and self._is_long(rate)

    def tried(self, plain: Loop, order: npt.NDArray[np.int32]) -> Loop:
        """Try both ways once and for all, and give the loop to go on with; see :func:`try_both`."""
        self._open = False
        self._progress.enter(Phase.TRACING, "trying XLA")
        faster, rates = try_both(self._assembly, plain, order)
        remember(self._assembly, rates)
        self._tell(rates, compiled=faster.xla, remembered=False)
        self._progress.enter(Phase.TRAINING)
        return faster

    def _is_long(self, rate: float) -> bool:
        """Whether what is left takes long enough, at this many steps a second, for compiling to pay."""
        steps_left = self._assembly.plan.epochs * self._assembly.schedule.steps_per_epoch - self._progress.step
        return rate > 0 and steps_left / rate > WORTHWHILE_SECONDS

    def _tell(self, rates: Rates, *, compiled: bool, remembered: bool) -> None:
        step, plain = self._progress.step, rates.plain
        self._progress.say(
            XlaTried, step=step, xla=compiled, plain=plain, compiled=rates.compiled, remembered=remembered
        )


def may_try(assembly: Assembly) -> bool:
    """Whether a trial of XLA makes sense.

    Not on a TPU, which compiles everything; not for a ``train_step`` of the user's, whose Python must not
    run more often than it should; not with other workers, who would have to agree on it; not mirrored on
    CPUs, where XLA cannot; and not for convolutions on a CPU, which took it 6 to 12 seconds to compile and
    ran 2 to 5 times slower wherever they were measured.
    """
    if assembly.plan.xla != "auto" or assembly.own_train_step or assembly.on_tpu or not assembly.alone:
        return False
    if not assembly.on_cpu:
        return True
    kinds = (type(layer).__name__.lower() for layer, _ in walk(assembly.model))
    return assembly.replicas == 1 and not any("conv" in kind for kind in kinds)


def try_both(assembly: Assembly, plain: Loop, order: npt.NDArray[np.int32]) -> tuple[Loop, Rates]:
    """Take steps with and without XLA, put everything back, and give the faster loop.

    Args:
        assembly: What is trained.
        plain: Its loop without XLA.
        order: Row numbers of an epoch, int32 ``[steps, replicas, per_replica_batch]``.
    """
    compiled = Loop(assembly, xla=True)
    with _put_back(assembly):
        try:
            fast = compiled.rate(order, TRIAL_SECONDS)
        except (tf.errors.OpError, NotImplementedError, TypeError, ValueError):
            fast = 0.0  # some operations have no form that XLA can compile
        rates = Rates(plain.rate(order, TRIAL_SECONDS), fast)
    return (compiled if rates.pays else plain), rates


def remembered(assembly: Assembly) -> Rates | None:
    """What an earlier trial of the same kind found, if there was one."""
    with suppress(TypeError):
        return Rates(**recall(_FILE, _kind(assembly)))
    return None


def remember(assembly: Assembly, rates: Rates) -> None:
    """Keep what a trial found."""
    keep(_FILE, _kind(assembly), asdict(rates))


def _kind(assembly: Assembly) -> str:
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
    kind += [plan.policy, plan.optimizer, plan.gradient_norm, assembly.devices, tf.__version__, keras.__version__]
    kind.append(os.environ.get("TF_ENABLE_ONEDNN_OPTS"))
    return json.dumps(kind)


@contextmanager
def _put_back(assembly: Assembly) -> Iterator[None]:
    """Undo whatever steps do to the model and its optimizer."""
    variables = [*assembly.model.variables, *assembly.model.optimizer.variables]
    with assembly.strategy.scope():
        before = [tf.identity(variable.value) for variable in variables]
        try:
            yield
        finally:
            for variable, value in zip(variables, before, strict=True):
                variable.assign(value)
