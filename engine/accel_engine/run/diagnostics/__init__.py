"""A run's diagnostics: its model's input, its data, their form and profile, its layers, and the last validation.

Also the operations of steps that were profiled.

Each is a row of the table ``diagnostics``: a JSON head and a body of bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from accel_engine import json_values
from accel_engine.json_values import parse_object
from accel_engine.run.diagnostics import packing
from accel_engine.run.diagnostics.data_items import DataFingerprint, DataFormat, DataProfile, InputProfile, Shift
from accel_engine.run.diagnostics.model_items import InputSpec, Layer, LayerTable, OpProfile, StageOfModel
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
from accel_engine.run.store.database import reading
from accel_engine.run.store.schema import DiagnosticsRow

__all__ = [
    "ClassificationReport",
    "CustomReport",
    "DataFingerprint",
    "DataFormat",
    "DataProfile",
    "Diagnostics",
    "DiagnosticsItem",
    "Example",
    "ForecastReport",
    "InputProfile",
    "InputSpec",
    "Layer",
    "LayerTable",
    "MultiLabelReport",
    "OpProfile",
    "OutputReport",
    "ReconstructionReport",
    "RegressionReport",
    "SamplePrediction",
    "Scores",
    "SegmentationReport",
    "SequenceReport",
    "Shift",
    "StageOfModel",
    "ValidationReport",
    "modification_times",
    "read",
    "row_name",
    "serialize",
]

DiagnosticsItem: TypeAlias = (
    InputSpec | DataFingerprint | DataFormat | DataProfile | LayerTable | OpProfile | ValidationReport
)
"""A part of a run's diagnostics, stored as one row."""

_ITEMS: dict[str, tuple[str, type[DiagnosticsItem]]] = {
    "intake": ("input_spec", InputSpec),
    "data": ("data", DataFingerprint),
    "format": ("format", DataFormat),
    "layers": ("layers", LayerTable),
    "operations": ("operations", OpProfile),
    "profile": ("profile", DataProfile),
    "validation": ("validation", ValidationReport),
}
"""Attribute of :class:`Diagnostics` and class, by row name."""


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """All stored diagnostics of a run; ``None`` for what was not stored."""

    input_spec: InputSpec | None = None
    """The model's input."""
    data: DataFingerprint | None = None
    """Fingerprint of the data."""
    format: DataFormat | None = None
    """Form of the data, with which other examples are predicted."""
    layers: LayerTable | None = None
    """Its layers."""
    operations: OpProfile | None = None
    """The operations of the steps that were profiled last."""
    profile: DataProfile | None = None
    """The profile of the data."""
    validation: ValidationReport | None = None
    """The report of the last validation."""
    steps: Mapping[str, int] = field(default_factory=dict)
    """Steps taken when each was stored, by attribute name."""


def row_name(item: DiagnosticsItem) -> str:
    """The name of an item's row in the table ``diagnostics``."""
    return next(name for name, (_, kind) in _ITEMS.items() if isinstance(item, kind))


def serialize(item: DiagnosticsItem) -> tuple[str, bytes]:
    """Pack an item as a JSON head and a body."""
    if isinstance(item, ValidationReport):
        return packing.pack(item)
    return json_values.encode(item), b""


def modification_times(directory: Path) -> tuple[float, ...]:
    """When each row was stored, in seconds since the Unix epoch; changes whenever a row does.

    Raises:
        RunError: The run cannot be read.
    """
    with reading(directory) as database:
        return tuple(database.diagnostics_by_time().values())


def read(directory: Path) -> Diagnostics:
    """Read a run's diagnostics.

    Raises:
        RunError: The run cannot be read.
    """
    items: dict[str, Any] = {}
    steps: dict[str, int] = {}
    with reading(directory) as database:
        for row in database.diagnostics():
            if is_known(row):
                attribute, _ = _ITEMS[row.name]
                items[attribute] = database.decode("diagnostics", row.name, decode_row, row)
                steps[attribute] = row.step
    return Diagnostics(**items, steps=steps)


def is_known(row: DiagnosticsRow) -> bool:
    """Whether this program knows what a row is."""
    return row.name in _ITEMS


def decode_row(row: DiagnosticsRow) -> DiagnosticsItem:
    """Decode a row of a known name.

    Raises:
        KeyError, TypeError, ValueError: The row is damaged.
    """
    kind = _ITEMS[row.name][1]
    if kind is ValidationReport:
        return packing.unpack(parse_object(row.head), row.body)
    return json_values.decode(row.head, kind)
