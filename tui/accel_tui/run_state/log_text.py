"""Log levels, filters and searches of log lines, and the lines that tell the values of each epoch."""

import enum
import re
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from accel_engine.events import EpochEnded
from accel_engine.words import numbers
from accel_tui.run_state.log_tail import LogLine
from accel_tui.run_state.state import RunState


class Level(enum.IntEnum):
    """Severity of a log line."""

    INFO = 0
    WARNING = 1
    ERROR = 2


NAMES = {Level.INFO: "all", Level.WARNING: "warnings", Level.ERROR: "errors"}
"""Names of what is shown from each level on."""

# TensorFlow writes "2026-01-31 12:00:00.123456: W file:1] ...", its newer parts "W0000 00:00:17 ...", Python's logging
# a word; a traceback's last line begins with the name of an exception.
_LEVEL_PATTERNS = {
    Level.ERROR: re.compile(
        r"^\S+ \S+: [EF] |^[EF]\d{4} |\b(?:ERROR|CRITICAL|FATAL)\b|^Traceback |^[\w.]*(?:Error|Exception|Interrupt)\b"
    ),
    Level.WARNING: re.compile(r"^\S+ \S+: W |^W\d{4} |\bWARN(?:ING)?\b|^\S*:\d+: \w*Warning: |^\w*Warning: "),
}

_NOISE = re.compile(r"^\d{4}-\d\d-\d\d \S+: I |^I\d{4} |^WARNING: All log messages before absl::InitializeLog")
"""What TensorFlow tells while it starts, which is not a warning."""

_STAMP = re.compile(
    r"^(?:[IWEF]\d{4} \d\d:\d\d:(?P<seconds>\d{9,}\.\d+)"
    r"|(?P<local>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\.\d+: [IWEF]) "
)

_WORKER = re.compile(r"^(?:worker|parameter server) \d+ │ ")


def level_of(text: str, before: Level = Level.INFO) -> Level:
    """The severity of a line.

    Args:
        text: The line.
        before: Severity of the previous line, which an indented line continues.
    """
    message = _WORKER.sub("", text, count=1)
    if message[:1].isspace():
        return before
    return next((level for level, pattern in _LEVEL_PATTERNS.items() if pattern.search(message)), Level.INFO)


def is_noise(text: str) -> bool:
    """Whether TensorFlow wrote a line, and it is neither a warning nor an error."""
    return _NOISE.match(text) is not None


def time_of(text: str, *, is_here: bool) -> float | None:
    """When TensorFlow wrote a line, in seconds since the Unix epoch; ``None`` for a line without a known time.

    Args:
        text: The line.
        is_here: Whether it was written in this machine's time zone.
    """
    stamp = _STAMP.match(text)
    if stamp is None:
        return None
    if stamp["seconds"]:
        return float(stamp["seconds"])
    if not is_here:
        return None
    return time.mktime(time.strptime(stamp["local"], "%Y-%m-%d %H:%M:%S"))


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of log lines."""

    level: Level = Level.INFO
    """Minimum severity."""
    words: str = ""
    """Words that a line must contain, or must not after ``-``; case-insensitive."""

    def passes(self, text: str, level: Level) -> bool:
        """Whether a line passes."""
        if level < self.level:
            return False
        text = text.casefold()
        for word in self.words.casefold().split():
            unwanted = len(word) > 1 and word[0] == "-"
            if (word[unwanted:] in text) == unwanted:
                return False
        return True


def match_ranges(text: str, wanted: str) -> list[tuple[int, int]]:
    """Start and end of each match of a text, case-insensitive."""
    if not wanted:
        return []
    return [match.span() for match in re.finditer(re.escape(wanted), text, re.IGNORECASE)]


MAX_EPOCHS = 2000
"""Maximum number of epochs that are shown of a run that is opened."""

_SHORT = {"accuracy": "acc"}

_VALUE = 7
"""Cells of a value, so that values of epochs stand below each other."""


class EpochLines:
    """Gives the line of each epoch once, and puts it where its time is among other lines."""

    def __init__(self) -> None:
        self._until = float("-inf")
        self._waiting: list[tuple[float, LogLine]] = []
        self._is_here = False

    def take(self, state: RunState) -> None:
        """Take the epochs that have ended since: with their validation, if one follows."""
        if not (state.info and state.info.has_engine):
            return  # a script tells of its epochs in its output
        self._is_here = state.info.host == socket.gethostname()
        new = tuple(_new(state.ended_epochs[-MAX_EPOCHS:], self._until))
        if not new:
            return
        validations = {each.step: each.metrics for each in state.validations if each.step >= new[-1].step}
        for epoch in reversed(new):
            validated = validations.get(epoch.step)
            if validated is None and epoch is state.epoch and epoch.step >= state.step and not state.has_ended:
                break  # its validation may follow
            self._waiting.append((epoch.time, LogLine(_epoch_text(epoch, validated or {}, state.epochs), None, True)))
            self._until = epoch.time

    def merged(self, lines: Iterable[LogLine]) -> list[LogLine]:
        """Further lines of the log, with the epochs that ended before them."""
        merged: list[LogLine] = []
        for line in lines:
            if self._waiting and (at := time_of(line.text, is_here=self._is_here)) is not None:
                merged += self._before(at)
            merged.append(line)
        return merged

    def rest(self) -> list[LogLine]:
        """The epochs that no line follows."""
        return self._before(float("inf"))

    def _before(self, at: float) -> list[LogLine]:
        count = sum(ended <= at for ended, _ in self._waiting)
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return [line for _, line in taken]


def _new(epochs: tuple[EpochEnded, ...], until: float) -> Iterator[EpochEnded]:
    """The epochs after a time, the last one first."""
    for epoch in reversed(epochs):
        if epoch.time <= until:
            return
        yield epoch


def _epoch_text(epoch: EpochEnded, validated: Mapping[str, float], epochs: int) -> str:
    """``epoch  3/10  loss  0.2310  acc  0.9310  val loss  0.2519  0.30 s``.

    Args:
        epoch: The epoch.
        validated: The metrics of its validation.
        epochs: Number of epochs of the plan; 0 if unknown.
    """
    number = f"{epoch.epoch:>{len(f'{epochs:,}')},}/{epochs:,}" if epochs else f"{epoch.epoch:,}"
    metrics = [("", epoch.metrics), ("val ", validated)]
    texts = [
        f"{word}{_SHORT.get(name, name.replace('_', ' '))} {numbers.metric(value):>{_VALUE}}"
        for word, values in metrics
        for name, value in sorted(values.items(), key=lambda item: item[0] != "loss")
    ]
    took = f"{epoch.seconds:.2f} s" if epoch.seconds < 60 else numbers.duration(epoch.seconds)
    return "  ".join([f"epoch {number}", *texts, took])
