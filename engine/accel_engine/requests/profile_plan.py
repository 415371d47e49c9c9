"""Asks for the operations of a plan's steps, which an engine process takes and traces without recording a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from accel_engine.plan import Plan
from accel_engine.requests.protocol.request import EngineRequest, ExamplesDone
from accel_engine.run.diagnostics import OpProfile


@dataclass(frozen=True, slots=True)
class ProfilePhase:
    """A part of the answer: what the process does now."""

    text: str
    """In words."""


@dataclass(frozen=True, slots=True)
class ProfileRequest(EngineRequest[OpProfile]):
    """A request to trace steps of a plan, from its initial weights."""

    function: ClassVar = "accel_engine.training.profile_plan:profile_plan"
    result: ClassVar = OpProfile
    parts: ClassVar = (ExamplesDone, ProfilePhase)

    plan: Plan
    """The plan, of a single process."""
    seconds: float
    """How long steps are traced."""
    directory: Path | None = None
    """The run's directory, in which the trace is kept; ``None`` to keep none."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Nothing: the steps run on the devices on which the plan trains."""
        return {}


REQUEST = ProfileRequest
