"""The runs of the queue, in words."""

from accel_engine.errors import AccelError, UsageError
from accel_engine.run import RunSummary
from accel_engine.run_queue.queue import entries, wake
from accel_engine.run_queue.queue_entries import QueueEntry
from accel_engine.text import printable_line

MAX_AT_ONCE = 1000
"""The largest limit of runs at once."""


def device_words(entry: QueueEntry) -> str:
    """The devices of a run that was started, or how many it asks for; empty for what its plan says."""
    if entry.devices:
        return ",".join(entry.devices)
    return str(entry.request.devices) if entry.request.devices and not entry.is_started else ""


def state_of(entry: QueueEntry, run: RunSummary) -> str:
    """Whether a run trains, with its step, or why it waits."""
    if entry.is_started:
        return f"{run.status or 'starting'}, step {run.steps:,}" if run.steps else str(run.status or "starting")
    return waits(entry)


def waits(entry: QueueEntry) -> str:
    """Why a run waits."""
    if entry.is_held and not entry.reason.startswith("held"):
        return printable_line(f"held: {entry.reason}")
    return printable_line(entry.reason) or "waits"


def why_queued(run: str) -> str:
    """Why a queued run waits; also brings a queue going again that no process works on."""
    wake()
    try:
        found = next((waits(entry) for entry in entries() if entry.run == run), None)
    except AccelError as error:
        return printable_line(str(error))
    return found or f"not in the queue; add it: accel-tui queue release {printable_line(run)}"


def parse_limit(text: str) -> int | None:
    """Parse how many runs train at once; ``auto`` is ``None``.

    Raises:
        UsageError: It is neither.
    """
    text = text.strip()
    if text == "auto":
        return None
    if not text.isdecimal() or not 1 <= int(text) <= MAX_AT_ONCE:
        raise UsageError(f"the limit {text!r} must be a number from 1 to {MAX_AT_ONCE:,}, or auto")
    return int(text)
