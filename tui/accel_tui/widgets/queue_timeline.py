"""The timeline of the queue: which run holds which device until when, as far as that is known."""

import time
from collections.abc import Sequence

from rich.cells import cell_len
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.formatting.text import fit, shorten
from accel_tui.run_list.queue_times import PlannedRun
from accel_tui.widgets.visibility import has_shades

SHORTEST = 60.0
"""Seconds that the timeline shows at least."""

OPEN = 1.15
"""How much longer it is where ends are unknown, so that their blocks reach past all others."""

_STEPS = (1, 2, 5, 10, 15, 30)
_TICK = 14  # cells from a label of the axis to the next, at least
_HIGHEST = 4  # lines of a lane
_NAMED = 5  # cells from which a block has a name
_UNKNOWN = "unknown"

_Block = tuple[int, int, PlannedRun]
"""The first cell, the cell after the last, and its run."""


class QueueTimeline(Widget):
    """Devices as rows, runs as blocks from now to their expected ends; a run without an end has an open block."""

    DEFAULT_CSS = "QueueTimeline { height: auto; max-height: 60%; padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__(classes="panel")
        self.border_title = "Timeline"
        self._runs: Sequence[PlannedRun] = ()
        self._current = ""

    def show(self, runs: Sequence[PlannedRun], current: str) -> None:
        """Show runs; the block of the current one stands out."""
        if (runs, current) != (self._runs, self._current):
            self._runs, self._current = runs, current
            end = max((each.end for each in runs if each.end is not None), default=None)
            until = time.strftime("%H:%M", time.localtime(time.time() + end)) if end else ""
            self.border_subtitle = f"the last known end is about {until}" if until else "no end is known yet"
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The lanes at their full height, the axis, and a line for what has no time."""
        lanes = self._lanes
        left = self._left(lanes)
        named = sum(bool(_slivers(self._blocks(runs, width - left))) for _, runs in lanes)
        return len(lanes) * self._highest + named + 2

    @property
    def _highest(self) -> int:
        """Lines of a lane where there is room."""
        return _HIGHEST if self.screen.has_class("-tall") else 2

    @property
    def _placed(self) -> list[PlannedRun]:
        return [each for each in self._runs if each.start is not None]

    @property
    def _lanes(self) -> list[tuple[str, list[PlannedRun]]]:
        """The runs of each device, and of further rows of the same device, which have no name."""
        devices = sorted({device for each in self._placed for device in each.devices}, key=_order)
        by_device = ((device, [each for each in self._placed if device in each.devices]) for device in devices)
        return [("" if at else device, lane) for device, runs in by_device for at, lane in enumerate(_rows_of(runs))]

    def render(self) -> Content:
        """The lanes, an axis, and what has no time."""
        return Content("\n").join(self._lines())

    def _lines(self) -> list[Content]:
        lanes = self._lanes
        left = self._left(lanes)
        room = max(self.content_size.width - left, 1)
        height = min((self.content_size.height - 2) // max(len(lanes), 1), self._highest)
        apart = height > 2 and len(lanes) > 1
        lines = []
        for device, runs in lanes:
            blocks = self._blocks(runs, room)
            label = Content.styled(fit(device, left), "$text-muted")
            drawn = (self._line(blocks, room, y, height) for y in range(max(height - apart, 1)))
            lines += [Content.assemble(" " * left if y else label, line) for y, line in enumerate(drawn)]
            if slivers := _slivers(blocks):
                lines.append(Content.styled(" " * left + _names(slivers, room), "$text-muted"))
            lines += [Content("")] * apart
        if lanes:
            lines.append(Content.styled(" " * left + _axis(self._horizon, room), "$text-disabled"))
        if without := [printable_line(_name(each)) for each in self._runs if each.start is None]:
            text = f"{fit(_UNKNOWN, left)}start of {numbers.listed(without, 8)}"
            lines.append(Content.styled(shorten(text, left + room), "$text-muted"))
        return lines

    @staticmethod
    def _left(lanes: Sequence[tuple[str, list[PlannedRun]]]) -> int:
        """Cells before the lanes."""
        return max(map(len, (*(device for device, _ in lanes), _UNKNOWN))) + 2

    @property
    def _horizon(self) -> float:
        """Seconds that are shown."""
        placed = self._placed
        ends = [each.end for each in placed if each.end is not None]
        return max(SHORTEST, *ends, 0.0) * (OPEN if len(ends) < len(placed) else 1.0)

    def _blocks(self, runs: Sequence[PlannedRun], room: int) -> list[_Block]:
        return [_place(each, self._horizon, max(room, 1)) for each in runs]

    def _line(self, blocks: Sequence[_Block], room: int, y: int, height: int) -> Content:
        line, x = Content(""), 0
        for place, (first, last, planned) in enumerate(blocks):
            text = f" {_texts(planned, height)[y]} " if last - first >= _NAMED else ""
            text = fit(text if cell_len(text) <= last - first else text.removesuffix("left "), last - first)
            line = Content.assemble(line, " " * (first - x), (self._framed(text, planned), self._style(planned, place)))
            x = last
        return line.pad_right(max(room - x, 0))

    def _framed(self, text: str, planned: PlannedRun) -> str:
        """The text of a block between its ends, which are drawn where there are no tints."""
        if has_shades(self):
            return text
        return f"[{text[1:-1]}{']' if planned.end is not None else '>'}" if len(text) > 1 else "|"

    def _style(self, planned: PlannedRun, place: int) -> str:
        is_current = planned.entry.run == self._current
        if not has_shades(self):
            return "bold" if is_current else ""
        if is_current:
            return "$block-cursor-foreground on $block-cursor-background"
        share = 45 if planned.entry.is_started else 22 if place % 2 else 14
        return f"$foreground on $primary {share}%"


def _slivers(blocks: Sequence[_Block]) -> list[_Block]:
    """The blocks that are too short for a name."""
    return [block for block in blocks if block[1] - block[0] < _NAMED]


def _names(slivers: Sequence[_Block], room: int) -> str:
    """The names of short blocks below them, as many as fit, and how many others there are."""
    line, left = "", 0
    for first, _, planned in slivers:
        takes = f" {numbers.duration(planned.end - (planned.start or 0.0))}" if planned.end is not None else ""
        name = f"{printable_line(_name(planned))}{takes}"
        at = first if first + cell_len(name) < room else max(first - cell_len(name), 0)
        if at < cell_len(line) + bool(line):
            left += 1
        else:
            line = fit(line, at) + (f"└{name}" if at == first else f"{name}┘")
    more = f"  and {left} more" if left else ""
    return line + more if cell_len(line) + len(more) <= room else line


def _order(device: str) -> tuple[bool, int, str]:
    """Accelerators first, by their numbers."""
    return device.startswith("cpu"), len(device), device


def _name(planned: PlannedRun) -> str:
    return planned.row.info.title if planned.row.info else planned.entry.run


def _rows_of(runs: Sequence[PlannedRun]) -> list[list[PlannedRun]]:
    """Runs in as many rows as train at once; one without an end takes the rest of its row."""
    lanes: list[list[PlannedRun]] = []
    for each in sorted(runs, key=lambda each: each.start or 0.0):
        lane = next((lane for lane in lanes if (end := lane[-1].end) is not None and end <= (each.start or 0.0)), None)
        if lane is None:
            lanes.append([each])
        else:
            lane.append(each)
    return lanes


def _place(planned: PlannedRun, horizon: float, room: int) -> _Block:
    first = min(round((planned.start or 0.0) / horizon * room), room - 1)
    last = room if planned.end is None else round(planned.end / horizon * room)
    return first, max(last, first + 1), planned


def _texts(planned: PlannedRun, lines: int) -> list[str]:
    """The lines of a block: its run, how long it takes, and nothing."""
    name, start, end = printable_line(_name(planned)), planned.start or 0.0, planned.end
    if end is None:
        takes = "end unknown"
    elif planned.entry.is_started:
        takes = f"{numbers.duration(end)} left"
    else:
        takes = f"takes {numbers.duration(end - start)}"
    return [name, takes, *[""] * _HIGHEST] if lines > 1 else [f"{name}  {takes}"]


def _axis(horizon: float, room: int) -> str:
    """Labels of times from now."""
    unit = 86400.0 if horizon > 2 * 86400 else 3600.0 if horizon > 7200 else 60.0 if horizon > 120 else 1.0
    most = max(room // _TICK, 1)
    step = next((each * unit for each in _STEPS if horizon / (each * unit) <= most), horizon)
    line = "now"
    for tick in range(1, int(horizon / step) + 1):
        x = round(tick * step / horizon * room)
        label = f"+{numbers.duration(tick * step)}"
        if len(line) + 1 < x and x + len(label) <= room:
            line = f"{line.ljust(x)}{label}"
    return line
