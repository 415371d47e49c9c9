"""Requests to a host through its link, in the form of requests to engine processes; answered without TensorFlow."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias, TypeVar

from accel_engine.devices.device_types import Device, Sample
from accel_engine.doctor.check import CheckReport
from accel_engine.json_values import JsonValue
from accel_engine.requests.protocol.request import Doing, EngineRequest
from accel_engine.run.runs.listing import RunSummary
from accel_engine.run.runs.removal import Contents
from accel_engine.run.store.copied_rows import MetaValue, NewRows, Position
from accel_engine.run.store.meta import HostState
from accel_engine.run_queue.queue_entries import PLAIN_REQUEST, QueueRequest

ResultT = TypeVar("ResultT", covariant=True)

RunId: TypeAlias = str
"""The name of a run's directory on the host."""


class HostRequest(EngineRequest[ResultT]):
    """A request to a host; several at a time are answered in threads."""

    __slots__ = ()

    needs_tensorflow: ClassVar[bool] = False
    parts: ClassVar[tuple[type, ...]] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """The answer to a request that needs no other answer."""

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
    """Its row in lists, without ``info``."""
    meta: Mapping[str, MetaValue]


@dataclass(frozen=True, slots=True)
class QueuedRun:
    """A run that waits in the queue of a host."""

    id: RunId
    why: str
    """Why it waits."""


@dataclass(frozen=True, slots=True)
class HostNews:
    """News of a host since the last request through the same connection."""

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
    """A request for news; the answer comes with the first news, or after a while."""

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
    """New rows of a run."""

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
    """A request for the rows that a mirror lacks; the answer comes when it lacks something, or after a while."""

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
    """The answers to some commands; without commands that have no answer yet."""

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
    function: ClassVar[str] = "accel_engine.hosts.answers:answer_annotate"
    result: ClassVar[type] = Done


@dataclass(frozen=True, slots=True)
class ContentsRequest(HostRequest[Contents]):
    """A request to count what deleting a run would delete."""

    run: RunId
    function: ClassVar[str] = "accel_engine.hosts.answers:contents"
    result: ClassVar[type] = Contents


@dataclass(frozen=True, slots=True)
class RemoveRequest(HostRequest[Done]):
    """Delete a run."""

    run: RunId
    function: ClassVar[str] = "accel_engine.hosts.answers:answer_remove"
    result: ClassVar[type] = Done


@dataclass(frozen=True, slots=True)
class CancelRequest(HostRequest[Done]):
    """Take a run out of the queue."""

    run: RunId
    function: ClassVar[str] = "accel_engine.hosts.answers:answer_cancel"
    result: ClassVar[type] = Done


@dataclass(frozen=True, slots=True)
class StartedThere:
    """A run that was started, or why its plan is refused."""

    run: RunId = ""
    refusal: str = ""
    """The problem of the plan; empty if the run was started."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StartRequest(HostRequest[StartedThere]):
    """Train a plan, in an engine that outlives the connection, or continue a run with changes of its plan."""

    values: Mapping[str, JsonValue]
    """The fields of the plan, or those that change."""
    run: RunId = ""
    """The run to continue; empty for a new one."""
    queued: bool = False
    """Whether it waits in the queue there until what it needs is free."""
    asked: QueueRequest = PLAIN_REQUEST
    """What it asks of the queue; ``after`` has ids of runs there."""
    function: ClassVar[str] = "accel_engine.hosts.runs_there:answer_start"
    result: ClassVar[type] = StartedThere


@dataclass(frozen=True, slots=True)
class CureResult:
    """The change of a run by :mod:`accel_engine.advice.cures.apply_cure`."""

    method: str
    changes: Mapping[str, JsonValue]
    before: Mapping[str, JsonValue]
    text: str


@dataclass(frozen=True, slots=True)
class CureRequest(HostRequest[CureResult]):
    """Apply a cure to a run, or take its last one back."""

    run: RunId
    changes: Mapping[str, JsonValue]
    """The fields of the plan, with their new values; empty to take the last cure back."""
    finding: str = ""
    function: ClassVar[str] = "accel_engine.hosts.runs_there:answer_cure"
    result: ClassVar[type] = CureResult


@dataclass(frozen=True, slots=True)
class CarriedFile:
    """A file that travels."""

    path: str
    """Its place in the folder there, with slashes."""
    size: int
    hash: str
    """SHA-256 of its content."""


@dataclass(frozen=True, slots=True)
class MissingFiles:
    """The contents that a host does not have."""

    hashes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MissingRequest(HostRequest[MissingFiles]):
    """Which contents a host does not have."""

    files: tuple[CarriedFile, ...]
    function: ClassVar[str] = "accel_engine.hosts.carried_files:missing"
    result: ClassVar[type] = MissingFiles


@dataclass(frozen=True, slots=True)
class ContentRequest(HostRequest[Done]):
    """Take a part of a content; the last one makes it whole."""

    hash: str
    offset: int
    data: bytes
    is_last: bool
    function: ClassVar[str] = "accel_engine.hosts.carried_files:take"
    result: ClassVar[type] = Done


@dataclass(frozen=True, slots=True)
class FolderOfFilesRequest(HostRequest[Done]):
    """Make a folder with files whose contents the host has; the result is its path."""

    files: tuple[CarriedFile, ...]
    function: ClassVar[str] = "accel_engine.hosts.carried_files:make_folder"
    result: ClassVar[type] = Done


@dataclass(frozen=True, slots=True)
class AskedMessage:
    """A message of an engine process about an :class:`AskRequest`, as its channel has it."""

    line: str
    arrays: Mapping[str, bytes] = field(default_factory=dict)
    """The files of its arrays, by name."""


@dataclass(frozen=True, slots=True)
class AskedResult:
    """The last message about an :class:`AskRequest`."""

    line: str
    arrays: Mapping[str, bytes] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    """The files that it has written, by their paths in the folder of the request."""


@dataclass(frozen=True, slots=True)
class AskRequest(HostRequest[AskedResult]):
    """Ask an engine process on the host."""

    key: str
    """Tells it from others."""
    name: str
    """The name of the request, as in :func:`accel_engine.requests.protocol.request.find_request`."""
    line: str
    """The request, as a channel has it; :data:`RUNS` and :data:`FOLDER` stand for directories there."""
    function: ClassVar[str] = "accel_engine.hosts.engine_answers:answer"
    result: ClassVar[type] = AskedResult
    parts: ClassVar[tuple[type, ...]] = (AskedMessage, Doing)


@dataclass(frozen=True, slots=True)
class PrintedLine:
    """A line that a command has printed."""

    text: str
    is_error: bool = False
    """Whether it is from its standard error."""


@dataclass(frozen=True, slots=True)
class CommandEnded:
    """A command has ended."""

    status: int


@dataclass(frozen=True, slots=True)
class CommandRequest(HostRequest[CommandEnded]):
    """Run a command of the program on the host; :class:`EndAskRequest` interrupts it, and the end of the link."""

    key: str
    """Tells it from others."""
    words: tuple[str, ...]
    """The command; :data:`FOLDER` stands for a folder there, which has the plan."""
    plan: Mapping[str, JsonValue] | None = None
    """The plan in the file :data:`PLAN` of the folder; ``None`` for none."""
    function: ClassVar[str] = "accel_engine.hosts.engine_answers:run_command"
    result: ClassVar[type] = CommandEnded
    parts: ClassVar[tuple[type, ...]] = (PrintedLine,)


@dataclass(frozen=True, slots=True)
class EndAskRequest(HostRequest[Done]):
    """End what an :class:`AskRequest` or a :class:`CommandRequest` asks, and delete its files."""

    key: str
    function: ClassVar[str] = "accel_engine.hosts.engine_answers:end"
    result: ClassVar[type] = Done


RUNS = "@accel-tui-runs@"
"""Stands for the directory of runs of the host."""

FOLDER = "@accel-tui-folder@"
"""Stands for the folder of a request on the host, whose files come back."""

PLAN = "plan.json"
"""The plan of a command, in that folder."""


@dataclass(frozen=True, slots=True)
class RunFile:
    """A file of a run."""

    path: str
    """In its directory, with slashes."""
    size: int


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files of a run, the databases of its other workers included, but its own database and its locks."""

    files: tuple[RunFile, ...]


@dataclass(frozen=True, slots=True)
class RunFilesRequest(HostRequest[RunFiles]):
    """Which files a run has."""

    run: RunId
    function: ClassVar[str] = "accel_engine.hosts.engine_answers:run_files"
    result: ClassVar[type] = RunFiles


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of a file."""

    data: bytes
    size: int
    """Bytes of the whole file."""


@dataclass(frozen=True, slots=True)
class FilePartRequest(HostRequest[FilePart]):
    """A part of a file of a run, or of the folder of an :class:`AskRequest`."""

    path: str
    offset: int
    run: RunId = ""
    key: str = ""
    function: ClassVar[str] = "accel_engine.hosts.engine_answers:file_part"
    result: ClassVar[type] = FilePart


@dataclass(frozen=True, slots=True)
class CheckedHost:
    """The versions of a host whose doctor has run; its reports come before."""

    versions: Mapping[str, str]
    """The versions of packages, by name."""


@dataclass(frozen=True, slots=True)
class CheckRequest(HostRequest[CheckedHost]):
    """Let the doctor there check the machine."""

    function: ClassVar[str] = "accel_engine.hosts.answers:answer_check"
    result: ClassVar[type] = CheckedHost
    parts: ClassVar[tuple[type, ...]] = (CheckReport,)


REQUESTS: tuple[type[HostRequest[object]], ...] = (
    Ping,
    NewsRequest,
    RunNewsRequest,
    CommandsRequest,
    AnnotateRequest,
    ContentsRequest,
    RemoveRequest,
    CancelRequest,
    StartRequest,
    CureRequest,
    MissingRequest,
    ContentRequest,
    FolderOfFilesRequest,
    AskRequest,
    CommandRequest,
    EndAskRequest,
    RunFilesRequest,
    FilePartRequest,
    CheckRequest,
)
"""All requests that a host answers."""
