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
from accel_engine.models import UserModel
from accel_engine.training.assembly import Assembly
from accel_engine.training.kept import keep, recall
from accel_engine.training.loop import Loop

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
    layers = assembly.model._flatten_layers()  # noqa: SLF001 (Keras has no public way to see nested layers)
    return assembly.replicas == 1 and not any("conv" in type(layer).__name__.lower() for layer in layers)


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
    kind += [plan.policy, plan.optimizer, assembly.devices, tf.__version__, keras.__version__]
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
