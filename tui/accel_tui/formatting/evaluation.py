"""The tables of an evaluation, for the command and the screen."""

import math
from collections.abc import Iterator

from accel_engine.requests.evaluate import (
    ClassScores,
    Difference,
    EvaluatedModel,
    Evaluation,
    EvaluationOptions,
    Measurement,
    MetricDifference,
)
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.formatting.table_columns import ResultTable

MOST_CLASSES = 20
"""The most classes in the table; of more, those with the lowest F1."""


def headline(found: Evaluation, options: EvaluationOptions) -> str:
    """What was evaluated, and how."""
    level = f"{100 * options.confidence:.4g}% confidence intervals of {options.resamples:,} resamples"
    is_split = found.split in ("test", "validation", "training")
    examples = f"{found.split} examples" if is_split else f"examples of {found.split}"
    return f"{found.examples:,} {examples}, {found.device.text}; {level}"


def tables(found: Evaluation, confidence: float) -> Iterator[ResultTable]:
    """Yield the metrics of all models, the differences of each to the first, and the classes of a single model.

    Args:
        found: The evaluation.
        confidence: The level below which a difference may be chance, 0 to 1.
    """
    names = dict.fromkeys(name for model in found.models for name in model.metrics)
    rows = [
        (name, *(_text(model.metrics[name]) if name in model.metrics else "" for model in found.models))
        for name in names
    ]
    yield ResultTable(("METRIC", *map(_title, found.models)), [*rows, *_baseline_rows(found.models)])
    for difference in found.differences:
        header = (f"{difference.name} - {difference.than}", "DIFFERENCE", "P", "")
        yield ResultTable(header, list(_difference_rows(difference, confidence)))
    if len(found.models) == 1 and found.models[0].classes:
        yield _classes(found.models[0].classes)


def _baseline_rows(models: tuple[EvaluatedModel, ...]) -> Iterator[tuple[str, ...]]:
    """What a prediction that has learned nothing reaches, and what it predicts."""
    for name in dict.fromkeys(name for model in models for name in model.baseline):
        values = (model.baseline.get(name) for model in models)
        yield f"baseline {name}", *("" if value is None else numbers.metric(value) for value in values)
    if any(model.baseline_name for model in models):
        yield "baseline", *(printable_line(model.baseline_name) for model in models)


def _title(model: EvaluatedModel) -> str:
    return f"{model.name} at step {model.step:,}" if model.step else model.name


def _difference_rows(difference: Difference, confidence: float) -> Iterator[tuple[str, ...]]:
    for name, metric in difference.metrics.items():
        chance = "" if metric.p is None else f"{metric.p:.3g}"
        yield name, _text(metric.measured, signed=True), chance, _verdict(metric, confidence)


def _verdict(metric: MetricDifference, confidence: float) -> str:
    """Whether a difference is an improvement, or may be chance."""
    if metric.measured.value is None:
        return "not a number"
    if not metric.measured.value:
        return "equal"
    if metric.p is None:
        is_mean = metric.measured.low is not None
        return f"cannot be tested: {'the models have other metrics' if is_mean else 'it is no mean over examples'}"
    if metric.p > 1 - confidence:
        return "may be chance"
    return {True: "better", False: "worse", None: "different"}[metric.is_better]


def _classes(classes: tuple[ClassScores, ...]) -> ResultTable:
    worst = sorted(classes, key=lambda each: math.inf if each.f1.value is None else each.f1.value)
    shown = [each for each in classes if each in worst[:MOST_CLASSES]]
    rows = [(each.name, f"{each.examples:,}", *map(_share, (each.precision, each.recall, each.f1))) for each in shown]
    note = f"The {len(shown)} classes with the lowest F1, of {len(classes):,}." if len(shown) < len(classes) else ""
    return ResultTable(("CLASS", "EXAMPLES", "PRECISION", "RECALL", "F1"), rows, note=note)


def _share(measured: Measurement) -> str:
    """Such as ``0.975 (0.91-1.00)``."""
    if measured.value is None:
        return "none"
    if measured.low is None or measured.high is None:
        return f"{measured.value:.3f}"
    return f"{measured.value:.3f} ({measured.low:.2f}-{measured.high:.2f})"


def _text(measured: Measurement, *, signed: bool = False) -> str:
    """Such as ``0.9194 (0.8944 to 0.9472)``."""
    if measured.value is None:
        return "none"
    sign = "+" if signed and measured.value > 0 else ""
    value = f"{sign}{numbers.metric(measured.value)}"
    if measured.low is None or measured.high is None:
        return value
    return f"{value} ({numbers.metric(measured.low)} to {numbers.metric(measured.high)})"
