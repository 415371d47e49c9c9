"""Why a run that is followed waits in the queue."""

import time
from contextlib import suppress

from accel_engine.errors import AccelError

INTERVAL = 1.0
"""Seconds between two looks at the queue."""


class QueueReasons:
    """Reads why a queued run waits, and brings a queue going again that nobody works on."""

    def __init__(self) -> None:
        self._due = 0.0
        self._said = ""

    def new(self, run: str) -> list[str]:
        """What is new about why it waits; empty for nothing."""
        if time.monotonic() < self._due:
            return []
        from accel_engine.run_queue import queue  # seldom needed
        from accel_tui.formatting.queued_runs import waits

        self._due = time.monotonic() + INTERVAL
        said = f"run {run} is not in the queue; add it: accel-tui queue release {run}"
        with suppress(AccelError):
            queue.wake()
            said = next((f"run {run} waits: {waits(entry)}" for entry in queue.entries() if entry.run == run), said)
        is_new, self._said = said != self._said, said
        return [said] if is_new else []
