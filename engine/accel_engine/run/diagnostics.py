"""What a run looks like inside: what its model takes, its layers, and what was right and wrong at the last validation.

A row of the table ``inside`` holds each, as JSON and what is too large for that: of the confusion of classes
only what is not 0, and pictures as bytes. A run of a program that knew nothing of it has no such table.
"""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from accel_engine.data.pixel_scaling import is_image
from accel_engine.errors import RunError
from accel_engine.run.schema import connect


@dataclass(frozen=True, slots=True)
class InputSpec:
    """What a run's model takes and tells apart.

    Attributes:
        shape: Of one example.
        names: Of the classes.
        scale: What raw numbers are multiplied with; see :func:`accel_engine.training.run_scaling.recorded_scale`.
        low: The raw number that is black in an image.
        high: The one that is white.
        integers: Whether raw numbers are bytes.
    """

    shape: tuple[int, ...]
    names: tuple[str, ...]
    scale: float
    low: float
    high: float
    integers: bool

    @property
    def is_image(self) -> bool:
        """Whether an example can be seen."""
        return is_image(self.shape)


@dataclass(frozen=True, slots=True)
class Layer:
    """A line of the table of layers.

    Attributes:
        name: Its own.
        kind: Its class.
        depth: How many models it is within; 0 for one of the model itself.
        shape: Of its output for one example; ``None`` where that is known only as it runs.
        parameters: Number of weights, of a model within with those of its layers.
        trainable: How many of them are trained.
        flops: Floating-point operations of a training step in it, gradients included; ``None`` where not counted.
        inner: Whether it is a model whose layers follow, which hold what it holds.
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
    """A model's layers, in its order.

    Attributes:
        layers: One after the other, each model within followed by its own.
        flops: Of the whole step; ``None`` where they cannot be counted.
        rest: Those of the step that belong to no layer.
        reason: Why they cannot be counted.
    """

    layers: tuple[Layer, ...]
    flops: float | None = None
    rest: float = 0.0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SamplePrediction:
    """A validation example and what the model says of it.

    Attributes:
        row: Its place in the validation data, from 0.
        label: The index of its class.
        said: That of the class that the model takes it for.
        confidence: The probability that it gives to that one.
        chance: The probability that it gives to the right one.
    """

    row: int
    label: int
    said: int
    confidence: float
    chance: float

    @property
    def right(self) -> bool:
        """Whether the model is right."""
        return self.said == self.label


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationReport:
    """What one validation found.

    Attributes:
        examples: How many there were.
        names: Of the classes.
        counts: How often the model took an example of one class (row) for another (column), int64
            ``[classes, classes]``; ``None`` where that was not kept.
        worst: The examples that it was the most wrong about, the worst first.
        pictures: What they look like, uint8 ``[len(worst), height, width, channels]``; ``None`` where not kept.
        reason: Why something was not kept.
    """

    examples: int = 0
    names: tuple[str, ...] = ()
    counts: npt.NDArray[np.int64] | None = None
    worst: tuple[SamplePrediction, ...] = ()
    pictures: npt.NDArray[np.uint8] | None = None
    reason: str = ""


DiagnosticsItem: TypeAlias = InputSpec | LayerTable | EvaluationReport
"""What can be kept of a run's inside."""

_NAMES = {InputSpec: "intake", LayerTable: "layers", EvaluationReport: "examined"}


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """All that was kept of a run's inside.

    Attributes:
        intake: What its model takes; ``None`` where that was not kept, as all else.
        layers: Its layers.
        examined: What the last validation found.
        steps: Steps taken when each was kept, by the names of these attributes.
    """

    intake: InputSpec | None = None
    layers: LayerTable | None = None
    examined: EvaluationReport | None = None
    steps: Mapping[str, int] = field(default_factory=dict)


def name_of(seen: DiagnosticsItem) -> str:
    """The row that it is kept in."""
    return _NAMES[type(seen)]


def pack(seen: DiagnosticsItem) -> tuple[str, bytes]:
    """Its JSON, and the bytes beside it."""
    if not isinstance(seen, EvaluationReport):
        return json.dumps(asdict(seen)), b""
    cells = np.array([], np.int32) if seen.counts is None else np.flatnonzero(seen.counts).astype("<i4")
    values = np.array([], np.int64) if seen.counts is None else seen.counts.reshape(-1)[cells].astype("<i8")
    head = {
        "examples": seen.examples,
        "names": seen.names,
        "classes": None if seen.counts is None else len(seen.counts),
        "cells": len(cells),
        "worst": [asdict(judged) for judged in seen.worst],
        "pictures": None if seen.pictures is None else seen.pictures.shape,
        "reason": seen.reason,
    }
    pixels = b"" if seen.pictures is None else seen.pictures.tobytes()
    return json.dumps(head), cells.tobytes() + values.tobytes() + pixels


def stamp(directory: Path) -> tuple[float, ...]:
    """What tells whether something was kept since.

    Raises:
        RunError: The run cannot be read.
    """
    return tuple(row[0] for row in _rows(directory, "time"))


def read(directory: Path) -> Diagnostics:
    """Read all that was kept of a run's inside; nothing of an old run.

    Raises:
        RunError: The run cannot be read.
    """
    found: dict[str, Any] = {}
    steps = {}
    for name, step, head, body in _rows(directory, "name, step, head, body"):
        if unpack := _UNPACK.get(name):
            try:
                found[name] = unpack(json.loads(head), body)
            except (KeyError, TypeError, ValueError) as error:
                raise RunError(
                    f"run {directory.name} cannot be read: what it keeps of its {name} is damaged"
                ) from error
            steps[name] = step
    return Diagnostics(**found, steps=steps)


def _rows(directory: Path, columns: str) -> list[tuple[Any, ...]]:
    try:
        with closing(connect(directory, read_only=True)) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'inside'").fetchone():
                return []
            return connection.execute(f"SELECT {columns} FROM inside ORDER BY name").fetchall()
    except sqlite3.Error as error:
        raise RunError(f"run {directory.name} cannot be read: {error}") from error


def _unpack_intake(head: dict[str, Any], body: bytes) -> InputSpec:
    del body
    return InputSpec(**{**head, "shape": tuple(head["shape"]), "names": tuple(head["names"])})


def _unpack_layers(head: dict[str, Any], body: bytes) -> LayerTable:
    del body
    layers = tuple(
        Layer(**{**layer, "shape": None if layer["shape"] is None else tuple(layer["shape"])})
        for layer in head["layers"]
    )
    return LayerTable(**{**head, "layers": layers})


def _unpack_examined(head: dict[str, Any], body: bytes) -> EvaluationReport:
    classes, many = head["classes"], head["cells"]
    counts = None
    if classes is not None:
        counts = np.zeros(classes * classes, np.int64)
        counts[np.frombuffer(body, "<i4", many)] = np.frombuffer(body, "<i8", many, 4 * many)
        counts = counts.reshape(classes, classes)
    shape = head["pictures"]
    return EvaluationReport(
        head["examples"],
        tuple(head["names"]),
        counts,
        tuple(SamplePrediction(**judged) for judged in head["worst"]),
        None if shape is None else np.frombuffer(body, np.uint8, offset=12 * many).reshape(shape),
        head["reason"],
    )


_UNPACK = {"intake": _unpack_intake, "layers": _unpack_layers, "examined": _unpack_examined}
