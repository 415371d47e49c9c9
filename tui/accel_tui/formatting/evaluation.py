"""The tables of an evaluation, for the command and the screen."""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from accel_engine.plan.monitor import is_at_most_one
from accel_engine.requests.evaluate import (
    ClassScores,
    Difference,
    EvaluatedModel,
    Evaluation,
    EvaluationOptions,
    Measurement,
    MetricDifference,
)
from accel_engine.run.store.series_names import is_loss
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.formatting.bars import interval
from accel_tui.formatting.table_columns import DrawnColumn, ResultTable

MOST_CLASSES = 20
"""The most classes in the table; of more, those with the lowest F1."""

MOST_CELLS = 72
"""The widest scale of intervals."""


def evaluation_headline(found: Evaluation, options: EvaluationOptions) -> str:
    """A line on the examples, the device and the confidence intervals of an evaluation."""
    level = f"{100 * options.confidence:.4g}% confidence intervals of {options.resamples:,} resamples"
    is_split = found.split in ("test", "validation", "training")
    examples = f"{found.split} examples" if is_split else f"examples of {found.split}"
    return f"{found.examples:,} {examples}, {found.device.text}; {level}"


def evaluation_tables(found: Evaluation, confidence: float) -> Iterator[ResultTable]:
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
    models = tuple(map(_title, found.models))
    yield ResultTable(("METRIC", *models), [*rows, *_baseline_rows(found.models)], named=models)
    for difference in found.differences:
        header = (f"{difference.name} - {difference.than}", "DIFFERENCE", "P", "")
        yield ResultTable(header, list(_difference_rows(difference, confidence)), named=header[:1])
    if len(found.models) == 1 and found.models[0].classes:
        yield _classes(found.models[0].classes)


def drawn_evaluation_tables(found: Evaluation, confidence: float) -> Iterator[ResultTable]:
    """Yield a table for each metric, with its intervals on one scale, the differences, and a single model's classes.

    Args:
        found: The evaluation.
        confidence: As :func:`evaluation_tables` takes it.
    """
    level = f"{100 * confidence:.4g}% INTERVAL"
    for name in dict.fromkeys(name for model in found.models for name in model.metrics):
        yield _metric_table(found.models, name, level)
    for difference in found.differences:
        rows = [
            (name, _value(each.measured, signed=True), _range(each.measured), chance, verdict)
            for (name, each), (_, _, chance, verdict) in zip(
                difference.metrics.items(), _difference_rows(difference, confidence), strict=True
            )
        ]
        cells = [_difference_cell(each.measured) for each in difference.metrics.values()]
        drawn = DrawnColumn("DIFFERENCE", cells, "┊ no difference", widest=MOST_CELLS)
        header = ("METRIC", "DIFFERENCE", level, "P", "")
        yield ResultTable(header, rows, f"{difference.name} minus {difference.than}", drawn=(drawn,))
    if len(found.models) == 1 and found.models[0].classes:
        yield _classes(found.models[0].classes)


def _metric_table(models: tuple[EvaluatedModel, ...], name: str, level: str) -> ResultTable:
    """A metric of all models, and of what a prediction reaches that has learned nothing."""
    have = [model for model in models if name in model.metrics]
    values = {_title(model): model.metrics[name] for model in have}
    for model in models:
        if (value := model.baseline.get(name)) is not None:
            predicts = f", {printable_line(model.baseline_name)}" if model.baseline_name else ""
            values[f"baseline{predicts}"] = Measurement(value, None, None)
    fits = [model.metrics[name] for model in have] if len(have) > 1 else list(values.values())
    ends = _ends(fits, name, is_single=len(have) < 2)
    cells = [partial(_cell, measured, ends) for measured in values.values()]
    title = f"{numbers.metric(ends[0])} to {numbers.metric(ends[1])}"
    drawn = DrawnColumn("VALUE", cells, title, "secondary" if is_loss(name) else "success", MOST_CELLS)
    rows = [(model, _value(measured), _range(measured)) for model, measured in values.items()]
    return ResultTable(("MODEL", "VALUE", level), rows, name, drawn=(drawn,))


def _ends(measured: Iterable[Measurement], name: str, *, is_single: bool) -> tuple[float, float]:
    """The scale of a metric: of one model from 0, of several only what their intervals need."""
    known = [end for each in measured for end in (each.low, each.value, each.high) if end is not None]
    finite = [end for end in known if math.isfinite(end)] or [0.0]
    low, high = min(finite), max(finite)
    if is_single:
        return min(low, 0.0), 1.0 if is_at_most_one(name) else max(high, 0.0)
    margin = (high - low) / 10 or abs(high) / 10 or 1.0
    return (max(low - margin, 0.0) if low >= 0 else low - margin), (
        min(high + margin, 1.0) if is_at_most_one(name) else high + margin
    )


def _cell(measured: Measurement, ends: tuple[float, float], width: int) -> str:
    low, value, high = map(_or_nan, (measured.low, measured.value, measured.high))
    return interval(low, value, high, ends, width)


def _difference_cell(measured: Measurement) -> Callable[[int], str]:
    """An interval around no difference, which is in the middle."""
    known = [abs(each) for each in (measured.low, measured.value, measured.high) if each is not None]
    most = max((each for each in known if math.isfinite(each)), default=0.0) or 1.0
    low, value, high = map(_or_nan, (measured.low, measured.value, measured.high))
    return lambda width: interval(low, value, high, (-most, most), width, origin=0.0)


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _baseline_rows(models: tuple[EvaluatedModel, ...]) -> Iterator[tuple[str, ...]]:
    """Rows of the baseline: its metrics, and its prediction."""
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
        return f"cannot be tested: {'the models have other metrics' if is_mean else 'it is not a mean over examples'}"
    if metric.p > 1 - confidence:
        return "may be chance"
    return {True: "better", False: "worse", None: "different"}[metric.is_better]


def _classes(classes: tuple[ClassScores, ...]) -> ResultTable:
    worst = sorted(classes, key=lambda each: math.inf if each.f1.value is None else each.f1.value)
    shown = [each for each in classes if each in worst[:MOST_CLASSES]]
    rows = [(each.name, f"{each.examples:,}", *map(_share, (each.precision, each.recall, each.f1))) for each in shown]
    note = f"The {len(shown)} classes with the lowest F1, of {len(classes):,}." if len(shown) < len(classes) else ""
    lowest = min(
        (low for each in shown if (low := each.f1.low if each.f1.low is not None else each.f1.value) is not None),
        default=0.0,
    )
    ends = (math.floor(10 * lowest) / 10, 1.0)
    drawn = DrawnColumn(
        "F1", [partial(_cell, each.f1, ends) for each in shown], f"F1, {ends[0]:.1f} to 1", "success", MOST_CELLS
    )
    titles = ("CLASS", "EXAMPLES", "PRECISION", "RECALL", "F1")
    return ResultTable(titles, rows, "Classes", note, drawn=(drawn,), named=titles[-1:])


def _share(measured: Measurement) -> str:
    """Such as ``0.975 (0.91-1.00)``."""
    if measured.value is None:
        return "none"
    if measured.low is None or measured.high is None:
        return f"{measured.value:.3f}"
    return f"{measured.value:.3f} ({measured.low:.2f}-{measured.high:.2f})"


def _text(measured: Measurement, *, signed: bool = False) -> str:
    """Such as ``0.9194 (0.8944 to 0.9472)``."""
    value, between = _value(measured, signed=signed), _range(measured)
    return f"{value} ({between})" if between else value


def _value(measured: Measurement, *, signed: bool = False) -> str:
    if measured.value is None:
        return "none"
    return f"{'+' if signed and measured.value > 0 else ''}{numbers.metric(measured.value)}"


def _range(measured: Measurement) -> str:
    """Such as ``0.8944 to 0.9472``; empty without an interval."""
    if measured.value is None or measured.low is None or measured.high is None:
        return ""
    return f"{numbers.metric(measured.low)} to {numbers.metric(measured.high)}"
