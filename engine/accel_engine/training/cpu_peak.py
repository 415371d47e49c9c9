"""The peak of a CPU, which no maker states: the fastest that TensorFlow multiplies float32 matrices on it.

Measured once on a machine, while nothing is trained, and kept.
"""

import json
import os
import time

import psutil
import tensorflow as tf

from accel_engine.training.kept import keep, recall

SECONDS = 0.3
"""How long measuring takes, about."""

_FILE = "cpu_peak.json"
_SIDES = (512, 1024, 2048, 4096)
_LONG_ENOUGH = 0.02  # seconds of a product, beside which calling it and sharing it out among cores is nothing


def remembered(name: str) -> float | None:
    """The peak that was measured before.

    Args:
        name: What the processor's maker calls it.

    Returns:
        Floating-point operations a second.
    """
    found = recall(_FILE, _key(name))
    return float(found) if isinstance(found, (int, float)) and found > 0 else None


def measure(name: str) -> float:
    """Measure the peak with all cores, keep it, and return it.

    What else the machine does can only make it slower, so the fastest product counts, and of two
    measurements the higher.
    """
    best = remembered(name) or 0.0
    end = time.perf_counter() + SECONDS
    sides = iter(_SIDES)
    matrix = _matrix(next(sides))
    with tf.device("CPU:0"):
        while time.perf_counter() < end:
            began = time.perf_counter()
            tf.matmul(matrix, matrix)
            seconds = time.perf_counter() - began
            best = max(best, 2 * matrix.shape[0] ** 3 / seconds)
            if seconds < _LONG_ENOUGH and (side := next(sides, None)):
                matrix = _matrix(side)
    keep(_FILE, _key(name), best)
    return best


def _matrix(side: int) -> tf.Tensor:
    # Not random: that would take numbers from the generator of the run.
    with tf.device("CPU:0"):
        return tf.fill((side, side), 0.5)


def _key(name: str) -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else psutil.cpu_count()
    return json.dumps([name, cores, tf.__version__, os.environ.get("TF_ENABLE_ONEDNN_OPTS")])
