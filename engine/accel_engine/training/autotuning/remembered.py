"""Remembers what runs of the same kind measured on this machine: trials of modes, and rates by number of threads."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated

import keras
import msgspec
import tensorflow as tf

from accel_engine import clock
from accel_engine.data.structure import describe
from accel_engine.devices.device_types import Inventory
from accel_engine.devices.host_probe import processors
from accel_engine.models import UserModel
from accel_engine.plan import affecting
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.training.autotuning.thread_choice import WORTHWHILE
from accel_engine.training.autotuning.trial import TrialSpeeds
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.loop import ExecutionMode
from accel_engine.training.core.operation_threads import threads_in_use
from accel_engine.tuning_cache import Rate, is_recent, load, save
from accel_engine.version import __version__

_TRIALS_FILE = "autotune.json"

_THREADS_FILE = "threads.json"

_Threads = Annotated[int, msgspec.Meta(ge=1)]

_VARIABLES = ("TF_ENABLE_ONEDNN_OPTS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS", "TF_XLA_FLAGS", "XLA_FLAGS")
"""Variables of the environment on which it depends."""


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
    trial = load(_TRIALS_FILE, key, RememberedTrial)
    return trial if trial and is_recent(trial.measured_at) else None


def save_trial(key: str, speeds: TrialSpeeds, compile_seconds: float) -> None:
    """Remember a trial."""
    trial = RememberedTrial(speeds.default, speeds.alternative, compile_seconds, clock.now())
    save(_TRIALS_FILE, key, trial)


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


@dataclass(frozen=True, slots=True)
class _RememberedRate:
    """The rate of an earlier run.

    Attributes:
        rate: Steps per second.
        measured_at: When, in seconds since the Unix epoch.
    """

    rate: Rate
    measured_at: float


def load_rates(key: str) -> dict[int, float]:
    """Steps per second of earlier runs by number of threads; without those that are too old or damaged."""
    return {count: remembered.rate for count, remembered in _load_rates(key).items()}


def save_rate(key: str, threads: int, rate: float) -> None:
    """Remember the rate of a run.

    A rate that is clearly lower than an earlier run's is not: other programs may slow a run down, but never make it
    faster.
    """
    rates = _load_rates(key)
    if threads not in rates or rates[threads].rate < WORTHWHILE * rate:
        _save_rates(key, {**rates, threads: _RememberedRate(rate, clock.now())})


def forget_rate(key: str, threads: int) -> None:
    """Forget the rate of runs with a number of threads."""
    _save_rates(key, {count: rate for count, rate in _load_rates(key).items() if count != threads})


def rates_key(resolved: ResolvedPlan, inventory: Inventory) -> str:
    """Everything that the rate of a run depends on and that is known before TensorFlow starts, as JSON."""
    plan, model = resolved.plan.changed(), resolved.model
    key = [
        {name: value for name, value in plan.items() if name in affecting("speed") - {"threads"}},
        model.modified if isinstance(model, UserModel) else None,
        [device.name for device in inventory.of_kind("cpu")],
        processors(),
        __version__,
        tf.__version__,
        keras.__version__,
        *(os.environ.get(name) for name in _VARIABLES),
    ]
    return json.dumps(key)


def _load_rates(key: str) -> dict[int, _RememberedRate]:
    """The remembered rates by number of threads."""
    rates = load(_THREADS_FILE, key, dict[_Threads, _RememberedRate]) or {}
    return {threads: remembered for threads, remembered in rates.items() if is_recent(remembered.measured_at)}


def _save_rates(key: str, rates: Mapping[int, _RememberedRate]) -> None:
    save(_THREADS_FILE, key, rates)
