"""The state of the place where the form's plan is to train."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from accel_engine.devices.device_types import Device
from accel_tui.run_state.device_meter import Meter

if TYPE_CHECKING:
    from accel_engine.run import RunSummary  # the first frame does not need it


@dataclass(frozen=True, slots=True)
class PlaceState:
    """The state of a place: devices, runs and problems."""

    devices: tuple[Device, ...] | None = None
    """The devices of one of its machines; ``None`` before they are known."""
    meters: Mapping[str, Meter] = field(default_factory=dict)
    """Their latest metrics, by id."""
    about: str = ""
    """Its state, in a few words."""
    problem: str = ""
    """Why it cannot be used now; empty if it can."""
    runs: "tuple[RunSummary, ...]" = ()
    """The runs of the host, newest first."""
    training: int = 0
    """How many runs train on the host."""


UNKNOWN = PlaceState()
"""The state of a place before it has answered."""
