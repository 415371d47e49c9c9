"""The machine's devices, a line each: what they are and how busy they are."""

from collections.abc import Mapping

from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.widget import Widget

from accel_engine.devices.reading import Device, Inventory, Reading
from accel_tui import units
from accel_tui.meter import Meter
from accel_tui.widgets.chart.mini import mini

_MISSING = "—"
_BAR = "━"


class DevicePanel(Widget):
    """Lines of devices with meters, then one line for each kind that is not here.

    What does not fit the width is left out, the least telling first. A value that could not be read
    is a dash; its reason stands at the end of the line, and in the tooltip.
    """

    DEFAULT_CSS = """
    DevicePanel {
        height: auto;
        padding: 0 1;
    }
    """

    inventory: reactive[Inventory | None] = reactive(None, layout=True)
    meters: reactive[Mapping[str, Meter]] = reactive(dict)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """A row for every line."""
        del container, viewport
        return len(lines(self.inventory, {}, width))

    def render(self) -> Content:
        """All lines, as wide as the widget."""
        return Content("\n").join(lines(self.inventory, self.meters, self.size.width))

    def watch_meters(self) -> None:
        """Explain in the tooltip what could not be read."""
        reasons = [
            f"{device} {name}: {reading.reason}"
            for device, meter in self.meters.items()
            for name, reading in meter.sample.readings.items()
            if reading.value is None
        ]
        self.tooltip = "\n".join(reasons) or None


def lines(inventory: Inventory | None, meters: Mapping[str, Meter], width: int) -> list[Content]:
    """The panel's text.

    Args:
        inventory: The devices; ``None`` while they are being looked for.
        meters: By device id; a device without one has not been read yet.
        width: In cells.
    """
    if inventory is None:
        return [Content.styled("looking for devices…", "$text-muted")]
    names = min(max((len(device.name) for device in inventory.devices), default=0), max(12, width // 4))
    rows = [device_line(device, meters.get(device.id), width, names) for device in inventory.devices]
    absences = [f"{absence.kind}  none: {absence.reason}" for absence in inventory.absences]
    together = "   ".join(absences)
    said = [together] if len(together) <= width else absences
    return rows + [Content.styled(text, "$text-disabled").truncate(width, ellipsis=True) for text in said if text]


def device_line(device: Device, meter: Meter | None, width: int, names: int) -> Content:
    """One device in a line of at most ``width`` cells.

    Args:
        device: The device.
        meter: What was last read of it.
        width: In cells.
        names: Cells for the device's name.
    """
    head = [
        Content.styled(f"{device.id:<6}", "$accent"),
        Content(" "),
        Content(device.name).truncate(names, ellipsis=True, pad=True),
    ]
    if meter is None:
        return Content.assemble(*head, "  ", ("reading…", "$text-muted"))
    bar = 8 if width < 100 else 12 if width < 160 else 20
    utilization = meter.reading("utilization")
    parts = [
        *head,
        Content("  "),
        _bar(utilization, bar),
        Content(f" {utilization.value:3.0f}%" if utilization.value is not None else f"   {_MISSING}"),
        Content("  "),
        _memory(meter),
    ]
    parts += [part for name, form in _EXTRAS.items() for part in _extra(meter, name, form)]
    line = Content("").join(parts)
    reasons = sorted({reading.reason for name, reading in meter.sample.readings.items() if _explains(name, reading)})
    room = width - line.cell_length - 2
    if reasons:
        return Content.assemble(line, "  ", ("; ".join(reasons), "$text-disabled")).truncate(width, ellipsis=True)
    cores = _cores(meter)
    if cores and room - len(cores) >= 24:
        line += Content.assemble("  ", (cores, "$accent 70%"))
        room -= len(cores) + 2
    if room >= 6:
        line += Content.assemble("  ", (mini(meter.history, min(room, 60)), "$accent 70%"))
    return line.truncate(width)


def _bar(reading: Reading, cells: int) -> Content:
    filled = 0 if reading.value is None else round(cells * min(max(reading.value, 0.0), 100.0) / 100)
    return Content.assemble((_BAR * filled, "$accent"), (_BAR * (cells - filled), "$foreground 15%"))


def _memory(meter: Meter) -> Content:
    used, total = meter.reading("memory_used").value, meter.reading("memory_total").value
    shown = (
        f"{units.size(used) if used is not None else _MISSING}/{units.size(total) if total is not None else _MISSING}"
    )
    return Content.assemble(("mem ", "$text-muted"), f"{shown:<11}")


_EXTRAS = {
    "temperature": ("", "{:.0f}°C"),
    "power": ("", "{:.0f}W"),
    "load": ("load ", "{:.1f}"),
}
"""What else is said of a device where it is read: a word before it, and its form."""


def _extra(meter: Meter, name: str, form: tuple[str, str]) -> list[Content]:
    if name not in meter.sample.readings:
        return []
    value = meter.reading(name).value
    word, shown = form
    return [Content.assemble(("  " + word, "$text-muted"), shown.format(value) if value is not None else _MISSING)]


def _explains(name: str, reading: Reading) -> bool:
    return reading.value is None and not name.startswith("core_")


def _cores(meter: Meter) -> str:
    loads = [reading.value for name, reading in meter.sample.readings.items() if name.startswith("core_")]
    return mini(loads, len(loads))
