"""Asks for a validation of the last checkpoint of an ended run, whose report is saved in the run."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from accel_engine.requests.protocol.model_reference import check_checkpoint
from accel_engine.requests.protocol.request import EngineRequest


@dataclass(frozen=True, slots=True)
class Revalidation:
    """A validation whose report was saved.

    Attributes:
        step: The step of the checkpoint.
        notes: Warnings for the user.
    """

    step: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RevalidationRequest(EngineRequest[Revalidation]):
    """A request to validate a run again, on the CPU.

    Attributes:
        directory: The run's directory.
    """

    function: ClassVar = "accel_engine.trained.diagnose:revalidate"
    result: ClassVar = Revalidation

    directory: Path

    def check(self) -> None:
        """See :meth:`EngineRequest.check`; the run needs a checkpoint."""
        check_checkpoint(self.directory)


REQUEST = RevalidationRequest
