"""Compares validations of one batch at a time, of batches that run together, and of the large batches of GPUs.

    python benchmarks/validation.py [--model mlp ...] [--examples 12000] [--rounds 9]

The three take turns, with the same weights. Prints milliseconds as medians, the median ratios of the first to the
others with the smallest and the largest, and whether the first two have the same metrics, to the bit.
"""

import argparse
import os
import statistics
import tempfile
import time
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

SHARE = 0.2
"""The share of the examples that are validated."""

MEMORY = 64 << 30
"""Bytes of a GPU's memory."""


class Side:
    """A way to validate a model."""

    def __init__(self, assembly: Any, *, together: bool, on_gpu: bool) -> None:
        from accel_engine.training.core.assembly import Assembly
        from accel_engine.training.evaluation.validation import Validation

        self._together, self.milliseconds = together, list[float]()
        with patch.object(Assembly, "on_gpu", on_gpu):
            self._validation = Validation(assembly, MEMORY if on_gpu else None)
        for _ in range(3):  # traces, and finds how many batches run together
            self._run()

    def measure(self) -> dict[str, float]:
        """Validate once; returns the metrics."""
        began = time.perf_counter()
        metrics = self._run()
        self.milliseconds.append(1e3 * (time.perf_counter() - began))
        return metrics

    def _run(self) -> dict[str, float]:
        from accel_engine.training.core.compiled_chunk import ChunkSize

        with ExitStack() as replaced:
            if not self._together:
                replaced.enter_context(patch.object(ChunkSize, "update", lambda *_: None))
            return self._validation.run()


def row(model: str, examples: int, rounds: int) -> str:
    """A row of the report."""
    from accel_engine.plan import Plan
    from accel_engine.plan.resolved_plan import resolve
    from accel_engine.training.core.assembly import assemble

    data = f"synthetic:28x28x1:10:{round(examples / SHARE)}"
    plan = Plan(model=model, data=data, batch_size=128, split="random", validation_split=SHARE)
    assembly = assemble(resolve(plan), ("CPU:0",), None)
    sides = [
        Side(assembly, together=some, on_gpu=large) for some, large in ((False, False), (True, False), (True, True))
    ]
    same = True
    for _ in range(rounds):
        first, second, _ = (side.measure() for side in sides)
        same = same and first == second
    medians = [f"{statistics.median(side.milliseconds):.1f}" for side in sides]
    ratios = [_ratio(sides[0], other) for other in sides[1:]]
    return f"| `{model}` | {' | '.join(medians)} | {' | '.join(ratios)} | {'yes' if same else 'no'} |"


def _ratio(side: Side, other: Side) -> str:
    ratios = [own / another for own, another in zip(side.milliseconds, other.milliseconds, strict=True)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", help="default: mlp and fashion-cnn")
    parser.add_argument("--examples", type=int, default=12000, help="that are validated")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    os.environ.setdefault("ACCEL_TUI_HOME", tempfile.mkdtemp(prefix="accel-tui-benchmark-"))
    from accel_engine.engine_main import tensorflow_import

    tensorflow_import.prepare()
    print("| model | ms, one batch at a time | together | large ones | ratio | ratio | same metrics |")
    print("|---|---|---|---|---|---|---|")
    for model in arguments.model or ["mlp", "fashion-cnn"]:
        print(row(model, arguments.examples, arguments.rounds), flush=True)


if __name__ == "__main__":
    main()
