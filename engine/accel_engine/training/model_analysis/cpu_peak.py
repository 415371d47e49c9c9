"""Measures a CPU's peak FLOP/s: the fastest float32 matrix product of TensorFlow.

Vendors state no such figure. It is measured once per machine, between two chunks, when no other program uses its
cores, and saved.
"""

import math
import time

import tensorflow as tf

from accel_engine.devices.host_probe import processors
from accel_engine.measure.cache import Cache, Rate, key_of

SECONDS = 0.3
"""How long a measurement takes, about."""

_PEAKS = Cache[float]("cpu_peak", Rate, math.inf)
_SIDES = (512, 1024, 2048, 4096)
_MIN_SECONDS = 0.02  # of a product, so that the overhead of dispatch and threads is negligible
_MIN_CPU_SHARE = 0.8  # of the cores' time in the fastest product, else other programs were using them


def cached_peak(name: str) -> float | None:
    """Return the peak that was measured earlier, in FLOP/s; ``None`` if there is none.

    Args:
        name: The processor's product name.
    """
    return _PEAKS.load(key_of([name]))


def measure_peak(name: str) -> float | None:
    """Measure the peak with all cores, and save it.

    The fastest product counts, earlier measurements included.

    Args:
        name: The processor's product name.

    Returns:
        FLOP/s; ``None``, and nothing is saved, if other programs were using the cores.
    """
    best, share, spent = 0.0, 0.0, 0.0
    sides = iter(_SIDES)
    matrix = _matrix(next(sides))
    while spent < SECONDS:
        began, busy = time.perf_counter(), time.process_time()
        with tf.device("CPU:0"):
            tf.matmul(matrix, matrix)
        seconds = time.perf_counter() - began
        busy = time.process_time() - busy
        best, share = max((best, share), (2 * matrix.shape[0] ** 3 / seconds, busy / seconds / processors()))
        spent += seconds
        if seconds < _MIN_SECONDS and (side := next(sides, None)):
            matrix = _matrix(side)
    if share < _MIN_CPU_SHARE:
        return None
    best = max(best, cached_peak(name) or 0.0)
    _PEAKS.save({key_of([name]): best})
    return best


def _matrix(side: int) -> tf.Tensor:
    # Not random: that would advance the run's random generator.
    with tf.device("CPU:0"):
        return tf.fill((side, side), 0.5)
