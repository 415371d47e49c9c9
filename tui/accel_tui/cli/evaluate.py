"""``accel-tui evaluate``: metrics of trained models with confidence intervals, and whether one is better."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from accel_engine.errors import UsageError
from accel_engine.launch.evaluation import (
    ClassScores,
    Difference,
    EvaluatedModel,
    Evaluation,
    EvaluationOptions,
    Measurement,
    MetricDifference,
)
from accel_engine.launch.evaluation import evaluate as evaluate_models
from accel_engine.plan import Plan
from accel_engine.run import find
from accel_engine.text import format_metric
from accel_engine.user_paths import is_file, user_path
from accel_tui.cli.checkpoint_option import Checkpoint
from accel_tui.cli.output import print_to_stderr, write, write_json
from accel_tui.cli.table import table

EPILOG = """\b
Examples:
  accel-tui evaluate last
  accel-tui evaluate k3fp m8w3                      is the second one better?
  accel-tui evaluate k3fp --data tested.csv
  accel-tui evaluate model.keras --data photos/ --json | jq .metrics.accuracy
"""

MODEL_FILES = (".keras", ".h5")
"""Suffixes of files with a model."""

MOST_CLASSES = 20
"""The most classes in the table; of more, those with the lowest F1."""


@click.command(epilog=EPILOG)
@click.argument("targets", metavar="RUN|MODEL...", nargs=-1, required=True)
@click.option("--data", default="", metavar="DATA", help="Other data than that of the runs, as in train.")
@click.option(
    "--split",
    default="auto",
    show_default=True,
    type=click.Choice(("auto", "test", "validation", "training")),
    help="Examples to evaluate; auto: test, or validation where there is no test split.",
)
@click.option(
    "--checkpoint",
    default="auto",
    show_default=True,
    type=Checkpoint(),
    metavar="auto|best|last|STEP",
    help="Weights of runs; auto: best with restore_best, else last.",
)
@click.option(
    "--resamples", default=1000, show_default=True, type=click.IntRange(100, 1_000_000), help="Draws for intervals."
)
@click.option(
    "--confidence",
    default=0.95,
    show_default=True,
    type=click.FloatRange(0.5, 0.999),
    help="Level of the confidence intervals.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per model; the last line has its metrics.")
def evaluate(
    targets: tuple[str, ...],
    data: str,
    split: str,
    checkpoint: str,
    resamples: int,
    confidence: float,
    as_json: bool,
) -> None:
    """Evaluate each RUN, or MODEL (a FILE.keras, with --data), on examples it was not trained on.

    Every metric has a bootstrap confidence interval, classifiers also the precision, recall and F1 of each
    class. Several models are evaluated on the same examples, and a paired permutation test tells how likely
    a difference from the first one is by chance. Evaluation runs on the CPU.
    """
    models = [_model(target, data) for target in targets]
    options = EvaluationOptions(
        data=data, split=split, checkpoint=checkpoint, resamples=resamples, confidence=confidence
    )
    found = evaluate_models(models, options)
    for model in found.models:
        for note in model.notes:
            print_to_stderr(f"{model.name}: {note}" if len(found.models) > 1 else note)
    if as_json:
        for index, model in enumerate(found.models):
            write_json(_object(found, model, found.differences[index - 1] if index else None))
        return
    write("\n\n".join(_page(found, options)))


def _model(target: str, data: str) -> Path | Plan:
    """The directory of a run, or the plan of a file with a model.

    Raises:
        UsageError: A file is given without data.
        AccelError: There is no such run.
    """
    if not target.endswith(MODEL_FILES):
        return find(target)
    if not is_file(user_path(target)):
        raise UsageError(f"no such file: {target}")
    if not data:
        raise UsageError(f"{target} does not tell its data: give it with --data")
    return Plan(model=target, data=data).absolute()


def _page(found: Evaluation, options: EvaluationOptions) -> Iterator[str]:
    yield (
        f"{found.examples:,} {found.split} examples; {100 * options.confidence:.4g}% confidence intervals "
        f"of {options.resamples:,} resamples"
    )
    names = dict.fromkeys(name for model in found.models for name in model.metrics)
    rows = [
        (name, *(_text(model.metrics[name]) if name in model.metrics else "" for model in found.models))
        for name in names
    ]
    yield table(("METRIC", *(_title(model) for model in found.models)), rows)
    for difference in found.differences:
        header = (f"{difference.name} - {difference.than}", "DIFFERENCE", "P", "")
        yield table(header, list(_difference_rows(difference, options.confidence)))
    if len(found.models) == 1 and found.models[0].classes:
        yield from _classes(found.models[0].classes)


def _title(model: EvaluatedModel) -> str:
    return f"{model.name} at step {model.step:,}" if model.step else model.name


def _difference_rows(difference: Difference, confidence: float) -> Iterator[tuple[str, ...]]:
    for name, metric in difference.metrics.items():
        chance = "" if metric.p is None else f"{metric.p:.3g}"
        yield name, _text(metric.measured, signed=True), chance, _verdict(metric, confidence)


def _verdict(metric: MetricDifference, confidence: float) -> str:
    """Whether a difference is an improvement, or may be chance."""
    if not metric.measured.value:
        return "equal"
    if metric.p is None:
        return "cannot be tested: the models have other metrics"
    if metric.p > 1 - confidence:
        return "may be chance"
    return {True: "better", False: "worse", None: "different"}[metric.is_better]


def _classes(classes: tuple[ClassScores, ...]) -> Iterator[str]:
    worst = sorted(classes, key=lambda each: math.inf if each.f1.value is None else each.f1.value)
    shown = [each for each in classes if each in worst[:MOST_CLASSES]]
    rows = [(each.name, f"{each.examples:,}", *map(_share, (each.precision, each.recall, each.f1))) for each in shown]
    yield table(("CLASS", "EXAMPLES", "PRECISION", "RECALL", "F1"), rows)
    if len(shown) < len(classes):
        yield f"The {len(shown)} classes with the lowest F1, of {len(classes):,}; --json has all."


def _share(measured: Measurement) -> str:
    """Such as ``0.975 (0.91-1.00)``."""
    if measured.value is None:
        return "none"
    ends = (measured.low, measured.high)
    interval = f" ({ends[0]:.2f}-{ends[1]:.2f})" if ends[0] is not None and ends[1] is not None else ""
    return f"{measured.value:.3f}{interval}"


def _text(measured: Measurement, *, signed: bool = False) -> str:
    """Such as ``0.9194 (0.894 to 0.947)``."""
    if measured.value is None:
        return "none"
    sign = "+" if signed and measured.value > 0 else ""
    if measured.low is None or measured.high is None:
        return f"{sign}{format_metric(measured.value)}"
    return f"{sign}{format_metric(measured.value)} ({format_metric(measured.low)} to {format_metric(measured.high)})"


def _object(found: Evaluation, model: EvaluatedModel, difference: Difference | None) -> dict[str, Any]:
    values = {
        "model": model.name,
        "step": model.step,
        "split": found.split,
        "examples": found.examples,
        "metrics": {name: metric.value for name, metric in model.metrics.items()},
        "intervals": {name: [metric.low, metric.high] for name, metric in model.metrics.items()},
        "classes": [_class_object(each) for each in model.classes],
        "notes": model.notes,
    }
    if difference is not None:
        values["than"] = difference.than
        values["differences"] = {
            name: {
                "value": metric.measured.value,
                "interval": [metric.measured.low, metric.measured.high],
                "p": metric.p,
                "better": metric.is_better,
            }
            for name, metric in difference.metrics.items()
        }
    return values


def _class_object(scores: ClassScores) -> dict[str, Any]:
    figures = {"precision": scores.precision, "recall": scores.recall, "f1": scores.f1}
    values = {name: each.value for name, each in figures.items()}
    intervals = {name: [each.low, each.high] for name, each in figures.items()}
    return {"class": scores.name, "examples": scores.examples, **values, "intervals": intervals}
