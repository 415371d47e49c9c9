"""The rows of ``meta``, each decoded and checked by its key."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

import msgspec

from accel_engine.json_values import Count, JsonValue, Number, Text, convert, decode
from accel_engine.plan import RUN_TEXTS, SPECS
from accel_engine.plan.plan_checks import without_ignored
from accel_engine.run.store.database import RunDatabase
from accel_engine.versioned_database import MAX_TIME, Time


@dataclass(frozen=True, slots=True)
class ImportSource:
    """The files of another tool that a run was imported from."""

    path: Text
    """The folder or file."""
    format: Text
    """``TensorBoard``, ``W&B`` or ``CSV``."""
    fingerprint: Text = ""
    """Checksum of the contents."""


@dataclass(frozen=True, slots=True)
class HostState:
    """The state of a mirrored run that only the machine of its host can tell."""

    status: Text
    """Its :class:`~accel_engine.run.engine.status.Status`."""
    waiting: Text = ""
    """The :class:`~accel_engine.run.directory.disk_problem.DiskProblem` that its engine waits for; empty for none."""
    memory_loss: Text = ""
    """The :class:`~accel_engine.run.engine.memory_loss.MemoryLoss`; empty for none."""
    last_words: Text = ""
    ahead: Number = 0.0
    """Seconds by which its clock is ahead of the clock here."""


@dataclass(frozen=True, slots=True)
class PlacedRun:
    """Where a run was started, if not by this program on this machine."""

    place: Text
    """As :func:`accel_engine.places.parse_place` takes it."""
    job: Text
    """The name of its job at the place's engine."""
    restarts: Count = 0
    """How often it was started again without a newer checkpoint."""
    checkpoint: Count = 0
    """The step of its newest checkpoint when it was started again."""
    reason: Text = ""
    """Why it is started again; empty at first."""
    waits: Text = ""
    """What the process that starts it waits for; empty if nothing, or if a cluster's own queue knows it."""
    is_cancelled: bool = False
    """Whether that process is to end it."""
    options: tuple[Text, ...] = ()
    """The options of commands that start a run there again; empty if unknown."""


_OtherTime = Annotated[float, msgspec.Meta(ge=-MAX_TIME, le=MAX_TIME)]
"""A time of another clock, such as seconds since boot, or the difference of two."""

_Finite = Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)]

_Pid = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]

_KINDS: Mapping[str, Any] = {
    **dict.fromkeys(("script", "bench", "study", "process", "machine", "host", "kills", "memory_loss", "memory"), Text),
    **dict.fromkeys(("name", "note"), Text),
    **dict.fromkeys(("pending", "clock_offset", "heartbeat", "written"), _OtherTime),
    **dict.fromkeys(("launched", "queued", "trial", "log_start"), Count),
    "created": Time,
    "pid": _Pid,
}

_FLAGS = ("launched", "queued")

REOPENED = (
    *("plan", "place", "pending", "queued", "machine", "host"),
    *("pid", "process", "kills", "memory_loss", "log_start"),
)
"""The keys of the values that reopening a run changes. While a continuation waits, ``before`` has the earlier ones."""

HOST_STATE = "host_state"
"""The key of the :class:`HostState`, which only a mirrored run has."""

HOST_SUMMARY = "host_summary"
"""The key of the summary that the host has made of a mirrored run, as JSON."""

_JSON: Mapping[str, Any] = {
    "source": ImportSource,
    "place": PlacedRun,
    "tags": tuple[Text, ...],
    "before": dict[Text, Text | int | _Finite | None],
    HOST_STATE: HostState,
}

_PLAN_TEXT: Any = Text | None

_PLAN_VALUE: Any = Text | int | _Finite | bool | tuple[Text, ...] | None
"""Other versions may have other types than this one."""


@lru_cache(maxsize=64)
def stored_plan(text: str) -> Mapping[str, Any]:
    """The fields of a stored plan. Cached, as followers read it every second.

    Raises:
        ValueError: The text is not a JSON object, or a field has a value of another kind.
    """
    values = decode(text, dict[str, JsonValue])
    for name, value in values.items():
        if name in SPECS:
            convert(value, _PLAN_TEXT if name in RUN_TEXTS else _PLAN_VALUE)
    return values


@lru_cache(maxsize=64)
def effective_plan(text: str) -> Mapping[str, Any]:
    """A stored plan's fields that have an effect."""
    return without_ignored(stored_plan(text))


def read_meta(database: RunDatabase) -> dict[str, Any]:
    """Read all values by key; a plan is its text, tags are a tuple."""
    return {row.key: database.decode("meta", row.key, decode_meta, row.key, row.value) for row in database.meta_rows()}


def decode_meta(key: str, value: Any) -> Any:
    """Decode a value.

    Raises:
        ValueError: The key cannot have this value.
    """
    if key == "plan":
        stored_plan(value)
    elif key in _JSON:
        return decode(value, _JSON[key])
    elif key in _KINDS:
        is_text = _KINDS[key] is Text
        # A text that looks like a number may have been stored as one.
        found = convert(str(value) if is_text and type(value) is int else value, _KINDS[key])
        return bool(found) if key in _FLAGS else found
    return value
