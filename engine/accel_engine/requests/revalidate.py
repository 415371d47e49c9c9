"""Asks for a validation of the last checkpoint of an ended run, whose report is saved in the run."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from accel_engine.requests.protocol.model_reference import RunRequest
from accel_engine.requests.protocol.request import ComputeDevice, EngineRequest


@dataclass(frozen=True, slots=True)
class Revalidation:
    """A validation whose report was saved."""

    step: int
    """The step of the checkpoint."""
    notes: tuple[str, ...]
    """Warnings for the user."""
    device: ComputeDevice = field(default_factory=ComputeDevice)
    """The device that computed it."""


@dataclass(frozen=True, slots=True)
class RevalidationRequest(RunRequest, EngineRequest[Revalidation]):
    """A request to validate a run again."""

    function: ClassVar = "accel_engine.trained.diagnose:revalidate"
    result: ClassVar = Revalidation

    directory: Path
    """The run's directory."""
    device: ComputeDevice = field(default_factory=ComputeDevice, kw_only=True)
    """See :class:`DeviceRequest`."""


REQUEST = RevalidationRequest
