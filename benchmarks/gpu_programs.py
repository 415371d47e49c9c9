"""Compares, on a CPU, XLA's programs for GPUs with its programs for CPUs.

    python benchmarks/gpu_programs.py [--work mlp-32 ...] [--rounds 5] [--seconds 1]

For each work: steps per second of both, which take turns, the median ratio of the GPUs' to the CPUs', the seconds to
trace and compile each, and the largest differences of the losses of the first 20 and 200 steps: where XLA rounds
otherwise, they grow. What a program is for, a GPU alone can show: this shows that it computes the same, and what it
costs to compile.
"""

import argparse
import os
import statistics
import tempfile
import time
from contextlib import contextmanager
from itertools import chain
from unittest.mock import patch

from works import WORKS

STEPS = (20, 200)
"""Steps whose losses are compared."""


class Side:
    """A loop with the programs of a kind of device."""

    def __init__(self, name: str, on_gpu: bool) -> None:
        from accel_engine.plan import Plan
        from accel_engine.training.core.loop import ExecutionMode
        from engine_loop import make_loop

        work = WORKS[name]
        plan = Plan(model=work.model, data=work.data, batch_size=work.batch, last_batch="drop", split="none", xla="on")
        self._on_gpu, self.rates = on_gpu, list[float]()
        with self._device():
            self._loop, self._segment, _ = make_loop(plan, ExecutionMode(xla=True))
            began = time.perf_counter()
            self._loop.compile(self._segment)
            self.compile_seconds = time.perf_counter() - began
            steps = min(STEPS[-1], self._segment.steps)
            self.losses = list(chain(*(chunk.series["loss"] for chunk in self._loop.run(self._segment, 0, steps))))

    def measure(self, seconds: float) -> None:
        """Run steps for some seconds."""
        from engine_loop import measure_rate

        with self._device():
            self.rates.append(measure_rate(self._loop, self._segment, seconds))

    @contextmanager
    def _device(self):
        from accel_engine.training.core.assembly import Assembly

        with patch.object(Assembly, "on_gpu", self._on_gpu):
            yield


def row(name: str, rounds: int, seconds: float) -> str:
    """A row of the report."""
    cpu, gpu = Side(name, on_gpu=False), Side(name, on_gpu=True)
    for _ in range(rounds):
        cpu.measure(seconds)
        gpu.measure(seconds)
    ratios = [own / other for own, other in zip(gpu.rates, cpu.rates, strict=True)]
    spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
    differences = [abs(float(own) - float(other)) for own, other in zip(gpu.losses, cpu.losses, strict=True)]
    largest = ", ".join(f"{max(differences[:steps]):.2g}" for steps in STEPS)
    rates = " | ".join(f"{statistics.median(side.rates):.1f}" for side in (cpu, gpu))
    return f"| `{name}` | {rates} | {spread} | {cpu.compile_seconds:.1f}, {gpu.compile_seconds:.1f} | {largest} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", action="append", choices=WORKS, help="default: mlp-32, mlp-regularized-32 and gpt-32")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="seconds per turn")
    arguments = parser.parse_args()
    os.environ.setdefault("ACCEL_TUI_HOME", tempfile.mkdtemp(prefix="accel-tui-benchmark-"))
    from accel_engine.engine_main import tensorflow_import

    tensorflow_import.prepare()
    print("| work | steps/s, CPUs' program | GPUs' | ratio | seconds to compile | largest differences of losses |")
    print("|---|---|---|---|---|---|")
    for name in arguments.work or ["mlp-32", "mlp-regularized-32", "gpt-32"]:
        print(row(name, arguments.rounds, arguments.seconds), flush=True)


if __name__ == "__main__":
    main()
