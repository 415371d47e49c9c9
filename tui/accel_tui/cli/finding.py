"""What the commands of ``accel-tui find`` share: Ctrl-C, live progress, plots in characters, lines of JSON."""

from collections.abc import Callable, Mapping
from typing import Any, TextIO, TypeVar

from accel_engine.errors import AccelError
from accel_engine.measure.trial_process import TrialCancelledError
from accel_tui.cli.live import LiveArea, cut_line, is_live
from accel_tui.cli.output import print_to_stderr, terminal_columns, write_json
from accel_tui.cli.signals import interruptible

PLOT_ROWS = 14
MAX_COLUMNS = 100

Found = TypeVar("Found")


def measure_or_explain(
    find: Callable[[Callable[[], bool]], Found], status: "StatusLine", unfound: Callable[[], Mapping[str, Any]] | None
) -> Found | None:
    """Measure until Ctrl-C, and print why nothing was found as the last line of JSON.

    Args:
        find: Measures; asks its argument whether to give up.
        status: The line that is removed at the end.
        unfound: Makes that last line, without its ``problem``; ``None`` without JSON.

    Returns:
        What was found; ``None`` after Ctrl-C.

    Raises:
        AccelError: Nothing can be measured.
    """
    with interruptible() as interrupted:
        try:
            return find(interrupted.is_set)
        except AccelError as error:
            was_interrupted = isinstance(error, TrialCancelledError)
            if unfound is not None:
                write_json({**unfound(), "problem": "interrupted" if was_interrupted else str(error)})
            if was_interrupted:
                return None
            raise
        finally:
            status.clear()


class StatusLine:
    """A line on standard error that is overwritten, on a terminal; elsewhere, a line for what begins.

    Args:
        stream: Standard error.
    """

    def __init__(self, stream: TextIO) -> None:
        self._live = LiveArea(stream) if is_live(stream) else None

    def show(self, text: str) -> None:
        """Show a text in place of the one before."""
        if self._live:
            self._live.show(cut_line(text))

    def begin(self, text: str) -> None:
        """Note that something begins, in a line of its own, unless :meth:`show` shows it."""
        if not self._live:
            print_to_stderr(text)

    def clear(self) -> None:
        """Remove the text."""
        if self._live:
            self._live.clear()


def plot_width() -> int:
    """The width of a plot in columns."""
    return min(terminal_columns(), MAX_COLUMNS)
