"""Predictions as a table for a terminal."""

from collections.abc import Sequence

import numpy as np

from accel_engine.launch.example_prediction import ExamplePredictions, OutputPrediction
from accel_engine.text import format_metric, printable_line
from accel_tui.cli.prediction_objects import THRESHOLD, shares, step_columns, steps
from accel_tui.cli.table import table

MOST_NUMBERS = 8
"""Numbers of an example that are shown."""

NAME_WIDTH = 60
"""Characters that are shown of the name of an example, which may be a text."""


def prediction_table(found: ExamplePredictions, top: int) -> str:
    """A table for each output, with the examples that have a prediction.

    Args:
        found: The predictions.
        top: Number of the most probable classes.
    """
    several_files = len({path for path, _ in found.names}) > 1
    names = [_name(*found.names[place], several_files=several_files) for place in found.readable]
    pages = []
    for output in found.outputs:
        header, rows = _rows(output, names, top, found.kind)
        page = table((_title(found), *header), rows)
        pages.append(f"{output.name}\n{page}" if output.name else page)
    return "\n\n".join(pages)


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
    """The header and the rows of an output's table."""
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
    if kind == "series":
        rows = [
            (name if not step else "", str(step + 1), *map(_number, each))
            for row, name in enumerate(names)
            for step, each in enumerate(steps(output, row))
        ]
        return ("STEP", *step_columns(output)), rows
    flat = values.reshape(len(names), -1)
    if len(output.columns) == flat.shape[1]:
        return output.columns, [(name, *map(_number, flat[row])) for row, name in enumerate(names)]
    shown = [" ".join(map(_number, each[:MOST_NUMBERS])) + (" …" if len(each) > MOST_NUMBERS else "") for each in flat]
    return ("VALUES",), list(zip(names, shown, strict=True))


def _classes(output: OutputPrediction, row: int, top: int) -> tuple[str, ...]:
    chances = output.values[row]
    best = np.argsort(-chances, kind="stable")[:top].tolist()
    first = (output.classes[best[0]], f"{100 * chances[best[0]]:10.1f}%")
    return (*first, _listed({output.classes[place]: chances[place] for place in best[1:]})) if top > 1 else first


def _labels(output: OutputPrediction, row: int) -> str:
    chances = dict(zip(output.classes, output.values[row].tolist(), strict=True))
    likely = {name: chance for name, chance in chances.items() if chance >= THRESHOLD}
    return _listed(dict(sorted(likely.items(), key=lambda each: -each[1]))) or "none"


def _listed(chances: dict[str, float]) -> str:
    return ", ".join(f"{name} {100 * chance:.1f}%" for name, chance in chances.items())


def _number(value: float) -> str:
    return format_metric(float(value))
