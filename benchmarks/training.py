"""Measures steps per second of accel-tui's engine compared with ``model.fit``.

    python benchmarks/training.py [--work mlp-32 ...] [--rounds 5] [--seconds 3]

Every side is a separate process that keeps running. They are measured in turn, for some seconds each, so that a drift
of the machine's speed affects all equally. Ours is the real engine writing its run, with all per-step series and a
dashboard following it in a pseudo-terminal of 200x50; it is paused and resumed by commands.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from terminal import Terminal

SIDES = {
    "fit": "model.fit(verbose=0)",
    "tensorboard": 'fit with TensorBoard(update_freq="batch")',
    "fit-32": "fit with steps_per_execution=32",
}
"""The alternatives, by the name of the side."""


@dataclass(frozen=True)
class Work:
    """A model, its data and its batch size."""

    model: str
    data: str
    batch: int


OWN = Path(__file__).parent / "training_works.py"

# `fit` trains at least one epoch, so the slow cases have short ones.
WORKS = {
    "mlp-32": Work("mlp", "synthetic:28x28x1:10:20000", 32),
    "mlp-128": Work("mlp", "synthetic:28x28x1:10:60000", 128),
    "fashion-cnn-128": Work("fashion-cnn", "synthetic:28x28x1:10:12800", 128),
    "fashion-cnn-1000": Work("fashion-cnn", "synthetic:28x28x1:10:8000", 1000),
    "resnet20-128": Work("resnet20", "synthetic:32x32x3:10:640", 128),
    "tabular-128": Work(f"{OWN}:tabular_model", f"{OWN}:tabular", 128),
    "tabular-stream-128": Work(f"{OWN}:tabular_model", f"{OWN}:tabular_stream", 128),
    "lstm-32": Work(f"{OWN}:lstm_model", f"{OWN}:rows_of_images", 32),
    "gpt-32": Work(f"{OWN}:gpt_model", f"{OWN}:tokens", 32),
    "unet-32": Work(f"{OWN}:unet_model", f"{OWN}:masks", 32),
}


SETTLING_SECONDS = 12.0
"""Training before the first turn, in which the engine measures the CPU's peak and tries ways to run a step."""

TRIALS = {"mlp": "xla_tried", "fashion-cnn": "micro_batches_tried"}
"""The event of the engine's autotuning trial on a CPU, by model."""


class Baseline:
    """A process that trains with ``fit`` on request."""

    def __init__(self, side: str, work: str, onednn: bool) -> None:
        variables = {"TF_CPP_MIN_LOG_LEVEL": "3"} | ({"TF_ENABLE_ONEDNN_OPTS": "1"} if onednn else {})
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve", side, "--work", work],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | variables,
        )

    def measure(self, seconds: float) -> float:
        """Train for about this long; returns steps per second."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()


def prepare(work: Work) -> tuple[Any, tuple[Any, ...], int]:
    """A model, what its ``fit`` takes, and the steps of an epoch, in whole batches only."""
    import training_works
    from accel_engine import data
    from accel_engine.models.build import build
    from accel_engine.models.loaded_data import describe_data
    from accel_engine.plan import Plan

    dataset = data.load(work.data, Plan(data=work.data, batch_size=work.batch, split="none").data_options)
    model = build(work.model, describe_data(dataset, "auto"))
    if work.data.endswith("_stream"):
        return model, (training_works.tabular_stream(),), training_works.ROWS // work.batch
    x, y = dataset.train.inputs, dataset.train.targets
    if dataset.value_range.pixels:
        x = x.astype("float32") / 255
    steps = len(x) // work.batch
    return model, (x[: steps * work.batch], y[: steps * work.batch]), steps


def serve(side: str, work: Work) -> None:
    """Train with ``fit`` for as many seconds as each line of standard input says."""
    os.environ["KERAS_BACKEND"] = "tensorflow"
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    import keras

    keras.utils.set_random_seed(0)
    model, examples, steps = prepare(work)
    model.compile(
        model.optimizer if model.compiled else "adam",
        model.loss if model.compiled else "sparse_categorical_crossentropy",
        metrics=["accuracy"],
        steps_per_execution=32 if side == "fit-32" else 1,
    )
    callbacks = []
    if side == "tensorboard":
        callbacks = [keras.callbacks.TensorBoard(tempfile.mkdtemp(), update_freq="batch")]

    def epoch() -> None:
        model.fit(*examples, batch_size=work.batch if len(examples) > 1 else None, verbose=0, callbacks=callbacks)

    epoch()
    for line in sys.stdin:
        done, began = 0, time.perf_counter()
        while time.perf_counter() - began < float(line):
            epoch()
            done += steps
        print(done / (time.perf_counter() - began), file=answers)


class Ours:
    """A real engine that trains a run, and a dashboard that follows it."""

    def __init__(self, work: Work, xla: str, dashboard: bool, threads: int | None) -> None:
        from accel_engine import run
        from accel_engine.launch import engine_process
        from accel_engine.plan import Plan

        plan = Plan(
            model=work.model,
            data=work.data,
            batch_size=work.batch,
            epochs=10**6,
            validation="off",
            xla=xla,
            last_batch="drop",
            split="none",
        )
        self.directory = run.create(plan)
        # 0 is TensorFlow's own number, also where earlier runs were faster with another one.
        self._engine = engine_process.start(self.directory, {"TF_NUM_INTRAOP_THREADS": str(threads or 0)})
        self._reader = run.RunReader(self.directory)
        watching = (sys.executable, "-m", "accel_tui", "watch", self.directory)
        self._dashboard = Terminal(watching) if dashboard else None
        trial = TRIALS.get(work.model) if xla == "auto" else None
        kinds: set[str] = set()
        trained: list[float] = []

        def settled() -> bool:
            time.sleep(0.2)
            kinds.update(event.kind() for event in self._reader.poll().events)
            if run.list_runs()[0].steps > 5:
                trained.append(time.monotonic())
            return bool(trained) and trained[-1] - trained[0] > SETTLING_SECONDS and (trial is None or trial in kinds)

        self._wait_for(settled)
        self._ask("pause")

    def measure(self, seconds: float) -> float:
        """Train for this long after a warm-up; returns steps per second."""
        self._ask("resume")
        time.sleep(0.5)
        self._reader.poll()
        time.sleep(seconds)
        chunks = self._reader.poll().chunks
        self._ask("pause")
        # From the end of one chunk to the end of another, so that the time between chunks counts.
        return sum(chunk.count for chunk in chunks[1:]) / (chunks[-1].ended - chunks[0].ended)

    def close(self) -> None:
        """Kill the engine and the dashboard."""
        self._engine.kill()
        self._engine.wait()
        if self._dashboard:
            self._dashboard.close()

    def _ask(self, command: str) -> None:
        from accel_engine import run
        from accel_engine.run.commands import read_answer

        number = run.request(self.directory, command)
        self._wait_for(lambda: read_answer(self.directory, number))

    @staticmethod
    def _wait_for(condition: Callable[[], object], seconds: float = 180.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise SystemExit("the engine does not respond")
            time.sleep(0.01)


def compare(name: str, arguments: argparse.Namespace) -> Iterator[str]:
    """Measure one case on all sides; yields rows of the report."""
    rounds, seconds = arguments.rounds, arguments.seconds
    ours = Ours(WORKS[name], arguments.xla, dashboard=not arguments.no_dashboard, threads=arguments.threads)
    others = {side: Baseline(side, name, arguments.onednn) for side in SIDES}
    try:
        for other in others.values():
            other.measure(0.1)
        rates: dict[str, list[float]] = {side: [] for side in ("ours", *SIDES)}
        for _ in range(rounds):
            rates["ours"].append(ours.measure(seconds))
            for side, other in others.items():
                rates[side].append(other.measure(seconds))
        cells = [f"{statistics.median(rates['ours']):.1f}"]
        for side in SIDES:
            ratios = [mine / its for mine, its in zip(rates["ours"], rates[side], strict=True)]
            spread = f"{min(ratios):.2f}-{max(ratios):.2f}"
            cells.append(f"{statistics.median(rates[side]):.1f} | {statistics.median(ratios):.2f} ({spread})")
        yield f"| `{name}` | " + " | ".join(cells) + " |"
    finally:
        ours.close()
        for other in others.values():
            other.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", action="append", choices=WORKS, help="default: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds per turn")
    parser.add_argument("--xla", default="auto", choices=("auto", "on", "off"))
    parser.add_argument("--no-dashboard", action="store_true")
    parser.add_argument("--threads", type=int, help="threads per operation of our engine; default: the number of CPUs")
    parser.add_argument(
        "--onednn",
        action="store_true",
        help="enable the kernels that our engine uses for fit, too (TF_ENABLE_ONEDNN_OPTS=1)",
    )
    parser.add_argument("--serve", choices=SIDES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve, WORKS[arguments.work[0]])
        return
    os.environ.setdefault("ACCEL_TUI_HOME", tempfile.mkdtemp(prefix="accel-tui-benchmark-"))
    print(f"Python {platform.python_version()}, {os.cpu_count()} logical CPUs, {time.strftime('%Y-%m-%d')}")
    print("| work | ours, steps/s | fit | ours over it | TensorBoard | ours over it | fit-32 | ours over it |")
    print("|---|---|---|---|---|---|---|---|")
    for name in arguments.work or WORKS:
        for line in compare(name, arguments):
            print(line, flush=True)


if __name__ == "__main__":
    main()
