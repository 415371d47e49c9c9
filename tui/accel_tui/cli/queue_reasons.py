"""Why a run that is followed waits in the queue."""

import time

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
        from accel_tui.formatting.queued_runs import why_queued  # seldom needed

        self._due = time.monotonic() + INTERVAL
        said = why_queued(run)
        is_new, self._said = said != self._said, said
        return [f"run {run} waits: {said}"] if is_new else []
