"""What training makes of its devices: the operations of a step, and the share of the peak that is reached.

That share is the model FLOPs utilization (MFU): the operations that the model needs in a second, over those
that the devices could do.
"""

import tensorflow as tf

from accel_engine.devices.peaks import FLOAT32, TF32, Peak, peak
from accel_engine.events import WorkCounted
from accel_engine.training import cpu_peak
from accel_engine.training.assembly import Assembly
from accel_engine.training.flops import Count, count
from accel_engine.training.run_reporter import RunReporter

SETTLED_SECONDS = 3.0
"""Training before a CPU is measured, beside which that takes little time."""

MEASURED = "measured on this machine, float32"
"""Where the peak of a CPU is from."""


class Utilization:
    """Counts and measures for one run, and tells the run.

    Args:
        assembly: What is trained.
        progress: Where the run stands.
        hardware: What the makers of the devices call them, in the order of the assembly's.
    """

    def __init__(self, assembly: Assembly, progress: RunReporter, hardware: tuple[str, ...]) -> None:
        self._assembly = assembly
        self._progress = progress
        self._hardware = hardware
        self._arithmetic = _arithmetic(assembly)
        self._work = Count(None, "no graph was traced")
        self._peak = self._cpu_peak() if assembly.on_cpu else self._sum_of_peaks()
        self._may_measure = assembly.on_cpu and assembly.alone and self._arithmetic == FLOAT32

    def count(self, graph: tf.Graph) -> Count:
        """Count the graph of a chunk of steps.

        A strategy for TPUs traces a step once for all of its replicas, others once for each of this worker's.
        """
        assembly = self._assembly
        traced = 1 if assembly.devices[0].startswith("TPU") else len(assembly.devices)
        work = count(graph, chunk=True)
        factor = assembly.replicas / traced
        if work.flops is not None:
            work = Count(work.flops * factor, parts={name: part * factor for name, part in work.parts.items()})
        self._work = work
        self._tell()
        return work

    def look(self, seconds: float, rate: float) -> None:
        """Measure the CPU if its peak is not known, or was measured when it had more to do than to train.

        Args:
            seconds: How long training has taken.
            rate: Steps a second.
        """
        if not self._may_measure or not rate or seconds < SETTLED_SECONDS:
            return
        self._may_measure = False
        reached, share = self.reached(rate)
        if reached is None or (share is not None and share <= 1):
            return
        measured, kept = cpu_peak.measure(self._hardware[0])
        self._peak = Peak(measured, MEASURED if kept else f"{MEASURED}, while it was busy")
        self._tell()

    def reached(self, rate: float) -> tuple[float | None, float | None]:
        """Operations a second, and their share of the peak, at a rate of steps a second; ``None`` where unknown."""
        if not rate or self._work.flops is None:
            return None, None
        reached = rate * self._work.flops
        return reached, reached / self._peak.flops if self._peak.flops else None

    def _tell(self) -> None:
        self._progress.say(
            WorkCounted,
            flops=self._work.flops,
            peak=self._peak.flops,
            source=self._peak.source,
            reason=self._work.reason or self._peak.reason,
        )

    def _sum_of_peaks(self) -> Peak:
        """The peak of all workers' devices, which are taken to be like this one's."""
        if not any(self._hardware):
            return Peak(None, reason="nobody here knows what devices these are")
        peaks = [peak(name, self._arithmetic) for name in self._hardware]
        total = 0.0
        for each in peaks:
            if each.flops is None:
                return each
            total += each.flops
        shares = self._assembly.replicas * self._assembly.simultaneous_steps
        return Peak(total * shares / len(peaks), f"{peaks[0].source}, {self._arithmetic}")

    def _cpu_peak(self) -> Peak:
        """The peak of this machine's CPU, whatever number of logical devices it is split into."""
        if not self._assembly.alone:
            return Peak(None, reason="it is not known how many CPUs the workers have together")
        if self._arithmetic != FLOAT32:
            return Peak(None, reason=f"a CPU's peak is measured for float32 only, not for {self._arithmetic}")
        known = cpu_peak.remembered(self._hardware[0])
        if known is None:
            return Peak(None, reason=f"a CPU's peak is measured after {SETTLED_SECONDS:g} s of training")
        return Peak(known, MEASURED)


def _arithmetic(assembly: Assembly) -> str:
    """What the model's matrices are multiplied in; on a GPU, float32 is TF32 unless that was switched off."""
    dtype = str(assembly.model.compute_dtype)
    may_reduce = assembly.devices[0].startswith("GPU") and tf.config.experimental.tensor_float_32_execution_enabled()
    return TF32 if dtype == FLOAT32 and may_reduce else dtype
