"""Measures a training with one of the changes for GPUs and without it, in one process, and prints a JSON object.

    python benchmarks/gpu/variants.py CASE [--seconds 2] [--rounds 4] [--as-gpu]

Both sides take turns, so that a drift of the machine's speed affects them equally. Rates are of chunks as the engine
takes them, without a run's records. ``--as-gpu`` runs the programs of GPUs on a CPU, which shows that they compute the
same, and nothing about their speed on a GPU.
"""

import argparse
import importlib
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parent.parent))

from works import WORKS, Work

CORE = "accel_engine.training.core"
ON_GPU = f"{CORE}.assembly:Assembly.on_gpu"

PLAN = {"epochs": 10, "validation": "off", "xla": "on", "last_batch": "drop", "split": "none"}

COMPARED = 20
"""First steps whose losses are compared of most cases: later ones grow apart where numbers are rounded otherwise."""

DROPOUT_CNN = """
import keras
from keras import layers


def build():
    model = keras.Sequential([
        keras.Input((32, 32, 3)),
        layers.Conv2D(64, 3, activation="relu"), layers.Dropout(0.2),
        layers.Conv2D(64, 3, activation="relu"), layers.MaxPooling2D(), layers.Dropout(0.2),
        layers.Flatten(), layers.Dense(10, activation="softmax"),
    ])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model
"""


class MissingChangeError(Exception):
    """What a case changes is not in this version of accel-tui."""


@dataclass(frozen=True)
class Case:
    """A training, and what differs without the change."""

    plan: Mapping[str, Any]
    """Fields of both sides."""
    without: Mapping[str, Any] = field(default_factory=dict)
    """What is patched without the change, as ``module:name`` or ``module:class.name``, with its values."""
    without_plan: Mapping[str, Any] = field(default_factory=dict)
    """Fields without the change."""
    both: Mapping[str, Any] = field(default_factory=dict)
    """What is patched on both sides."""
    validates: bool = False
    """Whether validations are measured, not steps."""
    compared: int = COMPARED
    """First steps whose losses are compared."""


def of_work(name: str, **fields: Any) -> dict[str, Any]:
    """The fields of a plan of one of the benchmarks' works."""
    work = WORKS[name]
    return {"model": work.model, "data": work.data, "batch_size": work.batch, **fields}


IMAGES = {"data": "synthetic:32x32x3:10:12800", "batch_size": 128}
NO_SHARE = {f"{CORE}.compiled_chunk:PREPARED_SHARE": 0.0}
NO_SEEDED = {f"{CORE}.compiled_chunk:seeded_masks": lambda _: None}
ONE_AT_A_TIME = {f"{CORE}.loop:schedules_ahead": lambda _: False}
VALIDATED = {"data": "synthetic:28x28x1:10:60000", "split": "random", "validation": "epoch", "validation_split": 0.2}

CASES = {
    "blocks": Case(of_work("mlp-32"), {f"{CORE}.compiled_chunk:SHORT_STEPS": 1 << 30}),
    "pipelined": Case(of_work("mlp-32"), ONE_AT_A_TIME),
    "pooling": Case(of_work("fashion-cnn-128"), without_plan={"layer_kernels": "off"}),
    "lstm": Case(of_work("lstm-32"), without_plan={"layer_kernels": "off"}),
    "lstm-cudnn": Case(of_work("lstm-32", xla="off"), without_plan={"xla": "on"}),
    "augmented": Case({"model": "resnet20", "augmentation": ("flip",), **IMAGES}, NO_SHARE),
    "dropout-cnn": Case({"model": "dropout-cnn", **IMAGES}, NO_SHARE, both=NO_SEEDED),
    "dropout": Case(of_work("mlp-regularized-32"), NO_SEEDED),
    "validation": Case({"model": "mlp", "batch_size": 128, **VALIDATED}, {ON_GPU: False}, validates=True),
    "without-xla": Case(of_work("mlp-32", xla="off"), without_plan={"layer_kernels": "off"}),
    **{f"programs-{name}": Case(of_work(name), {ON_GPU: False}, both={ON_GPU: True}, compared=200) for name in WORKS},
}
"""The cases with two sides; ``programs-WORK`` compares the programs of GPUs with those of CPUs on any device."""

ALONE = {"memory": of_work("gpt-32"), "compiling": of_work("gpt-32")}
"""The plans of cases with one side."""

REAL_RUNS = {"epochs-of-5": 5, "epochs-of-100": 100}
"""Steps of an epoch of cases that are real runs."""


@contextmanager
def patched(changes: Mapping[str, Any]) -> Iterator[None]:
    """Patch names for a block.

    Raises:
        MissingChangeError: There is no such name.
    """
    with ExitStack() as stack:
        for path, value in changes.items():
            module, _, names = path.partition(":")
            *owners, name = names.split(".")
            try:
                owner = importlib.import_module(module)
                for each in owners:
                    owner = getattr(owner, each)
                stack.enter_context(patch.object(owner, name, value))
            except (ImportError, AttributeError) as error:
                raise MissingChangeError(path) from error
        yield


class Side:
    """A plan whose steps are taken with some changes."""

    def __init__(
        self,
        fields: Mapping[str, Any],
        changes: Mapping[str, Any],
        *,
        validates: bool = False,
        compared: int = COMPARED,
    ) -> None:
        from accel_engine.plan import Plan
        from accel_engine.training.plan_stepper import PlanStepper

        folder = Path(tempfile.mkdtemp(prefix="accel-tui-benchmark-"))
        chosen = {**PLAN, **fields}
        if chosen["model"] == "dropout-cnn":
            (folder / "net.py").write_text(DROPOUT_CNN)
            chosen["model"] = f"{folder / 'net.py'}:build"
        try:
            plan = Plan(**chosen)
        except TypeError as error:  # there is no such field
            raise MissingChangeError(str(error)) from error
        self._changes, self._validates, self.rates = changes, validates, list[float]()
        with patched(changes):
            self.stepper = PlanStepper(plan, folder)
            self.losses = self.stepper.take(compared).losses
            self._turn(0.1)

    def measure(self, seconds: float) -> None:
        """Take steps for some seconds, or validate once."""
        with patched(self._changes):
            self.rates.append(self._turn(seconds))

    def _turn(self, seconds: float) -> float:
        if self._validates:
            return 1 / self.stepper.validate()[1]
        turn = self.stepper.take_for(seconds)
        return turn.steps / turn.seconds

    @property
    def rate(self) -> float:
        """The median of all turns."""
        return statistics.median(self.rates)


def compare(case: Case, seconds: float, rounds: int, *, as_gpu: bool) -> dict[str, Any]:
    """Both sides of a case in turns."""
    both = {**({ON_GPU: True} if as_gpu else {}), **case.both}
    measured = {"validates": case.validates, "compared": case.compared}
    ours = Side(case.plan, both, **measured)
    other = Side({**case.plan, **case.without_plan}, {**both, **case.without}, **measured)
    with closing(ours.stepper), closing(other.stepper):
        for turn in range(rounds + 1):
            for side in (ours, other) if turn % 2 else (other, ours):  # neither is always the first
                side.measure(seconds)
    for side in (ours, other):
        del side.rates[0]  # chunks still grew
    ratios = [mine / its for mine, its in zip(ours.rates, other.rates, strict=True)]
    unit = "validations/s" if case.validates else "steps/s"
    ratio, low, high = statistics.median(ratios), min(ratios), max(ratios)
    compiled = [round(side.stepper.compile_seconds, 1) for side in (ours, other)]
    difference = max(abs(mine - its) for mine, its in zip(ours.losses, other.losses, strict=True))
    return {
        "ratio": ratio,
        "with": ours.rate,
        "without": other.rate,
        "compile_seconds": compiled,
        "largest_difference_of_losses": difference,
        "text": f"{ratio:.2f} ({low:.2f}-{high:.2f}): {ours.rate:.1f} with, {other.rate:.1f} {unit} without; "
        f"compiled in {compiled[0]} and {compiled[1]} s; losses differ by {difference:.2g}",
    }


def alone(fields: Mapping[str, Any], seconds: float, *, as_gpu: bool) -> dict[str, Any]:
    """The rate, the memory and the compilation of a plan."""
    side = Side(fields, {ON_GPU: True} if as_gpu else {})
    with closing(side.stepper):
        side.measure(seconds)
    peak, compiled = side.stepper.peak_memory, side.stepper.compile_seconds
    memory = "unknown memory" if peak is None else f"{peak / (1 << 30):.2f} GiB at most"
    text = f"{side.rate:.1f} steps/s, {memory}, compiled in {compiled:.1f} s"
    return {"rate": side.rate, "peak_bytes": peak, "compile_seconds": compiled, "text": text}


def real_run(steps: int, seconds: float) -> dict[str, Any]:
    """The rate of a run of a real engine with epochs of some steps."""
    from our_side import Ours

    work = Work("resnet20", f"synthetic:32x32x3:10:{128 * steps}", 128)
    with closing(Ours(work, "on", dashboard=False, threads=None)) as ours:
        ours.settle()
        rates = [ours.measure(max(2.0, seconds)) for _ in range(3)]
    return {"rate": statistics.median(rates), "text": f"{statistics.median(rates):.1f} steps/s"}


def use_cache(kind: str) -> None:
    """Let XLA keep what it has measured of kernels, in an empty folder or in the one of before."""
    folder = Path(os.environ.get("BENCHMARK_FOLDER", tempfile.gettempdir())) / "xla-autotuning"
    if kind == "new" and folder.exists():
        for file in folder.iterdir():
            file.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_gpu_per_fusion_autotune_cache_dir={folder}".strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=(*CASES, *ALONE, *REAL_RUNS))
    parser.add_argument("--seconds", type=float, default=2.0, help="of a turn")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--as-gpu", action="store_true", help="run the programs of GPUs on a CPU")
    parser.add_argument("--cache", choices=("new", "kept"), help="XLA's cache of measured kernels")
    arguments = parser.parse_args()
    os.environ.setdefault("ACCEL_TUI_HOME", tempfile.mkdtemp(prefix="accel-tui-benchmark-"))
    if arguments.cache:
        use_cache(arguments.cache)
    from accel_engine.engine_main import tensorflow_import

    tensorflow_import.prepare()
    name, seconds, as_gpu = arguments.case, arguments.seconds, arguments.as_gpu
    try:
        if name in REAL_RUNS:
            found = real_run(REAL_RUNS[name], seconds)
        elif name in ALONE:
            found = alone(ALONE[name], seconds, as_gpu=as_gpu)
        else:
            found = compare(CASES[name], seconds, arguments.rounds, as_gpu=as_gpu)
    except MissingChangeError as error:
        found = {"missing": str(error)}
    print(json.dumps({"case": name, **found}), flush=True)


if __name__ == "__main__":
    main()
