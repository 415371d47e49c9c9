"""Panel of devices and their metrics, for any width and height."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive

from accel_engine.devices.device_types import Device, Inventory
from accel_engine.strategies.cluster_spec import CHIEF, COORDINATOR
from accel_tui.run_state.device_meter import Meter
from accel_tui.widgets.content_lines import ContentLines
from accel_tui.widgets.device_lines import CELLS, ID_WIDTH, device_line, short_device_name, two_lines, worker_cell

_TALL = 34
"""Terminal height from which devices may have a second line."""

_GAP = 2


class DevicePanel(ContentLines):
    """A line per device, then a line per kind of device that is missing.

    With enough room each device has a second line; with too little, accelerators are arranged in columns with fewer
    metrics each. A missing value is a dash, with its reason at the end of the line and in the tooltip. Only cells that
    change are repainted.
    """

    DEFAULT_CSS = """
    DevicePanel {
        height: auto;
        padding: 0 1;
    }
    """

    inventory: reactive[Inventory | None] = reactive(None, layout=True)
    meters: reactive[Mapping[str, Meter]] = reactive(dict, repaint=False)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Number of lines, limited by the style's maximum."""
        limit = self.styles.max_height
        max_lines = viewport.height if limit is None else int(limit.resolve(container, viewport)) - self.gutter.height
        return len(lines(self.inventory, {}, width, max_lines, tall=viewport.height >= _TALL))

    def watch_meters(self) -> None:
        """Repaint what has changed, and explain missing values in the tooltip."""
        reasons = "\n".join(explanations(self.meters))
        self.tooltip = Content(reasons) if reasons else None
        self.show_changes()

    def layout_key(self) -> object:
        """The devices, the room, and whether devices may have two lines."""
        return self.inventory, self.size, self.app.size.height >= _TALL

    def make_lines(self) -> Sequence[Content]:
        """The lines for the current size."""
        (width, height), tall = self.size, self.app.size.height >= _TALL
        return lines(self.inventory, self.meters, width, height, tall=tall)


def explanations(meters: Mapping[str, Meter]) -> list[str]:
    """Reasons of missing values, with the devices that share them."""
    devices: dict[tuple[str, str], list[str]] = {}
    for device, meter in meters.items():
        for name, reading in meter.sample.readings.items():
            if reading.value is None:
                devices.setdefault((name.replace("_", " "), reading.reason), []).append(device)
    return [f"{', '.join(ids)} {name}: {reason}" for (name, reason), ids in devices.items()]


def lines(
    inventory: Inventory | None, meters: Mapping[str, Meter], width: int, height: int = 1000, *, tall: bool = False
) -> list[Content]:
    """The panel's lines.

    Args:
        inventory: The devices; ``None`` while they are being detected.
        meters: Metrics by device id.
        width: In cells.
        height: Maximum number of lines.
        tall: Whether devices may have two lines.
    """
    if inventory is None:
        return [Content.styled("looking for devices…", "$text-muted")]
    absences = _absences(inventory, width)
    devices = inventory.devices
    names = min(max((len(short_device_name(device)) for device in devices), default=0), max(12, width // 5))
    ids = max((ID_WIDTH, *(len(device.id) for device in devices)))
    if tall and 2 * len(devices) + len(absences) <= height:
        return [
            row for device in devices for row in two_lines(device, meters.get(device.id), width, names, ids=ids)
        ] + absences
    if len(devices) <= height:
        rows = [device_line(device, meters.get(device.id), width, names, ids=ids) for device in devices]
        return (rows + absences)[:height]
    if any(_worker(device) for device in devices):
        return (list(_grouped_by_worker(devices, meters, width, height, ids)) + absences)[:height]
    hosts = [device for device in devices if device.kind == "cpu"][: height - 1]
    rows = [device_line(device, meters.get(device.id), width, names) for device in hosts]
    others = [device for device in devices if device.kind != "cpu"]
    return (rows + list(_side_by_side(others, meters, width, height - len(rows))) + absences)[:height]


def _absences(inventory: Inventory, width: int) -> list[Content]:
    texts = [f"{absence.kind}  none: {absence.reason}" for absence in inventory.unavailable]
    joined = "   ".join(texts)
    lines_of_text = [joined] if len(joined) <= width else texts
    return [Content.styled(text, "$text-disabled").truncate(width, ellipsis=True) for text in lines_of_text if text]


def _side_by_side(devices: Sequence[Device], meters: Mapping[str, Meter], width: int, height: int) -> Iterator[Content]:
    """Devices in columns with as many metrics as fit, and the number of devices that do not fit."""
    return _in_columns(_cell_formats(devices, meters, ID_WIDTH), width, height)


def _grouped_by_worker(
    devices: Sequence[Device], meters: Mapping[str, Meter], width: int, height: int, ids: int
) -> Iterator[Content]:
    """Devices of several machines in columns, or a cell per machine if there are too many."""
    groups: dict[str, list[Device]] = {}
    for device in devices:
        groups.setdefault(_worker(device), []).append(device)
    chief = COORDINATOR if CHIEF in groups else CHIEF
    busy = {
        worker or chief: [device for device in members if device.kind != "cpu"] or members
        for worker, members in groups.items()
    }
    max_devices, name = max(len(members) for members in busy.values()), max(len(worker) for worker in busy)

    def make_cell(worker: str, *, memory: bool) -> Content:
        return worker_cell(f"{worker:<{name}}", [meters.get(device.id) for device in busy[worker]], memory=memory)

    by_worker: list[_CellFormat] = [
        (name + 1 + max_devices + 4 + 6 * memory, [partial(make_cell, worker, memory=memory) for worker in busy])
        for memory in (True, False)
    ]
    return _in_columns([*_cell_formats(devices, meters, ids), *by_worker], width, height)


def _worker(device: Device) -> str:
    """The worker in the id of a device of another machine."""
    return device.id.rpartition(" ")[0]


_CellFormat = tuple[int, Sequence[Callable[[], Content]]]
"""A format of all devices: the width of a cell, and a function per device."""


def _cell_formats(devices: Sequence[Device], meters: Mapping[str, Meter], ids: int) -> list[_CellFormat]:
    return [
        (cells + ids - ID_WIDTH, [partial(make, device, meters.get(device.id), ids) for device in devices])
        for cells, make in CELLS
    ]


def _in_columns(formats: Sequence[_CellFormat], width: int, height: int) -> Iterator[Content]:
    """Cells in columns, in the first format that fits; else as many as fit in the last one."""
    height = max(height, 1)
    cells, makers = next(
        (cell_format for cell_format in formats if _columns(width, cell_format[0]) * height >= len(cell_format[1])),
        formats[-1],
    )
    columns = _columns(width, cells)
    shown = makers[: columns * height]
    left = len(makers) - len(shown)
    made = [make().truncate(cells, ellipsis=True, pad=True) for make in shown]
    if left:
        made[-1] = Content.styled(f"{left + 1} more", "$text-warning")
    for first in range(0, len(made), columns):
        yield Content(" " * _GAP).join(made[first : first + columns]).truncate(width)


def _columns(width: int, cells: int) -> int:
    return max(1, (width + _GAP) // (cells + _GAP))
