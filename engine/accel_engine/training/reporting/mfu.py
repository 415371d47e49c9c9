"""Measures model FLOPs utilization (MFU).

MFU is the floating-point operations of the model per second over the devices' peak FLOP/s.
"""

import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from accel_engine.devices.host_probe import processors
from accel_engine.devices.peaks import FLOAT32, TF32, Peak, peak, utilization
from accel_engine.events import WorkCounted
from accel_engine.measure.cache import Cache, Rate, key_of
from accel_engine.memory import available_memory
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.model_analysis.flops import FlopCount, count_flops
from accel_engine.training.reporting.run_reporter import RunReporter

SETTLED_SECONDS = 3.0
"""Seconds of training before a CPU's peak is measured, which takes little time in comparison."""

NEXT_TRY = 10
"""How many times as long a run must be before the peak is measured again, if other programs used the CPU."""

CPU_IN_USE = "a CPU's peak is not measured while other programs use it"

MEASURED_SOURCE = "in float32, measured on this machine"
"""The source of a CPU's peak."""


class MfuMeter:
    """Measures the MFU of one run and emits ``WorkCounted``.

    Args:
        assembly: Model, data and strategy.
        reporter: Writes the run's events.
        hardware: The devices' product names, in the assembly's order.
    """

    def __init__(self, assembly: Assembly, reporter: RunReporter, hardware: tuple[str, ...]) -> None:
        self._assembly = assembly
        self._reporter = reporter
        self._hardware = hardware
        self._arithmetic = _arithmetic_of(assembly)
        self._work = FlopCount(None, "no graph has been traced")
        self._peak = self._cpu_peak() if assembly.on_cpu else self._sum_of_peaks()
        self._may_measure = assembly.on_cpu and assembly.single_process and self._arithmetic == FLOAT32
        self._due = SETTLED_SECONDS

    def count_flops(self, graph: tf.Graph, examples: int) -> FlopCount:
        """Count the operations of a step of the global batch, from the graph of a chunk.

        TPUStrategy traces a step once for all replicas, other strategies once for each of this worker's. The stages of
        a pipeline are one replica.

        Args:
            graph: The graph of a chunk.
            examples: Examples of each of its steps, over all replicas: fewer than the global batch for the last batch
                of a stream.
        """
        assembly = self._assembly
        is_once = assembly.devices[0].startswith("TPU") or assembly.stages is not None
        traced = 1 if is_once else len(assembly.devices)
        work = count_flops(graph, chunk=True)
        factor = assembly.replicas / traced * assembly.step_counts.global_batch / examples
        if work.flops is not None:
            work = FlopCount(work.flops * factor, parts={name: part * factor for name, part in work.parts.items()})
        self._work = work
        self._report()
        return work

    def update_peak(self, seconds: float, rate: float) -> None:
        """Measure the CPU's peak if it is unknown, and drop a peak that is lower than the rate that training achieves.

        Args:
            seconds: Seconds of training so far.
            rate: Steps per second.
        """
        if not rate or seconds < self._due:
            return
        achieved, mfu = self.achieved(rate)
        if achieved is None or mfu is not None:
            return
        before = self._peak
        if self._may_measure:
            self._due = NEXT_TRY * seconds
            measured = measure_peak(self._hardware[0])
            self._may_measure = measured is None
            self._peak = Peak(None, reason=CPU_IN_USE) if measured is None else Peak(measured, MEASURED_SOURCE)
        if self._peak.flops_per_second and achieved > self._peak.flops_per_second:
            self._peak = Peak(None, reason=f"training is faster than the peak that is known ({self._peak.source})")
        if self._peak != before:
            self._report()

    def achieved(self, rate: float) -> tuple[float | None, float | None]:
        """The achieved FLOP/s and the MFU, 0 to 1, at a rate in steps per second; ``None`` where unknown."""
        if not rate or self._work.flops is None:
            return None, None
        achieved = rate * self._work.flops
        return achieved, utilization(achieved, self._peak.flops_per_second)

    def _report(self) -> None:
        self._reporter.emit(
            WorkCounted,
            flops=self._work.flops,
            peak=self._peak.flops_per_second,
            source=self._peak.source,
            reason=self._work.reason or self._peak.reason,
        )

    def _sum_of_peaks(self) -> Peak:
        """The peak of all workers' devices, assuming that they are like this one's."""
        if not any(self._hardware):
            return Peak(None, reason="the devices are unknown")
        peaks = [peak(name, self._arithmetic) for name in self._hardware]
        total = 0.0
        for each in peaks:
            if each.flops_per_second is None:
                return each
            total += each.flops_per_second
        stages = len(self._assembly.stages.stages) if self._assembly.stages else 1
        shares = self._assembly.replicas * stages * self._assembly.simultaneous_steps
        return Peak(total * shares / len(peaks), f"{peaks[0].source}, {self._arithmetic}")

    def _cpu_peak(self) -> Peak:
        """The peak of this machine's CPU, whatever the number of its logical devices."""
        if not self._assembly.single_process:
            return Peak(None, reason="the number of CPUs of all workers is unknown")
        if self._arithmetic != FLOAT32:
            return Peak(None, reason=f"a CPU's peak is measured in float32 only, not in {self._arithmetic}")
        known = cached_peak(self._hardware[0])
        if known is None:
            return Peak(None, reason=f"a CPU's peak is measured after {SETTLED_SECONDS:g} s of training")
        return Peak(known, MEASURED_SOURCE)


def _arithmetic_of(assembly: Assembly) -> str:
    """The type of the model's matrix products; on a GPU, float32 is TF32 unless disabled."""
    dtype = str(assembly.model.compute_dtype)
    may_reduce = assembly.devices[0].startswith("GPU") and tf.config.experimental.tensor_float_32_execution_enabled()
    return TF32 if dtype == FLOAT32 and may_reduce else dtype


SECONDS = 0.3
"""About how many seconds a measurement takes."""

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


@dataclass(frozen=True, slots=True)
class Roofline:
    """The peak rates of one device."""

    flops: float | None
    """FLOP/s; ``None`` if unknown."""
    flops_source: str
    """Source of that, or why it is unknown."""
    bytes: float | None = None
    """Bytes per second of its memory; ``None`` if unknown."""
    bytes_source: str = ""
    """Source of that."""


def roofline(assembly: Assembly, hardware: tuple[str, ...]) -> Roofline:
    """The roofline of the device that trains; of a CPU it is measured, unless that was done before.

    A GPU's bandwidth is in traces, and is not looked for here.

    Args:
        assembly: The model and its devices; no step may run meanwhile.
        hardware: The devices' product names.
    """
    arithmetic, name = _arithmetic_of(assembly), next(iter(hardware), "")
    if not assembly.on_cpu:
        found = peak(name, arithmetic) if name else Peak(None, reason="the devices are unknown")
        return Roofline(found.flops_per_second, f"{found.source}, {arithmetic}" if found.source else found.reason)
    if (flops := cached_peak(name) or measure_peak(name)) is None:
        return Roofline(None, CPU_IN_USE)
    bandwidth = _BANDWIDTHS.load(key_of([name])) or _measure_bandwidth(name)
    source = "copies by all cores, measured on this machine" if bandwidth else ""
    if arithmetic != FLOAT32:
        return Roofline(None, f"a CPU's peak is measured in float32 only, not in {arithmetic}", bandwidth, source)
    return Roofline(flops, MEASURED_SOURCE, bandwidth, source)


_BANDWIDTHS = Cache[float]("cpu_bandwidth", Rate, math.inf)
_COPIED_BYTES = 256 << 20  # of all cores together: more than a cache has
_COPIES = 3
_SPARE = 8  # times as much memory as is copied has to be available


def _measure_bandwidth(name: str) -> float | None:
    """Measure with what rate all cores copy memory at once, each byte read and written, and save it.

    Args:
        name: The processor's product name.

    Returns:
        Bytes per second, of the fastest of some copies; ``None``, and nothing is saved, if other programs were using
        the cores, or memory is short.
    """
    if available_memory() < _SPARE * _COPIED_BYTES:
        return None
    arrays = [np.zeros(_COPIED_BYTES // processors() // 2, np.uint8) for _ in range(processors())]
    copies = [np.ones_like(array) for array in arrays]
    best, share = 0.0, 0.0
    with ThreadPoolExecutor(len(arrays)) as threads:
        for _ in range(_COPIES):
            began, busy = time.perf_counter(), time.process_time()
            list(threads.map(np.copyto, copies, arrays))
            seconds = time.perf_counter() - began
            busy = (time.process_time() - busy) / seconds / processors()
            best, share = max((best, share), (2 * sum(array.nbytes for array in arrays) / seconds, busy))
    if share < _MIN_CPU_SHARE:
        return None
    _BANDWIDTHS.save({key_of([name]): best})
    return best


def _matrix(side: int) -> tf.Tensor:
    # Not random: that would advance the run's random generator.
    with tf.device("CPU:0"):
        return tf.fill((side, side), 0.5)
