"""The devices of all hosts as a heat map: a row for each host, a column for each device."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual.content import Content
from textual.events import Click
from textual.geometry import Size
from textual.message import Message

from accel_engine.devices.device_types import Device
from accel_engine.words import numbers
from accel_tui.appearance import colours
from accel_tui.formatting.text import fit, shorten, shorten_middle, sparkline, wrapped
from accel_tui.run_list.host_rows import SIGNS, HostView
from accel_tui.run_state.device_meter import Meter
from accel_tui.widgets.content_lines import ContentLines
from accel_tui.widgets.visibility import has_shades

_NUMBER = 3  # cells of a percentage without its sign
_SMALL = 2 * _NUMBER + 1  # cells of a device with use, memory and the gap after them
_SMALLEST = _NUMBER + 1
_WIDEST = 66
_MOST_LINES = 3  # of a host

_MISSING = "—"


@dataclass(frozen=True, slots=True)
class HeatMapLayout:
    """How the devices of hosts fit a size."""

    name: int
    """Cells of the names."""
    cell: int
    """Cells of a device, with the gap after them."""
    columns: int
    """Devices of a host that are shown."""
    lines: int
    """Lines of a host: use and memory, then in one more line the memory, then in one more who uses the devices."""
    hosts: int
    """Hosts that are shown."""


def lay_out(views: Sequence[HostView], width: int, height: int) -> HeatMapLayout:
    """Find the layout with the most lines of a host.

    Args:
        views: The hosts.
        width: Cells.
        height: Lines, with the header.
    """
    name = min(max((cell_len(view.title) for view in views), default=0) + 3, width // 2)
    devices = max((len(view.reading.devices) for view in views), default=1) or 1
    room = max(width - name, 1)
    cell = next((each for each in range(_WIDEST, _SMALL - 1, -1) if each * devices <= room + 1), _SMALLEST)
    rows = max(height - 1, 1)
    lines = max(1, min(_MOST_LINES if cell > _SMALL else 1, rows // max(len(views), 1)))
    return HeatMapLayout(name, cell, max(1, min(devices, (room + 1) // cell)), lines, max(1, rows // lines))


class DeviceHeatMap(ContentLines):
    """The use and the memory of each device of each host, with the history of its use and who uses it if there is room.

    A host that does not answer has the reason in place of its devices.
    """

    DEFAULT_CSS = "DeviceHeatMap { height: auto; }"

    @dataclass
    class Chosen(Message):
        """A host was clicked on."""

        host: str

    def __init__(self) -> None:
        super().__init__()
        self._views: Sequence[HostView] = ()
        self._current = ""

    def show(self, views: Sequence[HostView], current: str) -> None:
        """Show hosts; the name of the current one stands out."""
        if [_shape(view) for view in views] != [_shape(view) for view in self._views]:
            self._views, self._current = views, current
            self.refresh(layout=True)
        elif (views, current) != (self._views, self._current):
            self._views, self._current = views, current
            self.show_changes()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The header, and as many lines for each host as half the screen has."""
        found = lay_out(self._views, width, self._most_lines)
        return 1 + min(len(self._views), found.hosts) * found.lines

    @property
    def _most_lines(self) -> int:
        """Half of the screen's lines."""
        return self.app.size.height // 2

    def layout_key(self) -> object:
        """The size, and what decides on the layout."""
        return self.size, [_shape(view) for view in self._views], self.app.theme

    def on_click(self, event: Click) -> None:
        """Choose the host."""
        found = lay_out(self._views, self.size.width, self.size.height)
        at = self._first(found) + (event.y - 1) // found.lines
        if event.y >= 1 and at < len(self._views):
            self.post_message(self.Chosen(self._views[at].name))

    def make_lines(self) -> Sequence[Content]:
        """The names of the devices, and the lines of the hosts around the current one."""
        found = lay_out(self._views, self.size.width, self.size.height)
        first = self._first(found)
        shown = self._views[first : first + found.hosts]
        return [self._header(found), *(line for view in shown for line in self._host(view, found))]

    def _first(self, found: HeatMapLayout) -> int:
        """The first host that is shown, so that the current one is in the middle if there are too many."""
        at = next((at for at, view in enumerate(self._views) if view.name == self._current), 0)
        return max(0, min(at - found.hosts // 2, len(self._views) - found.hosts))

    def _header(self, found: HeatMapLayout) -> Content:
        titles = []
        for column in range(found.columns):
            ids = {view.reading.devices[column].id for view in self._views if column < len(view.reading.devices)}
            title = ids.pop().removesuffix("cpu:0") or "cpu" if len(ids) == 1 else f":{column - 1}"
            titles.append(fit(title, found.cell - 1) + " ")
        return Content.styled(" " * found.name + "".join(titles), "$text-muted")

    def _host(self, view: HostView, found: HeatMapLayout) -> list[Content]:
        """The lines of a host."""
        sign, colour = SIGNS[view.reading.state]
        is_current = view.name == self._current
        name = Content.assemble(
            (f"{sign} ", f"${colour}"),
            (fit(shorten_middle(view.title, found.name - 3), found.name - 3), "bold $accent" if is_current else ""),
            " ",
        )
        below = Content(" " * found.name)
        starts = [name, *[below] * (found.lines - 1)]
        if not view.is_connected or not view.reading.devices:
            words = view.message or ("no devices yet" if view.is_connected else f"{view.reading.state}…")
            style = "$text-error" if view.reading.state in ("lost", "refused") else "$text-muted"
            room = max(self.size.width - found.name, 1)
            told = f"{view.reading.state}: {words}" if view.message and not view.is_connected else words
            parts = wrapped(told, room) if found.lines > 1 else [shorten_middle(told, room)]
            parts = [*parts[: found.lines], *[""] * (found.lines - len(parts))]
            return [Content.assemble(start, (text, style)) for start, text in zip(starts, parts, strict=True)]
        cells = [self._device(view, device, found) for device in view.reading.devices[: found.columns]]
        left = len(view.reading.devices) - found.columns
        lines = [
            Content.assemble(start, *(Content.assemble(cell[line], " ") for cell in cells))
            for line, start in enumerate(starts)
        ]
        if left > 0:
            lines[0] = Content.assemble(lines[0], (f"+{left}", "$text-warning"))
        return lines

    def _device(self, view: HostView, device: Device, found: HeatMapLayout) -> list[Content]:
        """The lines of a device, each as wide as its cell without the gap."""
        width, meter = found.cell - 1, view.meters.get(device.id)
        use, used, total = (
            meter.reading(name).value if meter else None for name in ("utilization", "memory_used", "memory_total")
        )
        load = None if use is None else use / 100
        full = used / total if used is not None and total else None
        if found.lines == 1:
            if found.cell < _SMALL:
                return [self._number(load, width)]
            if found.cell < 2 * _SMALL:
                return [Content.assemble(self._number(load, width - width // 2), self._number(full, width // 2))]
            return [Content.assemble(self._history(meter, load, width - width // 2), self._number(full, width // 2))]
        lines = [self._history(meter, load, width), self._memory(used, total, width)]
        if found.lines > 2:
            lines.append(_users(view, device, width))
        return lines

    def _number(self, share: float | None, width: int) -> Content:
        """A percentage on the colour of its value."""
        text = _MISSING if share is None else f"{round(100 * min(max(share, 0.0), 1.0))}"
        return Content.styled(fit(text, width, right=True), self._heat(share))

    def _history(self, meter: Meter | None, load: float | None, width: int) -> Content:
        """The present use, and the use before from right to left as far as there is room."""
        number, room = self._number(load, _NUMBER + 1), width - _NUMBER - 1
        past = list(meter.utilizations[-room:] if meter and room > 0 else ())
        if not past:
            return number.pad_right(max(room, 0))
        shares = [None if each is None else each / 100 for each in past]
        blank = Content(" " * (room - len(past)))
        if not self._has_tints:
            return Content.assemble(number, blank, sparkline(past, len(past)))
        return Content.assemble(number, blank, *((" ", self._heat(share)) for share in shares))

    def _memory(self, used: float | None, total: float | None, width: int) -> Content:
        """The memory as a bar with its value inside."""
        if used is None or not total:
            return Content.styled(fit(_MISSING, width), "$text-muted")
        share = min(used / total, 1.0)
        text = f"{numbers.short_size(used)}/{numbers.short_size(total)}"
        text = fit(text if len(text) <= width else f"{round(100 * share)}%", width)
        filled = max(round(share * width), 1)
        return Content.assemble(
            (text[:filled], self._heat(share)), (text[filled:], "$foreground on $surface" if self._has_tints else "")
        )

    @property
    def _has_tints(self) -> bool:
        """Whether colours are mixed with the background."""
        return has_shades(self) and not self.app.current_theme.ansi

    def _heat(self, share: float | None) -> str:
        """The style of a share from 0 to 1, as all heat maps have it."""
        if share is None:
            return "$text-muted"
        if not self._has_tints:
            return "bold" if share >= 0.5 else ""
        background = self.background_colors[1].rgb
        # as the scale takes roots, its steps are made equal again
        found = colours.scale_colour(share**2, colours.CORRECT, background, dark=self.app.current_theme.dark)
        if share <= 0:
            return "$text-muted on $surface"
        text = colours.contrasting_text_colour(found)
        return "#{:02x}{:02x}{:02x} on #{:02x}{:02x}{:02x}".format(*text, *found)


def _shape(view: HostView) -> object:
    """The values on which the layout depends."""
    return view.name, len(view.reading.devices)


def _users(view: HostView, device: Device, width: int) -> Content:
    """Who uses a device."""
    names = view.users(device)
    if not names:
        is_free = device.kind != "cpu"
        return Content.styled(fit("free" if is_free else "", width), "$text-success")
    more = f" +{len(names) - 1}" if len(names) > 1 else ""
    return Content(fit(shorten(names[0], max(width - len(more), 1)) + more, width))
