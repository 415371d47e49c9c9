"""Asks for a validation of the last checkpoint of an ended run, whose report is saved in the run."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from accel_engine.requests.protocol.model_reference import RunRequest
from accel_engine.requests.protocol.request import ComputeDevice, EngineRequest


@dataclass(frozen=True, slots=True)
class Revalidation:
    """A validation whose report was saved.

    Attributes:
        step: The step of the checkpoint.
        notes: Warnings for the user.
        device: The device that computed it.
    """

    step: int
    notes: tuple[str, ...]
    device: ComputeDevice = field(default_factory=ComputeDevice)


@dataclass(frozen=True, slots=True)
class RevalidationRequest(RunRequest, EngineRequest[Revalidation]):
    """A request to validate a run again.

    Attributes:
        directory: The run's directory.
        device: See :class:`DeviceRequest`.
    """

    function: ClassVar = "accel_engine.trained.diagnose:revalidate"
    result: ClassVar = Revalidation

    directory: Path
    device: ComputeDevice = field(default_factory=ComputeDevice, kw_only=True)


REQUEST = RevalidationRequest
