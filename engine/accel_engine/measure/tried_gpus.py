"""Remembers on which GPUs of this machine something was computed, with the present driver and TensorFlow."""

import json
import math
from collections.abc import Iterable

from accel_engine.devices.installation import DISTRIBUTIONS, installed_versions
from accel_engine.measure.cache import Cache, Rate, driver

_TRIED = Cache[float]("gpus_tried", Rate, math.inf)


def note_tried(gpus: Iterable[str]) -> None:
    """Remember GPUs, by their product names."""
    _TRIED.save({_key(gpu): 1.0 for gpu in gpus})


def untried(gpus: Iterable[str]) -> tuple[str, ...]:
    """The GPUs, of those given, on which nothing was computed yet."""
    known = _TRIED.all()
    return tuple(gpu for gpu in dict.fromkeys(gpus) if _key(gpu) not in known)


def _key(gpu: str) -> str:
    return json.dumps([gpu, driver(), installed_versions(*DISTRIBUTIONS)], sort_keys=True)
