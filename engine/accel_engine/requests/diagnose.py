"""Asks for a report on the examples that a run was evaluated on."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from accel_engine.errors import RunError
from accel_engine.requests.evaluate import EvaluationOptions
from accel_engine.requests.protocol.model_reference import RunRequest
from accel_engine.requests.protocol.request import ComputeDevice, EngineRequest
from accel_engine.run.diagnostics import ValidationReport, serialize
from accel_engine.run.diagnostics.packing import unpack


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A report on evaluated examples."""

    split: str
    """The examples: ``test``, ``validation`` or ``training``, or the file name of other data."""
    step: int
    """Steps that the model was trained for."""
    head: dict[str, Any]
    """The stored head of the report."""
    body: bytes
    """Its body."""
    notes: tuple[str, ...]
    """Warnings for the user."""
    device: ComputeDevice = field(default_factory=ComputeDevice)
    """The device that computed it."""

    @classmethod
    def of(cls, split: str, step: int, report: ValidationReport, notes: tuple[str, ...]) -> Self:
        """A diagnosis with a report."""
        head, body = serialize(report)
        return cls(split, step, json.loads(head), body, notes)

    @property
    def report(self) -> ValidationReport:
        """The report, with the type of a validation's report.

        Raises:
            RunError: The report cannot be decoded.
        """
        try:
            return unpack(self.head, self.body)
        except ValueError as error:
            raise RunError(f"the report cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class DiagnosisRequest(RunRequest, EngineRequest[Diagnosis]):
    """A request to report on examples."""

    function: ClassVar = "accel_engine.trained.diagnose:diagnose"
    result: ClassVar = Diagnosis

    directory: Path
    """The run's directory."""
    options: EvaluationOptions
    """Which examples, and which checkpoint."""
    device: ComputeDevice = field(default_factory=ComputeDevice, kw_only=True)
    """See :class:`DeviceRequest`."""

    @property
    def wanted_device(self) -> str:
        """See :attr:`DeviceRequest.wanted_device`."""
        return self.options.device


REQUEST = DiagnosisRequest
