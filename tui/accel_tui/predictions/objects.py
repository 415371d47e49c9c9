"""Predictions as objects of plain values: lines of JSON, and rows of CSV files."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import OF_CLASSES
from accel_engine.inference.output_prediction import (
    OutputPrediction,
    forecast_steps,
    json_numbers,
    prediction,
    step_columns,
)
from accel_engine.requests.predict import ExamplePredictions

MOST_COLUMNS = 10_000
"""Values of an example that a row of a CSV file has at most."""


def objects(found: ExamplePredictions, top: int) -> Iterator[dict[str, Any]]:
    """An object for each example, with its name, its predictions and why it has none.

    Args:
        found: The predictions.
        top: Number of the most probable classes of an image, in its field ``top``.
    """
    row = 0
    for place, (path, name) in enumerate(found.names):
        values: dict[str, Any] = {"example": name, "problem": found.problems.get(place, "")}
        if path and path != name:
            values = {"file": path, **values}
        if place not in found.problems:
            parts = {output.name: prediction(output, row, found.kind) for output in found.outputs}
            values |= {"outputs": parts} if len(parts) > 1 else next(iter(parts.values()))
        if (
            path == name
            and found.kind == "images"
            and [output.task in OF_CLASSES for output in found.outputs] == [True]
        ):
            chances = None if place in found.problems else found.outputs[0].values[row]
            values |= _of_image(name, found, chances, top)
        row += place not in found.problems
        yield values


def _of_image(image: str, found: ExamplePredictions, chances: npt.NDArray[Any] | None, top: int) -> dict[str, Any]:
    """The fields that an image of a classifier has besides: its most probable classes, and how it was converted."""
    classes, lead = found.outputs[0].classes, f"{image}: "
    best = [] if chances is None else np.argsort(-chances, kind="stable")[:top].tolist()
    return {
        "image": image,
        "top": [{"label": classes[place], "probability": json_numbers(chances[place])} for place in best],  # type: ignore[index]
        "notes": [note.removeprefix(lead) for note in found.notes if note.startswith(lead)],
    }


def records(found: ExamplePredictions) -> Iterator[dict[str, Any]]:
    """The rows of a CSV file: one for each example, or for each step of a forecast.

    A row has the name and the cells of the predictions, and an empty ``problem``; without a prediction, only the
    name and the ``problem``.
    """
    row = 0
    several = len(found.outputs) > 1
    for place, (path, name) in enumerate(found.names):
        lead: dict[str, Any] = {"file": path} if any(path != name and path for path, name in found.names) else {}
        lead["example"] = name
        if problem := found.problems.get(place):
            yield {**lead, "problem": problem}
            continue
        parts = [
            {f"{output.name} {key}" if several else key: value for key, value in each.items()}
            for output in found.outputs
            for each in [record(output, row, found.kind)]
        ]
        if found.kind == "series" and not several:
            for number, step in enumerate(forecast_steps(found.outputs[0], row), 1):
                cells = zip(step_columns(found.outputs[0]), json_numbers(step), strict=True)
                yield {**lead, "step": number, **dict(cells), "problem": ""}
        else:
            yield {**lead, **{key: value for part in parts for key, value in part.items()}, "problem": ""}
        row += 1


def record(output: OutputPrediction, row: int, kind: str) -> dict[str, Any]:
    """The cells of an output's prediction for an example."""
    found = prediction(output, row, kind)
    if output.task in OF_CLASSES:
        chances = zip(output.classes, json_numbers(output.values[row]), strict=True)
        first = {"label": found["label"]} if "label" in found else {"labels": " ".join(found["labels"])}
        return {**first, **{f"probability {name}": chance for name, chance in chances}}
    if output.task == "sequence" and "labels" in found:
        return {"labels": " ".join(found["labels"])}
    if "pixels" in found:
        return {f"share {name}": found["pixels"].get(name, 0.0) for name in output.classes}
    values = found.get("values")
    if isinstance(values, dict):
        return values
    flat = output.values[row].reshape(-1)
    if flat.size == 1:
        return {"value": json_numbers(flat[0])}
    return {f"value {place}": json_numbers(value) for place, value in enumerate(flat)}
