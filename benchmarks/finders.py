"""How well the learning rates train that ``accel-tui find learning-rate`` suggests, against a fine grid of rates.

    .venv/bin/python benchmarks/finders.py [--orders 2] [--out rates.json] [TASK ...]

Each task is trained with every rate of a grid of four a decade, and with each suggestion, from the same initial weights
and in the same orders of the examples, for the same steps at a constant rate. The mean of the metric of the validation
split after the last step counts. All trainings of a task take place in one engine process, one after the other.
"""

import argparse
import json
import math
import pydoc_data.topics
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from accel_engine.finders.learning_rate_finder import find_learning_rate
from accel_engine.finders.rate_suggestions import Rule
from accel_engine.measure.plan_trials import PlanTrial, PlanTrials
from accel_engine.plan import Plan
from accel_engine.requests.try_plan import TrialStart

PER_DECADE = 4
"""Rates of the grid from a rate to ten times that."""

ADAM = (1e-4, 1.0)
SGD = (1e-3, 10.0)


@dataclass(frozen=True, slots=True)
class Task:
    """A training with a rate to find.

    Attributes:
        name: Its name.
        plan: What is trained.
        steps: Steps of each training.
        rates: The ends of the grid.
        metric: The metric of the validation that counts.
    """

    name: str
    plan: Plan
    steps: int
    rates: tuple[float, float]
    metric: str = "accuracy"

    @property
    def is_loss(self) -> bool:
        """Whether lower values of the metric are better."""
        return self.metric != "accuracy"

    def share(self, value: float, best: float) -> float:
        """How good a value is, as a share of the best: 1 is as good."""
        if not math.isfinite(value):
            return 0.0
        return best / value if self.is_loss else value / best


def tasks(folder: Path) -> Iterator[Task]:
    """The five tasks; their data is written to a folder."""
    table, text = folder / "friedman.csv", folder / "topics.txt"
    write_table(table)
    text.write_text("\n".join(pydoc_data.topics.topics.values()))
    yield Task("mlp, digits, Adam", Plan(model="mlp", data="digits", epochs=20, batch_size=32), 900, ADAM)
    yield Task("cnn, digits, Adam", Plan(model="cnn", data="digits", epochs=5, batch_size=32), 225, ADAM)
    yield Task(
        "tabular, Friedman's table, Adam",
        Plan(data=str(table), target=("y",), epochs=10, batch_size=64),
        500,
        ADAM,
        "loss",
    )
    yield Task(
        "gpt, Python's help texts, Adam",
        Plan(model="gpt", data=str(text), window=64, batch_size=16, epochs=1, steps_per_epoch=300),
        300,
        ADAM,
        "loss",
    )
    sgd = {"optimizer": "sgd", "momentum": 0.9}
    yield Task(
        "resnet20, digits, SGD with momentum",
        Plan(model="resnet20", data="digits", epochs=8, batch_size=64, **sgd),
        184,
        SGD,
    )


def later_tasks(folder: Path) -> Iterator[Task]:
    """Five tasks that were first measured after the rule had been chosen."""
    spirals, series = folder / "spirals.csv", folder / "series.csv"
    write_spirals(spirals)
    write_series(series)
    yield Task(
        "mlp, digits, SGD", Plan(model="mlp", data="digits", optimizer="sgd", epochs=20, batch_size=32), 900, SGD
    )
    yield Task(
        "linear, digits, RMSprop",
        Plan(model="linear", data="digits", optimizer="rmsprop", epochs=10, batch_size=32),
        450,
        ADAM,
    )
    yield Task(
        "tabular, two spirals, AdamW",
        Plan(data=str(spirals), target=("arm",), optimizer="adamw", weight_decay=0.01, epochs=20, batch_size=32),
        720,
        ADAM,
    )
    yield Task(
        "autoencoder, digits, Adam",
        Plan(model="autoencoder", data="digits", task="reconstruction", epochs=10, batch_size=64),
        225,
        ADAM,
        "loss",
    )
    yield Task(
        "tcn, Mackey-Glass series, Adam",
        Plan(model="tcn", data=str(series), target=("x",), window=32, epochs=10, batch_size=64),
        400,
        ADAM,
        "loss",
    )


def write_spirals(path: Path) -> None:
    """Two arms of a spiral with noise: 1,280 rows, 2 columns and the arm."""
    generator = np.random.default_rng(1)
    arm, angle = generator.integers(0, 2, 1280), 3 * np.pi * np.sqrt(generator.random(1280))
    turned = angle + np.pi * arm
    points = angle[:, np.newaxis] * np.column_stack([np.cos(turned), np.sin(turned)])
    points += generator.normal(scale=0.3, size=points.shape)
    rows = (f"{x:.4f},{y:.4f},{'left' if each else 'right'}" for (x, y), each in zip(points, arm, strict=True))
    path.write_text("\n".join(["x,y,arm", *rows]))


def write_series(path: Path) -> None:
    """The chaotic series of Mackey and Glass (1977) with a delay of 17, one value a step: 3,000 rows."""
    values = [1.2] * 18
    for _ in range(3000):
        values.append(0.9 * values[-1] + 0.2 * values[-18] / (1 + values[-18] ** 10))
    path.write_text("\n".join(["x", *(f"{value:.5f}" for value in values[18:])]))


def write_table(path: Path) -> None:
    """Friedman's first regression problem: 4,000 rows, 10 columns of which 5 count, noise of 1."""
    generator = np.random.default_rng(0)
    x = generator.random((4000, 10))
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    y += generator.normal(size=len(y))
    names = ",".join([*(f"x{number}" for number in range(10)), "y"])
    np.savetxt(path, np.column_stack([x, y]), "%.5f", ",", header=names, comments="")


def grid(lowest: float, highest: float) -> list[float]:
    """Rates at equal factors, both ends included."""
    count = round(PER_DECADE * math.log10(highest / lowest))
    return [lowest * 10 ** (number / PER_DECADE) for number in range(count + 1)]


def train(trial: PlanTrial, task: Task, rate: float, orders: int) -> float:
    """The mean of the metric after trainings with a rate; not a number if one diverges."""
    found = []
    for seed in range(orders):
        trial.process.restore(seed)
        losses = trial.process.take_at([rate]).losses
        losses += trial.process.take(task.steps - 1).losses
        value = trial.process.validate()[0].get(task.metric)
        found.append(value if value is not None and math.isfinite(losses[-1]) else math.nan)
    return statistics.fmean(found)


def measure(task: Task, orders: int, before: dict[str, object]) -> dict[str, object]:
    """Find rates for a task, and train with them and with the grid, as far as an earlier call has not."""
    found = find_learning_rate(task.plan, lambda _: None)
    suggestions, known = found.suggestions, dict(before.get("grid", ()))  # type: ignore[call-overload]
    with PlanTrials((TrialStart(task.plan),)) as trials:
        trials.wait_ready()
        trial = trials.trials[0]
        values = {}
        for rate in grid(*task.rates):
            values[rate] = known[rate] if rate in known else train(trial, task, rate, orders)
            print(f"  {rate:.3g}: {values[rate]:.4g}", file=sys.stderr)
        suggested = {each.rule.value: (each.rate, train(trial, task, each.rate, orders)) for each in suggestions.found}
    curve = suggestions.curve
    return {
        "task": task.name,
        "problem": suggestions.problem,
        "answer": found.best.rule.value if found.best else "",
        "compared": {rule.value: loss for rule, loss in found.compared.items()},
        "grid": list(values.items()),
        "suggested": suggested,
        "spread": {each.rule.value: (each.low, each.high) for each in suggestions.found},
        "curve": [] if curve is None else list(zip(curve.rates.tolist(), curve.losses.tolist(), strict=True)),
        "ramps": [(ramp.seed, ramp.rates, ramp.losses) for ramp in found.ramps],
    }


def report(task: Task, measured: dict[str, object]) -> str:
    """A row of the table in ``benchmarks/README.md``."""
    values = dict(measured["grid"])  # type: ignore[call-overload]
    finite = {rate: value for rate, value in values.items() if math.isfinite(value)}
    best = (min if task.is_loss else max)(finite, key=finite.__getitem__)
    cells = [f"{best:.2g}: {finite[best]:.4g}"]
    for rule in Rule:
        rate, value = measured["suggested"].get(rule.value, (math.nan, math.nan))  # type: ignore[attr-defined]
        mark = "**" if rule.value == measured["answer"] else ""
        cells.append(f"{mark}{rate:.2g}: {value:.4g} ({100 * task.share(value, finite[best]):.1f}%){mark}")
    return f"| {task.name} | {task.metric} | {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the tasks and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", help="names, or beginnings of names, of tasks; default: all")
    parser.add_argument("--orders", type=int, default=2, help="trainings of each rate")
    parser.add_argument("--out", type=Path, help="file for all figures, as JSON")
    parser.add_argument("--grids", type=Path, help="such a file of an earlier call, whose grids are not trained again")
    options = parser.parse_args(arguments)
    earlier = json.loads(options.grids.read_text()) if options.grids else []
    everything = []
    with tempfile.TemporaryDirectory() as folder:
        for task in (*tasks(Path(folder)), *later_tasks(Path(folder))):
            if options.tasks and not any(task.name.startswith(name) for name in options.tasks):
                continue
            print(task.name, file=sys.stderr)
            before = next((each for each in earlier if each["task"] == task.name), {})
            everything.append(measure(task, options.orders, before))
            print(report(task, everything[-1]), flush=True)
            if options.out:
                options.out.write_text(json.dumps(everything))


if __name__ == "__main__":
    main()
