"""Limits how often an engine is started again, and how soon."""

import os
from contextlib import suppress

MAX_RESTARTS = 5
"""Restarts without a newer checkpoint in between; after them the run has failed."""

FIRST_PAUSE_SECONDS = 1.0
"""Pause before the first restart, doubled before each that follows without a newer checkpoint; the environment variable
``ACCEL_TUI_RESTART_SECONDS`` overrides it."""

MAX_PAUSE_SECONDS = 300.0


class Restarts:
    """Counts the restarts of a run."""

    def __init__(self) -> None:
        self.count = 0
        self._checkpoint = -1

    def next_pause(self, checkpoint: int) -> float | None:
        """Count a restart; returns the seconds to wait before it, or ``None`` if the limit is reached.

        Args:
            checkpoint: The step of the newest checkpoint; 0 if there is none.
        """
        if checkpoint > self._checkpoint:
            self.count, self._checkpoint = 0, checkpoint
        if self.count == MAX_RESTARTS:
            return None
        self.count += 1
        return min(MAX_PAUSE_SECONDS, _first_pause() * 2.0 ** (self.count - 1))


def _first_pause() -> float:
    with suppress(KeyError, ValueError):
        return float(os.environ["ACCEL_TUI_RESTART_SECONDS"])
    return FIRST_PAUSE_SECONDS
