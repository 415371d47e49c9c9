"""Finds values in the lines that a script prints, by the user's patterns."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from accel_engine import clock
from accel_engine.errors import UsageError

STEP = "step"
"""The group whose value is a step's number."""

MAX_LINE_BYTES = 1 << 16
"""Maximum length of a line that is searched."""

_COUNT = re.compile(r"(?<!\S)(\d\S*/\S+|\d\S*it) [\[━]")
"""How far a progress bar of tqdm or Keras is: ``5/100 [`` or ``5it [``."""

_COLOURS = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """The values of a line."""

    time: float
    """When it was printed, in seconds since the Unix epoch."""
    values: dict[str, float]
    """Values by name; :data:`STEP` may be among them."""


class ProgressBar:
    """Tells the steps of a progress bar, which is drawn several times a step.

    tqdm draws a new count with the values of the step before, and then their new ones. A new count whose values are
    the ones before may be a step or such a redraw: the next line tells. A count that stays may be of several steps, as
    tqdm does not count all of them at once.
    """

    def __init__(self) -> None:
        self._count = ""
        self._values: dict[str, float] = {}
        self._pending: ParsedLine | None = None

    def add(self, count: str, line: ParsedLine) -> Iterator[ParsedLine]:
        """Return the lines that are known to be steps.

        Args:
            count: How far the bar is, such as ``5/100``.
            line: Its values.
        """
        is_redrawn, is_new = count == self._count, line.values != self._values
        if is_redrawn and not is_new:
            return
        if self._pending and _number(count) > _number(self._count):  # else it was a redraw, or the last of the last bar
            yield self._pending
        self._pending = None if is_new else line
        if is_new:
            yield line
        self._count, self._values = count, line.values


class OutputParser:
    """Searches each line of the output.

    Args:
        patterns: Regular expressions with named groups, as :func:`check_patterns` takes them.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = [re.compile(pattern) for pattern in patterns]
        self._unfinished: dict[str, bytes] = {}
        self._in_place: dict[str, bool] = {}
        self._bars: dict[str, ProgressBar] = {}

    def feed(self, source: str, data: bytes) -> list[ParsedLine]:
        """Return the values of the lines that end within the data.

        Args:
            source: Name of the stream that the data is from.
            data: Output; a line ends with a line feed or, in a progress bar, a carriage return.
        """
        if not self._patterns:
            return []
        parts = re.split(rb"([\r\n]+)", self._unfinished.get(source, b"") + data)
        lines, ends = parts[:-1:2], parts[1::2]
        in_place = [self._in_place.get(source, False), *(end.endswith(b"\r") for end in ends)]
        self._unfinished[source], self._in_place[source] = parts[-1][-MAX_LINE_BYTES:], in_place[-1]
        each = zip(lines, in_place, strict=False)
        return [parsed for line, redrawn in each for parsed in self._parse(source, line, in_place=redrawn)]

    def finish(self) -> list[ParsedLine]:
        """Return the values of lines without an end, at the end of the output."""
        rest, self._unfinished = self._unfinished, {}
        return [
            parsed
            for source, line in rest.items()
            for parsed in self._parse(source, line, in_place=self._in_place[source])
        ]

    def _parse(self, source: str, line: bytes, *, in_place: bool) -> Iterator[ParsedLine]:
        text = _COLOURS.sub("", line.decode(errors="replace"))
        values: dict[str, float] = {}
        for pattern in self._patterns:
            for match in pattern.finditer(text):
                for name, value in match.groupdict().items():
                    try:
                        values[name] = float(value)
                    except (TypeError, ValueError):  # an optional group, or no number
                        continue
        if not values.keys() - {STEP}:
            return
        parsed, count = ParsedLine(clock.now(), values), _COUNT.search(text) if in_place else None
        if count is None or STEP in values:
            yield parsed
        else:
            yield from self._bars.setdefault(source, ProgressBar()).add(count[1], parsed)


def _number(count: str) -> float:
    """How far ``5/100``, ``1.2k/10k`` or ``5it`` is; rising counts of a bar have rising numbers."""
    found = re.match(r"([\d.]+)([kMG]?)", count)
    return float(found[1].strip(".")) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[found[2]] if found else 0.0


def check_patterns(patterns: Sequence[str]) -> None:
    """Check the patterns of ``--parse``.

    Raises:
        UsageError: A pattern is not a regular expression or has no named group, or none has a group for a value.
    """
    example = r"for example 'loss=(?P<loss>[\d.]+)'"
    names: set[str] = set()
    for pattern in patterns:
        try:
            named = re.compile(pattern).groupindex.keys()
        except re.error as error:
            raise UsageError(f"--parse {pattern!r} is not a regular expression: {error}; {example}") from error
        if not named:
            raise UsageError(f"--parse {pattern!r} names no value: a group (?P<NAME>...) does, {example}")
        names |= named
    if names == {STEP}:
        raise UsageError(f"--parse finds steps, but no values of them: add a pattern, {example}")
