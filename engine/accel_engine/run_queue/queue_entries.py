"""The entries of the queue, and their requests."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from accel_engine.plan.options import OptionSpec, option
from accel_engine.text import printable_line


@dataclass(frozen=True, slots=True)
class QueueRequest:
    """The request of a run to the queue: priority, devices and group."""

    priority: int = option(0, OptionSpec("With --queue: higher ones start first.", int, metavar="N"))
    after: tuple[str, ...] = option(
        (), OptionSpec("With --queue: wait until RUN has finished; repeatable.", tuple, metavar="RUN", repeats=True)
    )
    devices: int | None = option(
        None,
        OptionSpec("With --queue: how many accelerators the run gets.", int, flags=("--devices-each",), metavar="N"),
    )
    """How many accelerators it gets; ``None`` for what its plan says, or else one."""
    group: str = ""
    """Name of the entries that ``at_once`` limits, such as a search's; empty for none."""
    at_once: int = 0
    """Most runs of its group that train at the same time; 0 for no limit."""


PLAIN_REQUEST = QueueRequest()
"""What a run asks for by default."""


@dataclass(frozen=True, slots=True)
class WaitReason:
    """Why a run waits."""

    text: str
    """In words."""
    others: tuple[str, ...] = ()
    """The accelerators that it waits for, and that no run of this program uses."""


NO_REASON = WaitReason("")
"""The reason of a run that was started, or that was not looked at yet."""


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """A run in the queue, which waits or was started from it and is still live."""

    run: str
    """The run's id."""
    directory: Path
    request: QueueRequest
    """Its request: priority, devices and group."""
    position: int
    """Its place among the waiting entries, from 1, in the order in which they start; 0 once started."""
    is_held: bool = False
    """Whether it waits until it is released: a user holds it, its start has failed, or a run of ``after`` has ended
    otherwise than finished."""
    is_started: bool = False
    """Whether it was started."""
    devices: tuple[str, ...] = ()
    """Ids of the devices that it was started on."""
    reason: str = ""
    """Why it waits, in words; empty if it was started, or before anybody has looked."""
    others: tuple[str, ...] = ()
    """The accelerators that it waits for, and that no run of this program uses."""
    added: float = 0.0
    """When it was added, in seconds since the Unix epoch."""
    has_failed: bool = False
    """Whether it is held because it could not be started, for that reason."""

    @property
    def waits(self) -> str:
        """Why it waits, in a line."""
        prefix = "held: " if self.is_held and not self.reason.startswith("held") else ""
        return printable_line(f"{prefix}{self.reason}") or "waits"

    @property
    def on_devices(self) -> str:
        """The devices that it was started on, or how many it asks for; empty for what its plan says."""
        if self.devices:
            return ",".join(self.devices)
        return str(self.request.devices) if self.request.devices and not self.is_started else ""


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """A row of the queue's database."""

    run: str
    """The run's id."""
    directory: Path
    request: QueueRequest
    """Its request: priority, devices and group."""
    place: int
    """A number that orders entries of the same priority."""
    state: str = "waiting"
    """``waiting``, ``started`` or ``cancelled``: by a process that has not ended the run yet."""
    hold_reason: str = ""
    """Why it is held; empty if it is not."""
    reason: WaitReason = NO_REASON
    """Why it waited when the process last checked."""
    devices: tuple[str, ...] = ()
    """Ids of the devices that it was started on."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The environment variables that matter to training where it was added; its engine gets them."""
    folder: str = ""
    """The working directory of its engine, from which Python imports a user's modules."""
    added: float = 0.0
    """When it was added, in seconds since the Unix epoch."""

    @property
    def is_waiting(self) -> bool:
        """Whether it waits to be started, also if it is held."""
        return self.state == "waiting"

    @property
    def order(self) -> tuple[int, int]:
        """Orders entries as they start."""
        return -self.request.priority, self.place
