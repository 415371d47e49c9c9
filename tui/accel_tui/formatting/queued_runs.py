"""The runs of the queue, in words."""

from accel_engine.run import RunSummary
from accel_engine.run_queue.queue import QueueEntry
from accel_engine.text import printable_line


def devices_of(entry: QueueEntry) -> str:
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
