"""The meaning of a model's output as a prediction, and its form for JSON; without TensorFlow."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import OF_CLASSES

THRESHOLD = 0.5
"""A label is predicted from this probability."""


@dataclass(frozen=True, slots=True, eq=False)
class OutputPrediction:
    """The predictions of one output of a model.

    Attributes:
        name: Its name; empty if it is the only one.
        task: What it was trained for, such as ``classification``.
        classes: Names of its classes; empty for numbers.
        columns: Names of its numbers; empty if they have none.
        values: Probabilities ``[examples, classes]`` of classes or labels, or the class of each token or pixel, or
            numbers in their units, of the examples without a problem.
        chances: The probability of each class of a token or pixel; ``None`` for other tasks.
    """

    name: str
    task: str
    classes: tuple[str, ...]
    columns: tuple[str, ...]
    values: npt.NDArray[Any]
    chances: npt.NDArray[np.float32] | None = None


def prediction(output: OutputPrediction, row: int, kind: str) -> dict[str, Any]:
    """The prediction of an output for an example.

    Args:
        output: The output.
        row: The example's place among those without a problem.
        kind: What an example of the data is.
    """
    values = output.values[row]
    if output.task == "classification":
        best = np.argsort(-values, kind="stable").tolist()
        chances = {output.classes[place]: json_numbers(values[place]) for place in best}
        label = output.classes[best[0]] if np.isfinite(values).all() else None
        return {"label": label, "probability": json_numbers(values[best[0]]), "probabilities": chances}
    if output.task == "multi-label":
        likely = [name for name, chance in zip(output.classes, values, strict=True) if chance >= THRESHOLD]
        return {"labels": likely, "probabilities": dict(zip(output.classes, json_numbers(values), strict=True))}
    if output.task == "segmentation":
        return {"pixels": shares(values, output.classes)}
    if output.task == "sequence" and output.chances is not None:
        labels = [output.classes[label] for label in values.ravel().tolist()]
        return {"labels": labels, "probabilities": json_numbers(output.chances[row])}
    if kind == "series":
        names = step_columns(output)
        return {"forecast": [dict(zip(names, json_numbers(step), strict=True)) for step in forecast_steps(output, row)]}
    if values.ndim <= 1 and len(output.columns) == values.size:
        return {"values": dict(zip(output.columns, json_numbers(values.reshape(-1)), strict=True))}
    return {"values": json_numbers(values)}


def step_columns(output: OutputPrediction) -> tuple[str, ...]:
    """The names of the numbers of a step; one name if they do not divide the numbers of an example."""
    size = math.prod(output.values.shape[1:])
    return output.columns if output.columns and size % len(output.columns) == 0 else ("value",)


def forecast_steps(output: OutputPrediction, row: int) -> npt.NDArray[Any]:
    """A forecast, ``[horizon, columns]``."""
    return output.values[row].reshape(-1, len(step_columns(output)))


def shares(labels: npt.NDArray[Any], classes: tuple[str, ...]) -> dict[str, float]:
    """The share of each class that is there, the largest first."""
    counts = np.bincount(labels.ravel(), minlength=len(classes))
    order = np.argsort(-counts, kind="stable").tolist()
    return {classes[place]: counts[place].item() / labels.size for place in order if counts[place]}


def json_numbers(values: npt.NDArray[Any]) -> Any:
    """Numbers for JSON, which has neither NaN nor infinity."""
    if values.ndim:
        return [json_numbers(each) for each in values] if values.dtype.kind == "f" else values.tolist()
    value = values.item()
    return value if not isinstance(value, float) or math.isfinite(value) else None


def rows_not_finite(output: OutputPrediction) -> set[int]:
    """The rows with a probability that is not finite, or an output without a finite number: the model has diverged."""
    found: set[int] = set()
    for array, are_chances in ((output.values, output.task in OF_CLASSES), (output.chances, True)):
        if array is None or array.dtype.kind != "f" or not array.size:
            continue
        finite = np.isfinite(array.reshape(len(array), -1))
        found |= set(np.flatnonzero(~(finite.all(1) if are_chances else finite.any(1))).tolist())
    return found
