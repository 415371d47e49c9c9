"""The diagnostics of a report: confusion matrix, scores of classes, figures of other tasks, and examples."""

import math
from collections.abc import Iterator

import numpy as np

from accel_engine.image_files import encode_png
from accel_engine.run.diagnostics import (
    Diagnostics,
    ForecastReport,
    MultiLabelReport,
    OutputReport,
    ReconstructionReport,
    RegressionReport,
    SequenceReport,
)
from accel_engine.run.diagnostics.views import Text
from accel_engine.words import numbers
from accel_engine.words.numbers import percent
from accel_tui.report.html import Html, element, image_element, joined, pairs, section, table_element
from accel_tui.widgets.diagnostics.class_table import Confusion, confused, confusion_of, names_and_figures, pair_name
from accel_tui.widgets.diagnostics.examples import ListedExamples, captions, leaves
from accel_tui.widgets.diagnostics.pixels import picture_names, pictures_of

MOST_CLASSES = 25
"""Classes up to which the whole confusion matrix is shown; else the pairs that are confused most."""

_MOST_PAIRS, _MOST_EXAMPLES, _MOST_SCORES = 20, 12, 100
_SIDE = 96  # pixels of the longer side of a picture, at least


def diagnostics_section(found: Diagnostics) -> Html:
    """The results of the last validation, as far as they are stored; empty without."""
    if found.validation is None:
        return Html("")
    step = found.steps.get("validation", 0)
    outputs = [report for report in found.validation.outputs if report is not None and report.examples]
    parts = [joined(_output(report, step, is_single=len(outputs) == 1)) for report in outputs]
    return section("Diagnostics", *parts)


def _output(report: OutputReport, step: int, *, is_single: bool) -> Iterator[Html]:
    after = f", after step {step:,}" if step else ""
    if not is_single:
        yield element("h3", report.output)
    yield element("p", f"{numbers.counted(report.examples, 'validation example')}{after}.", class_="quiet")
    if report.reason:
        yield element("p", f"{report.reason}.", class_="quiet")
    yield pairs(_figures(report))
    confusion = confusion_of(report)
    beside = [_confusion(confusion) if confusion else Html(""), _scores(report)]
    yield element("div", *(element("div", each) for each in beside if each), class_="side")
    yield _examples(report, step)


def _figures(report: OutputReport) -> Iterator[tuple[str, str]]:
    """Figures of tasks without classes."""
    metric = numbers.metric
    match report:
        case RegressionReport():
            for name, mae, rmse, r2 in zip(report.names, report.mae, report.rmse, report.r2, strict=True):
                known = "" if math.isnan(r2) else f", R² {metric(float(r2))}"
                yield name or "error", f"MAE {metric(float(mae))}, RMSE {metric(float(rmse))}{known}"
        case ReconstructionReport():
            yield "error", f"MAE {metric(report.mae)}, RMSE {metric(report.rmse)}"
        case ForecastReport():
            yield "error", f"MAE {metric(report.mean_mae)}, RMSE {metric(report.mean_rmse)}"
        case SequenceReport():
            yield "tokens", f"{report.tokens:,}"
            yield "accuracy", percent(report.accuracy)
            yield "perplexity", metric(report.perplexity)
            if report.generated:
                yield "written text", f"{report.prompt}{report.generated}"


def _confusion(confusion: Confusion) -> Html:
    """The matrix, true classes as rows; of many classes the pairs that are confused most."""
    if len(confusion.counts) > MOST_CLASSES:
        rows = [
            (pair_name(confusion, pair), f"{pair[2]:,}", percent(pair[3])) for pair in confused(confusion, _MOST_PAIRS)
        ]
        return joined((element("h3", "Most confused"), table_element(("true as predicted", "count", "share"), rows)))
    totals = np.maximum(confusion.counts.sum(axis=1), 1)
    lines = [element("tr", element("th", "true \\ predicted"), *(element("th", name) for name in confusion.names))]
    for index, (name, row) in enumerate(zip(confusion.names, confusion.counts, strict=True)):
        cells = [_cell(int(count), count / totals[index], is_right=index == other) for other, count in enumerate(row)]
        lines.append(element("tr", element("th", name, class_="true"), *cells))
    title = f"Confusion matrix of {confusion.noun or 'example'}s"
    matrix = element("table", *lines, class_="matrix")
    return joined((element("h3", title), element("div", matrix, class_="scrolls")))


def _cell(count: int, share: float, *, is_right: bool) -> Html:
    hue = "primary" if is_right else "secondary"  # as the dashboard has them
    strength = round(100 * (0.1 + 0.6 * share)) if count else 0
    style = f"background:color-mix(in srgb,var(--{hue}) {strength}%,var(--surface))"
    return element("td", f"{count:,}" if count else "·", style=style)


def _scores(report: OutputReport) -> Html:
    found = names_and_figures(report)
    if found is None:
        return Html("")
    names, figures = found
    rows = [
        (name, *(_share(value) for value in values), f"{int(support):,}")
        for name, *values, support in zip(
            names, figures.precision, figures.recall, figures.f1, figures.support, strict=True
        )
    ]
    titles = ("label" if isinstance(report, MultiLabelReport) else "class", "precision", "recall", "F1", "count")
    more = len(rows) - _MOST_SCORES
    note = element("p", f"and {more:,} more", class_="quiet") if more > 0 else ""
    return joined((element("h3", "Scores"), table_element(titles, rows[:_MOST_SCORES]), note))


def _share(value: float) -> str:
    return "—" if math.isnan(value) else percent(float(value))


def _examples(report: OutputReport, step: int) -> Html:
    """The examples with the highest loss, with their pictures or texts."""
    listed = ListedExamples(report, step).shown[:_MOST_EXAMPLES]
    tiles = []
    for example in listed:
        shown = [
            image_element(encode_png(each.pixels), name, width=max(_SIDE, each.pixels.shape[1]))
            for name, each in zip(picture_names(example), pictures_of(example), strict=True)
        ]
        texts = [leaf.text for leaf in leaves(example.input) if isinstance(leaf, Text)]
        true, predicted = captions(report, example)
        caption = element(
            "figcaption",
            *(element("div", text) for text in texts),
            element("div", f"{true.mark}{true.text}{true.suffix}"),
            element("div", f"{predicted.mark}{predicted.text}{predicted.suffix}", class_=predicted.style),
        )
        tiles.append(element("figure", *shown, caption))
    heading = element("h3", "Examples with the highest loss")
    return joined((heading, element("div", *tiles, class_="samples"))) if tiles else Html("")
