"""How far a job is, how long the rest takes, and at last how it has ended."""

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

from accel_engine.measure.remaining_time import RemainingTime
from accel_engine.requests.protocol.request import ExamplesDone
from accel_engine.text import printable
from accel_engine.words import numbers

LEAST_SECONDS = 2.0
"""Seconds of examples after which the time for the rest is told."""


class JobProgress(Static):
    """Lines about a job."""

    _examples_done = 0

    def begin(self, words: str) -> None:
        """Tell that the job is started, whose examples are counted anew."""
        self._examples_done = 0
        self.tell(words)

    def tell(self, words: str, seconds_left: float | None = None) -> None:
        """Tell how far the job is, and about how long the rest takes if that is known."""
        left = f", about {numbers.duration(seconds_left)} left" if seconds_left and round(seconds_left) else ""
        self._show((f"{words}{left}",), "$text-accent")

    def tell_examples(self, part: ExamplesDone, lead: str = "") -> None:
        """Tell how many examples are done."""
        if part.done < self._examples_done or not self._examples_done:
            self._remaining = RemainingTime()
            self._remaining.begin()
        self._examples_done = part.done
        self._remaining.count(part.done)
        left = self._remaining.seconds_left(part.of) if part.of and self._remaining.current > LEAST_SECONDS else None
        self.tell(f"{lead}{numbers.examples_done(part.done, part.of)}", left)

    def show_end(self, lines: Sequence[str], problem: str, *, was_cancelled: bool) -> None:
        """Show what was found, below why the rest was not."""
        if was_cancelled:
            self._show((" ".join(("Ended.", *lines[:1])), *lines[1:]), "$text-muted")
        elif problem:
            self._show((problem, *lines), "$text-error")
        else:
            self._show(lines, "$text-success")

    def _show(self, lines: Sequence[str], style: str) -> None:
        """Show lines, the first one in a style."""
        first, *others = (printable(line) for line in (*lines, "")[: len(lines) or 1])
        content = Content("\n").join([Content.styled(first, style), *map(Content, others)])
        if self.content != content:
            self.update(content)
