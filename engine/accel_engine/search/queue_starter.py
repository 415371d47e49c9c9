"""Starts the runs of trials by the queue, which hands out the devices of the machine."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from accel_engine.devices.device_types import Device
from accel_engine.errors import DataError, RunError, UsageError
from accel_engine.run import RunReader, Status
from accel_engine.run_queue.active_runs import active_runs
from accel_engine.run_queue.queue import QueueRequest, cancel, enqueue, entries, limit
from accel_engine.search.engine_runs import DirectStarter


class QueueStarter:
    """Adds runs to the queue.

    On a machine without accelerators, where no other run trains or waits, a run is started at once: the queue's process
    would have nothing to decide, and takes a second to start. So is one of a search that asks for several at once
    there, unless the queue has a limit: without one, it has one run at a time on the CPU.

    Args:
        group: Name of the search.
        at_once: Most of its runs at the same time; 0 for as many as there are devices.
        devices: The devices of the machine.
    """

    def __init__(self, group: str, at_once: int, devices: Sequence[Device]) -> None:
        self._request = QueueRequest(group=group, at_once=at_once)
        self._is_cpu_only = all(device.kind == "cpu" for device in devices)
        self._direct = DirectStarter()

    def start(self, directory: Path) -> str:
        """Start a run when there is a device for it; one that is in the queue stays there.

        Returns:
            Why it is held in the queue; empty if it is not.

        Raises:
            DataError: The queue could not start it.
            RunError: The queue cannot be read or written.
        """
        waiting = entries()
        if entry := next((entry for entry in waiting if entry.run == directory.name), None):
            if entry.has_failed:
                raise DataError(entry.reason)
            return entry.reason if entry.is_held else ""
        if self._is_cpu_only and (not (waiting or active_runs(())) or (self._request.at_once > 1 and limit() is None)):
            return self._direct.start(directory)
        try:
            enqueue(directory, self._request)
        except RunError:
            if _status(directory) is Status.QUEUED:
                raise  # else somebody has started it meanwhile
        return ""

    def cancel(self, directory: Path) -> None:
        """End a run that waits."""
        with suppress(RunError, UsageError):  # it has just started, or ended
            cancel(directory.name)


def _status(directory: Path) -> Status:
    with suppress(RunError):
        reader = RunReader(directory, steps=False)
        try:
            return reader.info().status
        finally:
            reader.close()
    return Status.LOST
