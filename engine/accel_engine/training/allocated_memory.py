"""What TensorFlow has of a device's memory in use, beside what the driver says is taken.

TensorFlow takes memory from the driver in large pieces and keeps it, so that the driver's figure says little of what
a model needs. This is its allocator's own.
"""

from collections.abc import Iterable
from dataclasses import replace

import tensorflow as tf

from accel_engine.devices.reading import Reading, Sample


class Allocator:
    """Adds to the samples of the devices of a run what TensorFlow has allocated on them.

    Those are the readings ``allocated`` and ``allocated_peak`` (B): now, and at most since the run began. There
    are none for a CPU, whose memory TensorFlow does not count.

    Args:
        devices: TensorFlow's devices, each with its ``name`` and the id of its ``device``.
    """

    def __init__(self, devices: Iterable[dict[str, str]]) -> None:
        self._names: dict[str, list[str]] = {}
        for device in devices:
            if device["device"] and device["kind"] != "cpu":
                self._names.setdefault(device["device"], []).append(device["name"])

    def add(self, samples: tuple[Sample, ...]) -> tuple[Sample, ...]:
        """Give the samples with what is known of their devices."""
        return tuple(
            replace(sample, readings={**sample.readings, **_allocated(self._names[sample.device])})
            if sample.device in self._names
            else sample
            for sample in samples
        )


def _allocated(names: list[str]) -> dict[str, Reading]:
    """What is allocated on all of a chip's cores."""
    try:
        told = [tf.config.experimental.get_memory_info(name) for name in names]
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        why = f"TensorFlow does not tell: {str(error).splitlines()[0]}"
        return {name: Reading.missing(why, "B") for name in ("allocated", "allocated_peak")}
    return {
        "allocated": Reading(float(sum(info["current"] for info in told)), "B"),
        "allocated_peak": Reading(float(sum(info["peak"] for info in told)), "B"),
    }
