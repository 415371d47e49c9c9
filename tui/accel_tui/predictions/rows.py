"""Predictions as rows of a table."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from accel_engine.data.data_options import OF_CLASSES
from accel_engine.inference.output_prediction import (
    THRESHOLD,
    OutputPrediction,
    forecast_steps,
    shares,
    step_columns,
)
from accel_engine.requests.predict import ExamplePredictions
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_engine.words.numbers import percent
from accel_tui.formatting.bars import bar
from accel_tui.formatting.table_columns import DrawnColumn, ResultTable

MOST_NUMBERS = 8
"""Numbers of an example that are shown."""

BAR_WIDTH = 20
"""The most cells of the bar of a probability of 1."""

NAME_WIDTH = 60
"""Characters that are shown of the name of an example, which may be a text."""


@dataclass(frozen=True, slots=True)
class PredictionTable:
    """The predictions of an output."""

    output: str
    """The output's name; empty if it is the only one."""
    header: tuple[str, ...]
    """The titles of the columns; the first one is of the examples."""
    rows: list[tuple[str, ...]]
    """The texts of each row, one per column, of the examples that have a prediction."""
    chances: tuple[float, ...] = ()
    """The probability of the class of each row, 0 to 1; empty for other tasks."""


def prediction_tables(found: ExamplePredictions, top: int, most: int | None = None) -> Iterator[PredictionTable]:
    """Yield a table for each output.

    Args:
        found: The predictions.
        top: Number of the most probable classes.
        most: The most examples; ``None`` for all.
    """
    names = _names(found, found.readable[:most])
    for output in found.outputs:
        header, rows = _rows(output, names, top, found.kind)
        best = output.values[: len(names)].max(axis=1) if output.task == "classification" and names else ()
        yield PredictionTable(output.name, (_title(found), *header), rows, tuple(map(float, best)))


def drawn_prediction_tables(found: ExamplePredictions, top: int, most_rows: int) -> list[ResultTable]:
    """A table for each output, with a bar for each probability, and one for the examples without a prediction.

    Args:
        found: The predictions; many take long.
        top: Number of the most probable classes.
        most_rows: The most rows of a table.
    """
    most = most_examples(found, most_rows)
    predicted = prediction_tables(found, top, most) if found.readable else ()
    tables = [_with_bars(each, output) for each, output in zip(predicted, found.outputs, strict=False)]
    if problems := _problem_rows(found, most_rows):
        tables.append(ResultTable(("EXAMPLE", "REASON"), problems, "Not predicted", colour="error"))
    return tables


def _with_bars(table: PredictionTable, output: OutputPrediction) -> ResultTable:
    found = ResultTable(table.header, table.rows, table.output or "Predictions", named=output.columns)
    if not table.chances:
        return found
    cells = [partial(bar, chance) for chance in table.chances]
    return replace(found, drawn=(DrawnColumn("PROBABILITY", cells, colour="success", widest=BAR_WIDTH),))


def is_forecast(output: OutputPrediction, kind: str) -> bool:
    """Whether an example of an output has a row for each step."""
    return kind == "series" and output.task not in (*OF_CLASSES, "segmentation") and output.chances is None


def most_examples(found: ExamplePredictions, most_rows: int) -> int:
    """The most examples with which no table has more than ``most_rows`` rows; at least one."""
    forecasts = (output for output in found.outputs if is_forecast(output, found.kind) and len(output.values))
    return max(1, most_rows // max((len(forecast_steps(output, 0)) for output in forecasts), default=1))


def _problem_rows(found: ExamplePredictions, most: int | None = None) -> list[tuple[str, str]]:
    """The examples without a prediction, each with its reason."""
    places = list(found.problems)[:most]
    reasons = (printable_line(found.problems[place]) for place in places)
    return list(zip(_names(found, places), reasons, strict=True))


def _names(found: ExamplePredictions, places: Sequence[int]) -> list[str]:
    several_files = len({path for path, _ in found.names}) > 1
    return [_name(*found.names[place], several_files=several_files) for place in places]


def _title(found: ExamplePredictions) -> str:
    titles = {"table": "ROW", "text": "TEXT", "audio": "SOUND", "images": "IMAGE", "series": "SERIES"}
    return titles.get(found.kind, "EXAMPLE")


def _name(path: str, name: str, *, several_files: bool) -> str:
    full = f"{path} {name}" if several_files and path and path != name else name
    line = printable_line(full)
    return line if len(line) <= NAME_WIDTH else f"{line[: NAME_WIDTH - 1]}…"


def _rows(
    output: OutputPrediction, names: Sequence[str], top: int, kind: str
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The header and the rows of an output's table, of as many examples as there are names."""
    values = output.values
    if output.task == "classification":
        header = ("LABEL", "PROBABILITY", *(["OTHERS"] if top > 1 else []))
        return header, [(name, *_classes(output, row, top)) for row, name in enumerate(names)]
    if output.task == "multi-label":
        listed = [_labels(output, row) for row in range(len(names))]
        return ("LABELS",), list(zip(names, listed, strict=True))
    if output.task == "segmentation":
        pixels = [shares(values[row], output.classes) for row in range(len(names))]
        return ("PIXELS",), [(name, _listed(each)) for name, each in zip(names, pixels, strict=True)]
    if output.task == "sequence" and output.chances is not None:
        tokens = [" ".join(output.classes[each] for each in values[row].ravel().tolist()) for row in range(len(names))]
        return ("LABELS",), list(zip(names, tokens, strict=True))
    if is_forecast(output, kind):
        steps = [forecast_steps(output, row) for row in range(len(names))]
        written = _forms([each for found in steps for each in found])
        rows = [
            (name if not step else "", str(step + 1), *written(each))
            for name, found in zip(names, steps, strict=True)
            for step, each in enumerate(found)
        ]
        return ("STEP", *step_columns(output)), rows
    flat = values[: len(names)].reshape(len(names), -1)
    if len(output.columns) == flat.shape[1]:
        written = _forms(flat)
        return output.columns, [(name, *written(flat[row])) for row, name in enumerate(names)]
    written = _forms(flat[:, :MOST_NUMBERS])
    shown = [" ".join(written(each[:MOST_NUMBERS])) + (" …" if len(each) > MOST_NUMBERS else "") for each in flat]
    return ("VALUES",), list(zip(names, shown, strict=True))


def _classes(output: OutputPrediction, row: int, top: int) -> tuple[str, ...]:
    chances = output.values[row]
    best = np.argsort(-chances, kind="stable")[:top].tolist()
    first = (output.classes[best[0]], f"{percent(float(chances[best[0]]), 1):>11}")
    return (*first, _listed({output.classes[place]: chances[place] for place in best[1:]})) if top > 1 else first


def _labels(output: OutputPrediction, row: int) -> str:
    chances = dict(zip(output.classes, output.values[row].tolist(), strict=True))
    likely = {name: chance for name, chance in chances.items() if chance >= THRESHOLD}
    return _listed(dict(sorted(likely.items(), key=lambda each: -each[1]))) or "none"


def _listed(chances: dict[str, float]) -> str:
    return ", ".join(f"{name} {percent(float(chance), 1)}" for name, chance in chances.items())


def _forms(rows: Iterable[Sequence[float]]) -> Callable[[Iterable[float]], list[str]]:
    """Make a function that formats a row of numbers, each column in one form."""
    forms = [numbers.in_one_form(numbers.metric, map(float, column)) for column in zip(*rows, strict=False)]
    return lambda row: [form(float(value)) for form, value in zip(forms, row, strict=False)]
