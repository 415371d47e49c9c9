"""Remembers how fast runs of a kind were with each number of threads per operation, on this machine."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import keras
import msgspec
import tensorflow as tf

from accel_engine import clock
from accel_engine.devices.device_types import Inventory
from accel_engine.devices.host_probe import processors
from accel_engine.models import UserModel
from accel_engine.plan import affecting
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.training.autotuning.thread_choice import WORTHWHILE
from accel_engine.tuning_cache import Rate, is_recent, load, save
from accel_engine.version import __version__

_FILE = "threads.json"

_Threads = Annotated[int, msgspec.Meta(ge=1)]

_VARIABLES = ("TF_ENABLE_ONEDNN_OPTS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS", "TF_XLA_FLAGS", "XLA_FLAGS")
"""Variables of the environment on which it depends."""


@dataclass(frozen=True, slots=True)
class RememberedRate:
    """The rate of an earlier run.

    Attributes:
        rate: Steps per second.
        measured_at: When, in seconds since the Unix epoch.
    """

    rate: Rate
    measured_at: float


def load_rates(key: str) -> dict[int, float]:
    """Steps per second of earlier runs by number of threads; without those that are too old or damaged."""
    return {count: remembered.rate for count, remembered in _load(key).items()}


def save_rate(key: str, threads: int, rate: float) -> None:
    """Remember the rate of a run.

    One that is clearly lower than that of an earlier run is not: other programs may slow a run down, but never make it
    faster.
    """
    rates = _load(key)
    if threads not in rates or rates[threads].rate < WORTHWHILE * rate:
        _save(key, {**rates, threads: RememberedRate(rate, clock.now())})


def forget_rate(key: str, threads: int) -> None:
    """Forget the rate of runs with a number of threads."""
    _save(key, {count: rate for count, rate in _load(key).items() if count != threads})


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


def _load(key: str) -> dict[int, RememberedRate]:
    """The remembered rates by number of threads."""
    rates = load(_FILE, key, dict[_Threads, RememberedRate]) or {}
    return {threads: remembered for threads, remembered in rates.items() if is_recent(remembered.measured_at)}


def _save(key: str, rates: Mapping[int, RememberedRate]) -> None:
    save(_FILE, key, rates)
