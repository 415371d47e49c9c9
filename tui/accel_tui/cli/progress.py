"""A run as text: lines fit for a log, and on a terminal a live bar below them."""

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TextIO

from accel_engine.events import Phase
from accel_engine.run import RunInfo, Update
from accel_engine.run.schema import LEARNING_RATE
from accel_engine.text import printable_line
from accel_tui.appearance.glyphs import has_unicode
from accel_tui.cli.durations import duration
from accel_tui.cli.event_text import epoch_of, means, worded
from accel_tui.formatting import figures, units
from accel_tui.run.fold_events import fold
from accel_tui.run.state import RunState

EVERY = 5.0
"""Seconds between two lines on the progress of an epoch."""

TEXT_WIDTH = 62
"""Columns that the text beside a bar takes at most, as a rule."""


Line = tuple[float, str]
"""When something happened, in seconds since the Unix epoch, and what."""


class Log:
    """Shows a run as lines: one for each thing that happens seldom, and in between one every few seconds.

    Args:
        stream: Where to.
        clock: Seconds that only grow.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self.state = RunState()
        """The run as far as it was shown."""
        self._stream = stream
        self._clock = clock
        self._due = clock() + EVERY

    def show(self, update: Update, info: RunInfo | None = None) -> None:
        """Write what is worth a line."""
        self.state = replace(self.state, info=info)
        lines: list[Line] = []
        for event in update.events:  # one by one: a line is worded as things stood then
            self.state = fold(self.state, Update(events=(event,)))
            lines += [(event.time, printable_line(line)) for line in worded(event, self.state).splitlines()]
        self.state = fold(self.state, Update(chunks=update.chunks))
        self._put(lines)

    def lost(self, info: RunInfo, steps: int) -> None:
        """Say that nothing more will come."""
        self._put([(info.now(), printable_line(f"run {info.id} was lost after step {steps:,}"))])

    def clear(self) -> None:
        """Leave room for a message to the user."""
        self._stream.flush()

    def _put(self, lines: Sequence[Line]) -> None:
        now = self._clock()
        if not lines and now >= self._due and self.state.built and _is_training(self.state):
            lines = ((self.state.now, progress(self.state)),)
        if lines:
            self._due = now + EVERY
            for moment, text in lines:
                self._stream.write(f"{time.strftime('%H:%M:%S', time.localtime(moment))} {text}\n")
            self._stream.flush()


class Bar(Log):
    """Shows a run on a terminal: a line for each thing that happens seldom, above a bar that lives.

    Args:
        stream: The terminal.
        width: Gives its present width in columns.
    """

    def __init__(self, stream: TextIO, width: Callable[[], int]) -> None:
        super().__init__(stream)
        self._width = width
        self._painted = ""
        self._has_colour = not os.environ.get("NO_COLOR")
        self._has_unicode = has_unicode(os.environ, stream.encoding or "")

    def clear(self) -> None:
        """Take the bar away; it comes back with what is shown next."""
        self._paint((), "")

    def _put(self, lines: Sequence[Line]) -> None:
        self._paint([text for _, text in lines], self._bar())

    def _paint(self, lines: Sequence[str], bar: str) -> None:
        """Write lines where the bar was, and the bar below them."""
        if not lines and bar == self._painted:
            return
        erase = "\r\x1b[K" if self._painted else ""
        self._stream.write(erase + "".join(f"{line}\n" for line in lines) + bar)
        self._stream.flush()
        self._painted = bar

    def _bar(self) -> str:
        state = self.state
        if state.ended or state.phase is None:
            return ""
        width = self._width() - 3  # room for ^C: a full line would wrap, and could not be painted over
        if not state.total_steps:
            return f"{state.phase.phase} {duration(state.now - state.phase.time)}"[:width]
        room = min(max(width - TEXT_WIDTH, 4), 40)  # whatever the text, so that the bar holds still
        text = progress(state, width - room - 2)
        if width < TEXT_WIDTH // 2:
            return text[:width]
        text = text[: width - room - 2]
        return f"{self._drawn(state.step / state.total_steps, room)}  {text}"

    def _drawn(self, share: float, room: int) -> str:
        """A bar of so many columns, a share of it full."""
        done = round(room * min(share, 1.0))
        full, empty = ("\u2501", "\u2500") if self._has_unicode else ("#", "-")
        if not self._has_colour:
            return full * done + empty * (room - done)
        return f"\x1b[32m{full * done}\x1b[90m{empty * (room - done)}\x1b[0m"


def progress(state: RunState, width: float = math.inf) -> str:
    """How far a run is, in at most about 70 columns, and the use of the devices if there is room for that too."""
    parts = [epoch_of(state.current_epoch or 1, state)]
    measured = [(name, curve.last) for name, curve in state.curves.items() if name != LEARNING_RATE]
    parts.append(means(dict(measured[:2])))
    if state.phase and not _is_training(state):
        parts.append(str(state.phase.phase))
    elif state.rate:
        parts.append(f"{figures.compact(state.rate)}/s")
        if state.remaining is not None:
            parts.append(f"{duration(state.remaining)} left")
    words = printable_line("  ".join(filter(None, parts)))
    use = f"  {units.percent(state.mfu)} of peak" if state.mfu is not None and _is_training(state) else ""
    return words + use if len(words + use) <= width else words


def _is_training(state: RunState) -> bool:
    return state.phase is not None and state.phase.phase is Phase.TRAINING
