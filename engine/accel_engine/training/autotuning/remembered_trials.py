"""Remembers what trials measured, for later runs of the same kind on this machine."""

import json
import os
from dataclasses import asdict, dataclass

import keras
import tensorflow as tf

from accel_engine import clock
from accel_engine.data.structure import describe
from accel_engine.devices.host_probe import processors
from accel_engine.training.autotuning.trial import TrialSpeeds
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.loop import ExecutionMode
from accel_engine.training.core.operation_threads import threads_in_use
from accel_engine.tuning_cache import Rate, is_recent, load, save
from accel_engine.version import __version__

_FILE = "autotune.json"


@dataclass(frozen=True, slots=True)
class RememberedTrial:
    """A trial of an earlier run.

    Attributes:
        default: Steps per second in the plan's mode.
        alternative: Steps per second in the alternative mode.
        compile_seconds: How long the alternative mode took to trace and compile while training went on.
        measured_at: When, in seconds since the Unix epoch.
    """

    default: Rate
    alternative: Rate
    compile_seconds: float
    measured_at: float

    @property
    def speeds(self) -> TrialSpeeds:
        """The rates."""
        return TrialSpeeds(self.default, self.alternative)

    def pays(self, steps_left: float) -> bool:
        """Whether so many steps gain more time in the faster mode than it takes to compile the alternative one."""
        return steps_left / self.default * (1 - 1 / self.speeds.gain) > self.compile_seconds


def load_trial(key: str) -> RememberedTrial | None:
    """The trial of an earlier run; ``None`` if there is none or it is too old."""
    trial = load(_FILE, key, RememberedTrial)
    return trial if trial and is_recent(trial.measured_at) else None


def save_trial(key: str, speeds: TrialSpeeds, compile_seconds: float) -> None:
    """Remember a trial."""
    trial = RememberedTrial(speeds.default, speeds.alternative, compile_seconds, clock.now())
    save(_FILE, key, trial)


def trial_key(assembly: Assembly, hardware: tuple[str, ...], alternative: ExecutionMode) -> str:
    """Everything that a trial's rates depend on, as JSON."""
    plan = assembly.plan
    key = [
        plan.model,
        assembly.model_modified,
        describe(assembly.dataset.spec),
        assembly.dataset.classes,
        assembly.step_counts.per_replica_batch,
        plan.policy,
        plan.optimizer,
        plan.gradient_norm,
        plan.cpu_kernels,
        plan.augmentation,
        plan.remat,
        plan.remat_layers,
        len(assembly.model.trainable_variables),
        plan.strategy,
        assembly.devices,
        hardware,
        processors(),
        threads_in_use(),
        __version__,
        tf.__version__,
        keras.__version__,
        asdict(alternative),
        [os.environ.get(name) for name in ("TF_ENABLE_ONEDNN_OPTS", "XLA_FLAGS", "TF_XLA_FLAGS")],
    ]
    return json.dumps(key)
