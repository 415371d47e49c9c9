"""Finds values in the lines that a script prints, by the user's patterns."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from accel_engine import clock
from accel_engine.errors import UsageError

STEP = "step"
"""The group whose value is a step's number."""

MAX_LINE_BYTES = 1 << 16
"""Maximum length of a line that is searched."""

_COLOURS = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """The values of a line.

    Attributes:
        time: When it was printed, in seconds since the Unix epoch.
        values: Values by name; :data:`STEP` may be among them.
    """

    time: float
    values: dict[str, float]


class OutputParser:
    """Searches each line of the output.

    Args:
        patterns: Regular expressions with named groups, as :func:`check_patterns` takes them.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = [re.compile(pattern) for pattern in patterns]
        self._unfinished: dict[str, bytes] = {}

    def feed(self, source: str, data: bytes) -> list[ParsedLine]:
        """Return the values of the lines that end within the data.

        Args:
            source: Name of the stream that the data is from.
            data: Output; a line ends with a line feed or, in a progress bar, a carriage return.
        """
        if not self._patterns:
            return []
        *lines, rest = re.split(rb"[\r\n]+", self._unfinished.get(source, b"") + data)
        self._unfinished[source] = rest[-MAX_LINE_BYTES:]
        return [parsed for line in lines if (parsed := self._parse(line))]

    def finish(self) -> list[ParsedLine]:
        """Return the values of lines without an end, at the end of the output."""
        rest, self._unfinished = [*self._unfinished.values()], {}
        return [parsed for line in rest if (parsed := self._parse(line))]

    def _parse(self, line: bytes) -> ParsedLine | None:
        text = _COLOURS.sub("", line.decode(errors="replace"))
        values: dict[str, float] = {}
        for pattern in self._patterns:
            for match in pattern.finditer(text):
                for name, value in match.groupdict().items():
                    try:
                        values[name] = float(value)
                    except (TypeError, ValueError):  # an optional group, or no number
                        continue
        return ParsedLine(clock.now(), values) if values.keys() - {STEP} else None


def check_patterns(patterns: Sequence[str]) -> None:
    """Check patterns.

    Raises:
        UsageError: One is no regular expression or has no named group, or none has a group for a value.
    """
    example = r"for example 'loss=(?P<loss>[\d.]+)'"
    names: set[str] = set()
    for pattern in patterns:
        try:
            named = re.compile(pattern).groupindex.keys()
        except re.error as error:
            raise UsageError(f"--parse {pattern!r} is no regular expression: {error}; {example}") from error
        if not named:
            raise UsageError(f"--parse {pattern!r} names no value: a group (?P<NAME>...) does, {example}")
        names |= named
    if names == {STEP}:
        raise UsageError(f"--parse finds steps, but no values of them: add a pattern, {example}")
