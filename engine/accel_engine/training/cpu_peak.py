"""The peak of a CPU, which no maker states: the fastest that TensorFlow multiplies float32 matrices on it.

Measured once on a machine, while nothing is trained, and kept.
"""

import json
import os
import time

import tensorflow as tf

from accel_engine.devices.host_probe import processors
from accel_engine.training.tuning_cache import keep, recall

SECONDS = 0.3
"""How long measuring takes, about."""

_FILE = "cpu_peak.json"
_SIDES = (512, 1024, 2048, 4096)
_LONG_ENOUGH = 0.02  # seconds of a product, beside which calling it and sharing it out among cores is nothing
_UNDISTURBED = 0.8  # of the cores' time, at least for one product


def remembered(name: str) -> float | None:
    """The peak that was measured before.

    Args:
        name: What the processor's maker calls it.

    Returns:
        Floating-point operations a second.
    """
    found = recall(_FILE, _key(name))
    return float(found) if isinstance(found, (int, float)) and found > 0 else None


def measure(name: str) -> tuple[float, bool]:
    """Measure the peak with all cores, and keep it if nothing else used them meanwhile.

    Of all products, also of earlier measurements, the fastest counts: nothing can make one too fast.

    Args:
        name: What the processor's maker calls it.

    Returns:
        Floating-point operations a second, and whether it was kept.
    """
    best, spent = remembered(name) or 0.0, 0.0
    share = 0.0
    sides = iter(_SIDES)
    matrix = _matrix(next(sides))
    while spent < SECONDS:
        began, busy = time.perf_counter(), time.process_time()
        with tf.device("CPU:0"):
            tf.matmul(matrix, matrix)
        seconds = time.perf_counter() - began
        share = max(share, (time.process_time() - busy) / seconds / processors())
        best = max(best, 2 * matrix.shape[0] ** 3 / seconds)
        spent += seconds
        if seconds < _LONG_ENOUGH and (side := next(sides, None)):
            matrix = _matrix(side)
    undisturbed = share >= _UNDISTURBED
    if undisturbed:
        keep(_FILE, _key(name), best)
    return best, undisturbed


def _matrix(side: int) -> tf.Tensor:
    # Not random: that would take numbers from the generator of the run.
    with tf.device("CPU:0"):
        return tf.fill((side, side), 0.5)


def _key(name: str) -> str:
    return json.dumps([name, processors(), tf.__version__, os.environ.get("TF_ENABLE_ONEDNN_OPTS")])
