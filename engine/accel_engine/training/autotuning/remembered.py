"""Remembers what runs of the same kind measured on this machine: trials of modes, and rates by number of threads."""

from dataclasses import asdict

from accel_engine.data.structure import describe
from accel_engine.devices.device_types import Inventory
from accel_engine.measure.cache import Cache, Rate, key_of
from accel_engine.measure.trial_statistics import APART
from accel_engine.models import UserModel
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.training.autotuning.mode_choice import TrialSpeeds
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.device_visibility import threads_in_use
from accel_engine.training.core.loop import ExecutionMode

_DATA = ("data", "batch_size")
"""Fields instead of which a trial depends on the form of the data, and on each replica's batch."""

_TRIED = ("xla", "micro_batches", "threads")
"""Fields instead of which a trial depends on the modes, and on the threads in use."""


TRIALS = Cache("autotune", TrialSpeeds)
"""The trials of earlier runs, by :func:`trial_key`."""

_RATES = Cache[float]("threads", Rate)
"""Steps per second, by the number of threads and :func:`rates_key`."""


def trial_key(assembly: Assembly, hardware: tuple[str, ...], alternative: ExecutionMode) -> str:
    """Everything that a trial's rates depend on, as JSON."""
    plan = {name: value for name, value in assembly.plan.to_mapping().items() if name not in (*_DATA, *_TRIED)}
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


def load_rates(key: str) -> dict[int, float]:
    """Steps per second of earlier runs by number of threads."""
    found = ((name.partition(" "), each.value) for name, each in _RATES.all().items())
    return {int(count): rate for (count, _, rest), rate in found if rest == key and count.isdecimal()}


def save_rate(key: str, threads: int, rate: float) -> None:
    """Remember the rate of a run.

    A rate that is clearly lower than an earlier run's is not: other programs may slow a run down, but never make it
    faster.
    """
    earlier = load_rates(key).get(threads)
    if earlier is None or earlier < APART * rate:
        _RATES.save({f"{threads} {key}": rate})


def forget_rate(key: str, threads: int) -> None:
    """Forget the rate of runs with a number of threads."""
    _RATES.save({}, forgotten=[f"{threads} {key}"])


def rates_key(resolved: ResolvedPlan, inventory: Inventory) -> str:
    """Everything that the rate of a run depends on and that is known before TensorFlow starts, as JSON."""
    plan = {name: value for name, value in resolved.plan.to_mapping().items() if name != "threads"}
    modified = resolved.model.modified if isinstance(resolved.model, UserModel) else None
    return key_of([device.name for device in inventory.of_kind("cpu")], plan, modified=modified)
