"""A run's diagnostics: its model's input, its data, its layers, and the report of the last validation.

Each is a row of the table ``inside``: a JSON head and a body of bytes. Runs of older programs have no such table, or
another form of report.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from accel_engine.run.connection import DAMAGE, explained, reading
from accel_engine.run.diagnostics import packing
from accel_engine.run.diagnostics.examined import unpack_examined
from accel_engine.run.diagnostics.model_items import DataFingerprint, InputSpec, Layer, LayerTable
from accel_engine.run.diagnostics.reports import (
    ClassificationReport,
    CustomReport,
    Example,
    ForecastReport,
    MultiLabelReport,
    OutputReport,
    ReconstructionReport,
    RegressionReport,
    SamplePrediction,
    Scores,
    SegmentationReport,
    SequenceReport,
    ValidationReport,
)

__all__ = [
    "ClassificationReport",
    "CustomReport",
    "DataFingerprint",
    "Diagnostics",
    "DiagnosticsItem",
    "Example",
    "ForecastReport",
    "InputSpec",
    "Layer",
    "LayerTable",
    "MultiLabelReport",
    "OutputReport",
    "ReconstructionReport",
    "RegressionReport",
    "SamplePrediction",
    "Scores",
    "SegmentationReport",
    "SequenceReport",
    "ValidationReport",
    "modification_times",
    "read",
    "row_name",
    "serialize",
]

DiagnosticsItem: TypeAlias = InputSpec | DataFingerprint | LayerTable | ValidationReport
"""A part of a run's diagnostics, stored as one row."""

_ROW_NAMES = {InputSpec: "intake", DataFingerprint: "data", LayerTable: "layers", ValidationReport: "validation"}


_UNPACK: dict[str, tuple[str, Callable[[dict[str, Any], bytes], DiagnosticsItem]]] = {
    "intake": ("input_spec", InputSpec.unpacked),
    "data": ("data", DataFingerprint.unpacked),
    "layers": ("layers", LayerTable.unpacked),
    "examined": ("validation", unpack_examined),
    "validation": ("validation", packing.unpack),
}
"""Attribute of :class:`Diagnostics` and unpacker, by row name."""


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """All stored diagnostics of a run; ``None`` for what was not stored.

    Attributes:
        input_spec: The model's input.
        data: Fingerprint of the data.
        layers: Its layers.
        validation: The report of the last validation.
        steps: Steps taken when each was stored, by attribute name.
    """

    input_spec: InputSpec | None = None
    data: DataFingerprint | None = None
    layers: LayerTable | None = None
    validation: ValidationReport | None = None
    steps: Mapping[str, int] = field(default_factory=dict)


def row_name(item: DiagnosticsItem) -> str:
    """The name of an item's row in the table ``inside``."""
    return _ROW_NAMES[type(item)]


def serialize(item: DiagnosticsItem) -> tuple[str, bytes]:
    """Pack an item as a JSON head and a body."""
    if isinstance(item, ValidationReport):
        return packing.pack(item)
    return json.dumps(asdict(item)), b""


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
    steps: dict[str, int] = {}
    with reading(directory) as database:
        rows = database.inside()
    # A run that programs of both forms have continued has both reports: the later one counts.
    for name, step, head, body in sorted(rows, key=lambda row: (row[1], row[0] == "validation")):
        if name in _UNPACK:
            attribute, unpack = _UNPACK[name]
            with explained(f"run {directory.name} cannot be read: its {name} row is damaged", DAMAGE):
                items[attribute] = unpack(json.loads(head), body)
            steps[attribute] = step
    return Diagnostics(**items, steps=steps)
