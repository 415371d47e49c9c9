"""What a host is asked through its link: requests as engine processes get them, which it answers without TensorFlow."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias, TypeVar

from accel_engine.devices.device_types import Device, Sample
from accel_engine.json_values import JsonValue
from accel_engine.requests.protocol.request import EngineRequest
from accel_engine.run.runs.listing import RunSummary
from accel_engine.run.runs.removal import Contents
from accel_engine.run.store.copied_rows import MetaValue, NewRows, Position
from accel_engine.run.store.meta import HostState

ResultT = TypeVar("ResultT", covariant=True)

RunId: TypeAlias = str
"""The name of a run's directory on the host."""


class HostRequest(EngineRequest[ResultT]):
    """What a host is asked; several at a time are answered in threads."""

    __slots__ = ()

    needs_tensorflow: ClassVar[bool] = False
    parts: ClassVar[tuple[type, ...]] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """What was asked is done."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class Ping(HostRequest[Done]):
    """Whether anybody is there."""

    function: ClassVar[str] = "accel_engine.hosts.answers:pong"
    result: ClassVar[type] = Done


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run in the list of a host's runs."""

    id: RunId
    state: HostState
    summary: RunSummary
    """What a list shows of it, without ``info``."""
    meta: Mapping[str, MetaValue]


@dataclass(frozen=True, slots=True)
class QueuedRun:
    """A run that waits in the queue of a host."""

    id: RunId
    why: str
    """What it waits for."""


@dataclass(frozen=True, slots=True)
class HostNews:
    """What is new on a host since it was asked last through the same connection."""

    changed: tuple[ListedRun, ...] = ()
    gone: tuple[RunId, ...] = ()
    devices: tuple[Device, ...] = ()
    samples: tuple[Sample, ...] = ()
    """The latest one of each device."""
    queue: tuple[QueuedRun, ...] = ()
    time: float = 0.0
    """By its clock, in seconds since the Unix epoch."""
    more: bool = False
    """Whether there are more runs that have changed."""


@dataclass(frozen=True, slots=True)
class NewsRequest(HostRequest[HostNews]):
    """What is new; the answer comes when something is, or after a while."""

    seconds: float = 0.0
    """How long to wait for news."""
    devices: bool = True
    """Whether to read the devices."""
    function: ClassVar[str] = "accel_engine.hosts.answers:news"
    result: ClassVar[type] = HostNews


@dataclass(frozen=True, slots=True)
class SentCommand:
    """A command to the engine of a run; its sender and its time identify it, so that it is never sent twice."""

    time: float
    who: str
    name: str
    argument: float | str | None = None
    reason: str = ""
    purpose: str = ""
    ends: float | None = None
    """The time of the command that it ends, as a resumption ends one pause; ``None`` for none."""
    withdrawn: bool = False
    """Whether its sender no longer waits for it."""


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """The answer of a run's engine to a :class:`SentCommand`."""

    time: float
    """When the command was sent."""
    obeyed: bool
    answer: str


@dataclass(frozen=True, slots=True)
class RunNews:
    """What is new of a run."""

    rows: NewRows = field(default_factory=NewRows)
    state: HostState | None = None
    """``None`` if it is as before."""
    log: bytes = b""
    log_from: int = 0
    """Where in the log these bytes begin."""
    checkpoints: tuple[int, ...] | None = None
    """Steps of its checkpoints; ``None`` if they are as before."""

    @property
    def is_new(self) -> bool:
        """Whether anything is new."""
        return bool(self.rows or self.state or self.log or self.checkpoints is not None)


@dataclass(frozen=True, slots=True)
class RunNewsRequest(HostRequest[RunNews]):
    """What a mirror of a run lacks; the answer comes when it lacks something, or after a while."""

    run: RunId
    position: Position = field(default_factory=Position)
    state: HostState | None = None
    log: int = 0
    """Bytes of the log that it has."""
    checkpoints: tuple[int, ...] = ()
    seconds: float = 0.0
    """How long to wait for news."""
    size: int = 1 << 17
    """About how many bytes of rows to send at most."""
    function: ClassVar[str] = "accel_engine.hosts.answers:run_news"
    result: ClassVar[type] = RunNews


@dataclass(frozen=True, slots=True)
class CommandAnswers:
    """The answers to those of some commands that have one."""

    answers: tuple[CommandAnswer, ...] = ()


@dataclass(frozen=True, slots=True)
class CommandsRequest(HostRequest[CommandAnswers]):
    """Give commands to the engine of a run, unless it has them; the answer comes when one is answered, or later."""

    run: RunId
    commands: tuple[SentCommand, ...]
    seconds: float = 0.0
    """How long to wait for an answer."""
    function: ClassVar[str] = "accel_engine.hosts.answers:commands"
    result: ClassVar[type] = CommandAnswers


@dataclass(frozen=True, slots=True)
class AnnotateRequest(HostRequest[Done]):
    """Change a run's annotations."""

    run: RunId
    name: str
    note: str
    tags: tuple[str, ...]
    function: ClassVar[str] = "accel_engine.hosts.answers:annotate"
    result: ClassVar[type] = Done


@dataclass(frozen=True, slots=True)
class ContentsRequest(HostRequest[Contents]):
    """What deleting a run would delete."""

    run: RunId
    function: ClassVar[str] = "accel_engine.hosts.answers:contents"
    result: ClassVar[type] = Contents


@dataclass(frozen=True, slots=True)
class RemoveRequest(HostRequest[Done]):
    """Delete a run."""

    run: RunId
    function: ClassVar[str] = "accel_engine.hosts.answers:remove"
    result: ClassVar[type] = Done


@dataclass(frozen=True, slots=True)
class ContinueRequest(HostRequest[Done]):
    """Continue an ended run from its last checkpoint; the result has warnings."""

    run: RunId
    changes: Mapping[str, JsonValue] = field(default_factory=dict)
    function: ClassVar[str] = "accel_engine.hosts.answers:continue_run"
    result: ClassVar[type] = Done


REQUESTS: tuple[type[HostRequest[object]], ...] = (
    Ping,
    NewsRequest,
    RunNewsRequest,
    CommandsRequest,
    AnnotateRequest,
    ContentsRequest,
    RemoveRequest,
    ContinueRequest,
)
"""All requests that a host answers."""
