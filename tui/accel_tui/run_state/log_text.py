"""Log levels, filters and searches of log lines."""

import enum
import re
import time
from dataclasses import dataclass


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
"""What TensorFlow tells while it starts, which is no warning."""

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


def time_of(text: str) -> float | None:
    """When TensorFlow wrote a line, in seconds since the Unix epoch; ``None`` if the line does not tell."""
    stamp = _STAMP.match(text)
    if stamp is None:
        return None
    if stamp["seconds"]:
        return float(stamp["seconds"])
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
