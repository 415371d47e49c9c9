"""When the runs of the queue are expected to start and to end."""

from collections.abc import Mapping
from dataclasses import dataclass

from accel_engine.run_queue.decision import ActiveRun, FreeDevices, WaitingRun, decide
from accel_engine.run_queue.needs import RunNeeds
from accel_engine.run_queue.queue_entries import QueueEntry
from accel_tui.run_list.queue_rows import QueueList, QueueRow

CPU = "cpu:0"
"""What a run without accelerators trains on."""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """When a run is expected to hold its devices."""

    row: QueueRow
    devices: tuple[str, ...] = ()
    """Ids of its devices; empty while nobody knows which it gets."""
    start: float | None = None
    """Seconds from now, 0 if it trains; ``None`` if unknown."""
    end: float | None = None
    """Seconds from now; ``None`` if unknown."""

    @property
    def entry(self) -> QueueEntry:
        """Its entry in the queue."""
        return self.row.entry


def planned_runs(queue: QueueList) -> list[PlannedRun]:
    """The runs that train, then those that wait, as the queue would start them if each took as long as expected.

    A run behind one whose end is unknown, a held one, and one whose accelerators another program uses, has no start.
    """
    waiting = [row for row in queue.rows if not row.entry.is_started]
    found = {
        row.entry.run: PlannedRun(
            row, row.entry.devices or (CPU,), 0.0, None if row.seconds is None else max(row.seconds, 1.0)
        )
        for row in (*queue.rows, *queue.others)
        if row.entry.is_started
    }
    now: float | None = 0.0
    while now is not None:
        for run, devices in _starts(found, waiting, queue.at_once, now).items():
            row = next(each for each in waiting if each.entry.run == run)
            end = None if row.seconds is None else now + row.seconds
            found[run] = PlannedRun(row, devices or (CPU,), now, end)
        now = min((each.end for each in found.values() if each.end is not None and each.end > now), default=None)
    return [*found.values(), *(PlannedRun(row) for row in waiting if row.entry.run not in found)]


def _starts(
    found: Mapping[str, PlannedRun], waiting: list[QueueRow], at_once: int | None, now: float
) -> Mapping[str, tuple[str, ...]]:
    """The runs that the queue starts at a time, with their accelerators."""
    live = {run: each for run, each in found.items() if each.end is None or each.end > now}
    candidates = []
    for row in waiting:
        entry = row.entry
        if entry.run in found:
            continue
        waits = [run for run in entry.request.after if run in live or (run not in found and run in row.after)]
        # The process that starts runs has looked: what it does not start now waits for something.
        is_blocked = entry.is_held or row.need is None or waits or (not now and entry.reason)
        candidates.append(
            WaitingRun(entry.run, entry.request, row.need or RunNeeds(), blocked="waits" if is_blocked else "")
        )
    active = [
        ActiveRun(
            run, tuple(each for each in planned.devices if not each.startswith("cpu")), planned.row.entry.request.group
        )
        for run, planned in live.items()
    ]
    others = {device: "another program" for row in waiting for device in row.entry.others}
    return decide(candidates, active, FreeDevices(others, at_once=at_once)).starts
