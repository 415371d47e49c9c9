"""Reads the advice on a run for a screen, in threads, again and again while the run is live."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.screen import Screen

from accel_engine.errors import RunError
from accel_engine.text import printable_line
from accel_tui.run_state.advice import Advice, read_advice
from accel_tui.terminal.textual_private import is_being_removed
from accel_tui.widgets.visibility import is_covered

PAUSE_SECONDS = 10.0
"""Seconds between two readings of a live run, at least."""

PAUSE_FACTOR = 20.0
"""The same in durations of a reading: it takes a twentieth of a processor at most."""


class AdviceReader:
    """Reads advice for a screen: once of an ended run, periodically of a live one while the screen is visible.

    Args:
        screen: Runs the threads; the results are handled in its message loop.
        directory: The run's directory.
        on_advice: Called with each reading.
        on_problem: Called with the reason when the run cannot be read.
    """

    def __init__(
        self,
        screen: Screen[Any],
        directory: Path,
        on_advice: Callable[[Advice], object],
        on_problem: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._screen = screen
        self._directory = directory
        self._on_advice = on_advice
        self._on_problem = on_problem
        self._is_reading = False
        self._is_outdated = False  # the run has changed since the reading in progress began

    def read(self) -> None:
        """Read now."""
        if self._is_reading:
            self._is_outdated = True
            return
        self._is_reading = True
        self._screen.run_worker(self._read, thread=True, exit_on_error=False, group="advice")

    def _read(self) -> None:
        try:
            self._screen.call_later(self._take, read_advice(self._directory), "")
        except RunError as error:
            self._screen.call_later(self._take, None, str(error))
        except Exception as error:  # noqa: BLE001 (otherwise the screen would wait for this reading for ever)
            problem = f"Internal error: {type(error).__name__}: {error}"
            self._screen.call_later(self._take, None, printable_line(problem))

    def _take(self, advice: Advice | None, problem: str) -> None:
        self._is_reading = False
        if is_being_removed(self._screen):
            return  # its widgets are, too
        if advice:
            self._on_advice(advice)
        else:
            self._on_problem(problem)
        if self._is_outdated:
            self._is_outdated = False
            self.read()
        elif advice is None or advice.info.status.live:
            seconds = advice.seconds if advice else 0.0
            self._screen.set_timer(max(PAUSE_SECONDS, PAUSE_FACTOR * seconds), self._read_if_visible)

    def _read_if_visible(self) -> None:
        if is_covered(self._screen):
            self._screen.set_timer(PAUSE_SECONDS, self._read_if_visible)
        else:
            self.read()
