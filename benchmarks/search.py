"""Searches on problems with known answers, and what a search costs beside its trials.

    python benchmarks/search.py functions [--seeds 10] [--trials 60]
    python benchmarks/search.py mnist1d DIRECTORY [--trials 30] [--epochs 60]

``functions`` minimizes Branin and Hartmann6 with this program's scheduler, whose trials are functions instead of runs,
and with Optuna alone. ``mnist1d`` searches for a CNN with runs as they are; its data is made by the package ``mnist1d``
(``pip install mnist1d``), whose test examples no trial sees. The search runs in this process, whose processor time is
measured.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna

from accel_engine.devices import detect
from accel_engine.events import RunEnded
from accel_engine.plan import Plan
from accel_engine.run import RunReader, Status, runs_directory
from accel_engine.run.directory.lock import WriterLock
from accel_engine.search import new_study
from accel_engine.search.definition import Objective, SearchOptions, StudyDefinition
from accel_engine.search.engine_runs import DirectStarter, EngineRuns
from accel_engine.search.process import run_search
from accel_engine.search.ranges import parse_all
from accel_engine.search.storage import create_study
from accel_engine.search.study_paths import LOCK, study_directory
from accel_engine.search.study_reader import StudyReader
from accel_engine.search.trial_runs import Observation, RunMetrics

FIELDS = {
    "weight_decay": 1.0,
    "learning_rate": 1.0,
    "learning_rate_factor": 1.0,
    "clip_norm": 1.0,
    "ema_momentum": 0.999999,
    "label_smoothing": 0.9,
}
"""Fields of a plan that stand for the coordinates, from 0 to these values."""

LEAST = 1e-9
"""Of fields that must be above 0."""

TRIAL_SECONDS = 30.0
"""Length of a trial that the overhead is compared with."""


def branin(point: Sequence[float]) -> float:
    """Its minima are 0.397887 (Dixon and Szegö, 1978)."""
    x, y = 15 * point[0] - 5, 15 * point[1]
    inner = y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6
    return inner**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


_ALPHA = (1.0, 1.2, 3.0, 3.2)
_A = ((10, 3, 17, 3.5, 1.7, 8), (0.05, 10, 17, 0.1, 8, 14), (3, 3.5, 1.7, 10, 17, 8), (17, 8, 0.05, 10, 0.1, 14))
_P = (
    (0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886),
    (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991),
    (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650),
    (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381),
)


def hartmann6(point: Sequence[float]) -> float:
    """Its minimum is -3.32237 (Dixon and Szegö, 1978)."""
    total = 0.0
    for alpha, scales, centre in zip(_ALPHA, _A, _P, strict=True):
        total += alpha * math.exp(-sum(a * (x - p) ** 2 for a, x, p in zip(scales, point, centre, strict=True)))
    return -total


FUNCTIONS: Mapping[str, tuple[Callable[[Sequence[float]], float], int, float]] = {
    "Branin": (branin, 2, 0.397887),
    "Hartmann6": (hartmann6, 6, -3.32237),
}
"""By name: the function, its dimensions, its minimum."""


@dataclass
class FunctionRuns:
    """Trials that compute a function at once.

    Attributes:
        function: Of a point with coordinates from 0 to 1.
        names: The fields that are the coordinates.
    """

    function: Callable[[Sequence[float]], float]
    names: Sequence[str]
    plans: dict[str, Plan] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)

    def slots(self) -> int:
        """One trial at a time."""
        return 1

    def ahead(self) -> int:
        """None."""
        return 0

    def create(self, plan: Plan, study: str, trial: int | None) -> str:
        """Note the plan of a trial."""
        run = f"{study}-{trial}"
        self.plans[run] = plan
        return run

    def find(self, study: str) -> Mapping[str, int | None]:
        """Find nothing: no process was killed."""
        return {}

    def exists(self, run: str) -> bool:
        """No run is deleted."""
        return run in self.plans

    def start(self, run: str) -> str:
        """Start a trial."""
        self.started.add(run)
        return ""

    def reopen(self, run: str, changes: Mapping[str, Any]) -> None:
        """No trial is continued."""
        raise NotImplementedError

    def observe(self, run: str) -> Observation:
        """A started trial has ended."""
        if run not in self.started:
            return Observation(Status.QUEUED)
        point = [getattr(self.plans[run], name) / FIELDS[name] for name in self.names]
        metrics = {"loss": self.function(point)}
        return Observation(Status.FINISHED, (RunMetrics(1, 1, time.time(), metrics),))

    def stop(self, run: str, reason: str) -> None:
        """No trial is stopped."""
        raise NotImplementedError

    def figures(self, run: str, wanted: Collection[str]) -> Mapping[str, float]:
        """There are no such objectives."""
        raise NotImplementedError


def ours(name: str, trials: int, seed: int) -> float:
    """The least value that a search finds."""
    function, dimensions, _ = FUNCTIONS[name]
    names = list(FIELDS)[:dimensions]
    over = parse_all(
        [f"{each}={0.0 if each in ('weight_decay', 'label_smoothing') else LEAST}..{FIELDS[each]}" for each in names]
    )
    title = f"{name.lower()}-{seed}"
    definition = StudyDefinition(
        title, {}, over, (Objective("loss", maximize=False),), trials, sampler="tpe", pruner="off", seed=seed, confirm=0
    )
    directory = study_directory(title)
    create_study(directory, definition)
    ended = run_search(directory, FunctionRuns(function, names), lambda _: None)
    return float(ended["best"]["objectives"]["loss"])


def optuna_alone(name: str, trials: int, seed: int) -> float:
    """The least value that Optuna finds with its own loop."""
    function, dimensions, _ = FUNCTIONS[name]
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(
        lambda trial: function([trial.suggest_float(f"x{i}", 0, 1) for i in range(dimensions)]), n_trials=trials
    )
    return float(study.best_value)


def functions(seeds: int, trials: int) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    print(f"\nLeast value after {trials} trials, over {seeds} seeds\n")
    print("| Function | Minimum | | Median | Best seed | Worst seed |\n|---|---|---|---|---|---|")
    for name, (_, _, minimum) in FUNCTIONS.items():
        for who, search in (("accel-tui search", ours), ("Optuna alone", optuna_alone)):
            found = sorted(search(name, trials, seed) for seed in range(seeds))
            values = f"{statistics.median(found):.4f} | {found[0]:.4f} | {found[-1]:.4f}"
            print(f"| {name} | {minimum:.4f} | {who} | {values} |")


def make_mnist1d(path: Path) -> None:
    """4,000 examples, of which the last 400 are for validation, and 1,000 for the test."""
    import numpy as np
    from mnist1d.data import get_dataset_args, make_dataset

    data = make_dataset(get_dataset_args())
    inputs, labels = data["x"].astype("float32"), data["y"].astype("int64")
    np.savez(
        path,
        x_train=inputs[:3600],
        y_train=labels[:3600],
        x_val=inputs[3600:],
        y_val=labels[3600:],
        x_test=data["x_test"].astype("float32"),
        y_test=data["y_test"].astype("int64"),
    )


def mnist1d(directory: Path, trials: int, epochs: int) -> None:
    data = directory / "mnist1d.npz"
    if not data.exists():
        make_mnist1d(data)
    models = Path(__file__).with_name("search_models.py")
    plan = Plan(data=str(data), model=f"{models}:cnn50", epochs=epochs, schedule="cosine")
    choices = ",".join(f"{models}:{name}" for name in ("cnn50", "cnn100", "cnn200"))
    over = ("learning_rate=1e-3..3e-2:log", "batch_size=32,64,128", f"model={choices}", "weight_decay=1e-5..1e-1:log")
    plan = plan.replace(optimizer="adamw", model="auto")
    options = SearchOptions(parameters=parse_all(over), name=f"mnist1d-{time.time():.0f}", trials=trials)
    study = new_study.begin_study(
        new_study.define(plan, ("data", "epochs", "optimizer", "schedule"), options), detect().devices
    )
    began, processor = time.monotonic(), time.process_time()
    with WriterLock(study, LOCK):
        ended = run_search(study, EngineRuns(DirectStarter()))
    seconds, processor = time.monotonic() - began, time.process_time() - processor
    print(json.dumps(ended, indent=2))
    report(study, ended, seconds, processor)


def report(study: Path, ended: Mapping[str, Any], seconds: float, processor: float) -> None:
    """Print what a search has found, and what it cost."""
    with StudyReader(study) as reader:
        trials = [each for each in reader.trials.values() if each.run]
    tests = [test_accuracy(run) for run in ended["confirmation"]["runs"]]
    gaps = list(gaps_between([each.run for each in trials]))
    cost = processor / seconds * TRIAL_SECONDS + statistics.fmean(gaps)
    print(f"{len(trials)} trials in {seconds / 60:.1f} minutes: {ended['states']}")
    print(f"best validation accuracy {ended['best']['objectives']['validation_accuracy']:.4f}")
    print(f"confirmed: {ended['confirmation']['mean']:.4f} ± {ended['confirmation']['spread']:.4f}")
    print(f"accuracy on the test examples of the confirming runs: {', '.join(f'{each:.4f}' for each in tests)}")
    print(f"the search's processor time: {processor:.2f} s, {processor / seconds:.2%} of the time")
    print(
        f"from the end of a run to the creation of the next: {statistics.fmean(gaps):.3f} s, at most {max(gaps):.3f} s"
    )
    print(f"together {cost / TRIAL_SECONDS:.2%} of a trial of {TRIAL_SECONDS:g} s")


def gaps_between(runs: Sequence[str]) -> list[float]:
    """Seconds from the end of each run to the creation of the next one."""
    spans = []
    for run in runs:
        with closing(RunReader(runs_directory() / run, steps=False)) as reader:
            ends = [event.time for event in reader.poll().events if isinstance(event, RunEnded)]
            spans.append((reader.info().created, ends))
    return [
        min(created - end for end in (end for _, ends in spans for end in ends) if end <= created)
        for created, _ in sorted(spans)[1:]
    ]


def test_accuracy(run: str) -> float:
    command = [str(Path(sys.executable).with_name("accel-tui")), "evaluate", run, "--split", "test", "--json"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    found = [json.loads(line) for line in lines]
    return float(next(each["metrics"]["accuracy"] for each in found if "accuracy" in each.get("metrics", {})))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("functions", "mnist1d"))
    parser.add_argument("directory", nargs="?", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--trials", type=int)
    parser.add_argument("--epochs", type=int, default=60)
    options = parser.parse_args()
    if options.what == "functions":
        with tempfile.TemporaryDirectory() as home:
            os.environ["ACCEL_TUI_HOME"] = home
            functions(options.seeds, options.trials or 60)
    else:
        mnist1d(options.directory, options.trials or 30, options.epochs)


if __name__ == "__main__":
    main()
