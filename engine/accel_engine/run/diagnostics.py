"""A run's diagnostics: its model's input, its layers, and the report of the last validation.

Each is a row of the table ``inside``: a JSON head, and a body of bytes with the nonzero cells of the confusion matrix
and the images. Runs of older programs have no such table.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from accel_engine.data.pixel_scaling import is_image
from accel_engine.run.connection import DAMAGE, explained, reading


@dataclass(frozen=True, slots=True)
class InputSpec:
    """The input of a run's model, and its classes.

    Attributes:
        shape: Shape of one example.
        names: Class names.
        scale: Factor for raw values; see :func:`accel_engine.training.core.run_scaling.recorded_scale`.
        low: The raw value that is black in an image.
        high: The raw value that is white.
        integers: Whether raw values are bytes.
    """

    shape: tuple[int, ...]
    names: tuple[str, ...]
    scale: float
    low: float
    high: float
    integers: bool

    @property
    def is_image(self) -> bool:
        """Whether an example has the shape of an image."""
        return is_image(self.shape)


@dataclass(frozen=True, slots=True)
class Layer:
    """A row of the layer table.

    Attributes:
        name: The layer's name.
        kind: Its class.
        depth: Number of nested models around it; 0 for a layer of the model itself.
        shape: Output shape for one example; ``None`` if it is known only at run time.
        parameters: Number of weights; for a nested model, those of its layers included.
        trainable: Number of trainable weights.
        flops: Floating-point operations of a training step, gradients included; ``None`` if not counted.
        inner: Whether it is a nested model whose layers follow.
    """

    name: str
    kind: str
    depth: int
    shape: tuple[int | None, ...] | None
    parameters: int
    trainable: int
    flops: float | None
    inner: bool = False


@dataclass(frozen=True, slots=True)
class LayerTable:
    """A model's layers, in order.

    Attributes:
        layers: The layers; a nested model is followed by its own.
        flops: FLOPs of a whole training step; ``None`` if they cannot be counted.
        rest: FLOPs of the step that belong to no layer.
        reason: Why FLOPs cannot be counted.
    """

    layers: tuple[Layer, ...]
    flops: float | None = None
    rest: float = 0.0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SamplePrediction:
    """A validation example with the model's prediction.

    Attributes:
        row: Its index in the validation data, from 0.
        label: Index of its true class.
        predicted: Index of the predicted class.
        confidence: Probability of the predicted class.
        true_class_probability: Probability of the true class.
    """

    row: int
    label: int
    predicted: int
    confidence: float
    true_class_probability: float

    @property
    def correct(self) -> bool:
        """Whether the predicted class is the true one."""
        return self.predicted == self.label


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationReport:
    """The result of one validation.

    Attributes:
        examples: Number of examples.
        names: Class names.
        counts: Confusion matrix with true classes as rows and predicted ones as columns, int64
            ``[classes, classes]``; ``None`` if it was not stored.
        worst: Predictions with the highest loss, highest first.
        pictures: Their images, uint8 ``[len(worst), height, width, channels]``; ``None`` if not stored.
        reason: Why something was not stored.
    """

    examples: int = 0
    names: tuple[str, ...] = ()
    counts: npt.NDArray[np.int64] | None = None
    worst: tuple[SamplePrediction, ...] = ()
    pictures: npt.NDArray[np.uint8] | None = None
    reason: str = ""


DiagnosticsItem: TypeAlias = InputSpec | LayerTable | EvaluationReport
"""A part of a run's diagnostics, stored as one row."""

_PREDICTION_KEYS = ("row", "label", "said", "confidence", "chance")  # in files, in the order of the fields

_ROW_NAMES = {InputSpec: "intake", LayerTable: "layers", EvaluationReport: "examined"}


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """All stored diagnostics of a run; ``None`` for what was not stored.

    Attributes:
        input_spec: The model's input.
        layers: Its layers.
        evaluation: The report of the last validation.
        steps: Steps taken when each was stored, by attribute name.
    """

    input_spec: InputSpec | None = None
    layers: LayerTable | None = None
    evaluation: EvaluationReport | None = None
    steps: Mapping[str, int] = field(default_factory=dict)


def row_name(item: DiagnosticsItem) -> str:
    """The name of an item's row in the table ``inside``."""
    return _ROW_NAMES[type(item)]


def serialize(item: DiagnosticsItem) -> tuple[str, bytes]:
    """Pack an item as a JSON head and a body."""
    if not isinstance(item, EvaluationReport):
        return json.dumps(asdict(item)), b""
    cells = np.array([], np.int32) if item.counts is None else np.flatnonzero(item.counts).astype("<i4")
    values = np.array([], np.int64) if item.counts is None else item.counts.reshape(-1)[cells].astype("<i8")
    head = {
        "examples": item.examples,
        "names": item.names,
        "classes": None if item.counts is None else len(item.counts),
        "cells": len(cells),
        "worst": [dict(zip(_PREDICTION_KEYS, astuple(each), strict=True)) for each in item.worst],
        "pictures": None if item.pictures is None else item.pictures.shape,
        "reason": item.reason,
    }
    pixels = b"" if item.pictures is None else item.pictures.tobytes()
    return json.dumps(head), cells.tobytes() + values.tobytes() + pixels


def modification_times(directory: Path) -> tuple[float, ...]:
    """When each row was stored, in seconds since the Unix epoch; changes whenever a row does.

    Raises:
        RunError: The run cannot be read.
    """
    with reading(directory) as database:
        return tuple(time for (time,) in database.inside_times())


def read(directory: Path) -> Diagnostics:
    """Read a run's diagnostics; all are missing in a run of an older program.

    Raises:
        RunError: The run cannot be read.
    """
    items: dict[str, Any] = {}
    steps = {}
    with reading(directory) as database:
        rows = database.inside()
    for name, step, head, body in rows:
        if name in _UNPACK:
            attribute, unpack = _UNPACK[name]
            with explained(f"run {directory.name} cannot be read: its {name} row is damaged", DAMAGE):
                items[attribute] = unpack(json.loads(head), body)
            steps[attribute] = step
    return Diagnostics(**items, steps=steps)


def _unpack_input_spec(head: dict[str, Any], body: bytes) -> InputSpec:
    del body
    return InputSpec(**{**head, "shape": tuple(head["shape"]), "names": tuple(head["names"])})


def _unpack_layers(head: dict[str, Any], body: bytes) -> LayerTable:
    del body
    layers = tuple(
        Layer(**{**layer, "shape": None if layer["shape"] is None else tuple(layer["shape"])})
        for layer in head["layers"]
    )
    return LayerTable(**{**head, "layers": layers})


def _unpack_evaluation(head: dict[str, Any], body: bytes) -> EvaluationReport:
    classes, cells = head["classes"], head["cells"]
    counts = None
    if classes is not None:
        counts = np.zeros(classes * classes, np.int64)
        counts[np.frombuffer(body, "<i4", cells)] = np.frombuffer(body, "<i8", cells, 4 * cells)
        counts = counts.reshape(classes, classes)
    shape = head["pictures"]
    return EvaluationReport(
        head["examples"],
        tuple(head["names"]),
        counts,
        tuple(SamplePrediction(*(each[key] for key in _PREDICTION_KEYS)) for each in head["worst"]),
        None if shape is None else np.frombuffer(body, np.uint8, offset=12 * cells).reshape(shape),
        head["reason"],
    )


_UNPACK: dict[str, tuple[str, Callable[[dict[str, Any], bytes], DiagnosticsItem]]] = {
    "intake": ("input_spec", _unpack_input_spec),
    "layers": ("layers", _unpack_layers),
    "examined": ("evaluation", _unpack_evaluation),
}
"""Attribute of :class:`Diagnostics` and unpacker, by row name."""
