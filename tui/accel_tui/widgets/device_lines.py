"""Formats a device as a line, a cell, or a second line."""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from textual.content import Content

from accel_engine.devices.device_types import Device, Reading
from accel_engine.words import numbers
from accel_tui.formatting.text import sparkline
from accel_tui.run_state.device_meter import Meter

ID_WIDTH = 6
"""Width of a device id on this machine."""


_MISSING = "—"
_BAR = "━"
_REST = "─"

_SHORTEST_HISTORY, _HISTORY, _LONGEST_HISTORY = 6, 24, 60
"""Width of the utilization history: minimum, minimum before details are added, and maximum."""

_ESSENTIAL = ("utilization", "memory_used", "temperature", "power", "load")
"""Metrics whose absence is explained in the line."""

_INDENT = " " * 7

_NORMAL_THROTTLING = ("power limit", "clocks set by an administrator")
"""Throttle reasons of a healthy GPU, which are not warnings."""


def device_line(
    device: Device, meter: Meter | None, width: int, names: int, *, ids: int = ID_WIDTH, detailed: bool = False
) -> Content:
    """A device in a line of at most ``width`` cells.

    Args:
        device: The device.
        meter: Its latest metrics.
        width: In cells; what does not fit is left out, the least important first.
        names: Width of the device's name.
        ids: Width of its id.
        detailed: Whether :func:`detail` follows in a second line.
    """
    prefix = Content.assemble(
        (f"{device.id:<{ids}}", "$accent"),
        " ",
        Content(short_device_name(device)).truncate(names, ellipsis=True, pad=True),
    )
    if meter is None or not meter.utilizations:
        return Content.assemble(prefix, "  ", _without_readings(meter))
    bar = 6 if width < 100 else 12 if width < 160 else 20
    content = Content.assemble(prefix, "  ", _use(meter, bar), "  ", _memory(meter))
    for extra in _extras(meter, width):
        if content.cell_length + extra.cell_length <= width:
            content += extra
    words = [text for text in (_throttling(meter, width), _reasons(meter)) if text]
    available = width - content.cell_length - sum(text.cell_length + 2 for text in words)
    for addition in () if detailed else (_cores(meter, available - _HISTORY - 2), *_details(meter)):
        if addition and available - addition.cell_length - 2 >= _HISTORY:
            content = Content.assemble(content, "  ", addition)
            available -= addition.cell_length + 2
    for text in words:  # last, so that the metrics of all devices are aligned
        content = Content.assemble(content, "  ", text)
    history_width = min(available - 2, _LONGEST_HISTORY)
    if not detailed and history_width >= _SHORTEST_HISTORY:
        content = _with_history(content, _scaled_history(meter, history_width, 1)[0], width)
    return content.truncate(width, ellipsis=True)


def two_lines(device: Device, meter: Meter | None, width: int, names: int, *, ids: int) -> tuple[Content, Content]:
    """A device in two lines, with the history of its utilization across both.

    Args:
        device: The device.
        meter: Its latest metrics.
        width: In cells.
        names: Width of the device's name.
        ids: Width of its id.
    """
    upper = device_line(device, meter, width, names, ids=ids, detailed=True)
    lower = detail(meter, width)
    room = min(width - max(upper.cell_length, lower.cell_length) - 2, _LONGEST_HISTORY)
    if meter is None or not meter.utilizations or room < _SHORTEST_HISTORY:
        return upper, lower
    above, below = _scaled_history(meter, room, 2)
    return _with_history(upper, above, width), _with_history(lower, below, width)


def _scaled_history(meter: Meter, room: int, rows: int) -> list[Content]:
    """The history of the utilization, with what its height means before the oldest."""
    labels = ("use ",) if rows == 1 else ("100% ", "0% ")
    columns = max(min(len(meter.utilizations), room - len(labels[0])), 1)
    drawn = history(meter.utilizations, columns, rows)
    return [Content.assemble((label, "$text-disabled"), row) for label, row in zip(labels, drawn, strict=True)]


def _with_history(content: Content, drawn: Content, width: int) -> Content:
    """A line with a history at the right edge, so that all histories are aligned."""
    return Content.assemble(content.pad_right(width - drawn.cell_length - content.cell_length), drawn)


def history(loads: Sequence[float | None], columns: int, rows: int = 1) -> list[Content]:
    """Draw the latest loads as a dark area whose colour goes from green to red, the newest at the right.

    It is dark, since a device that is in use is no failure.

    Args:
        loads: In %, oldest first; ``None`` or NaN if missing.
        columns: Width in cells, one per load.
        rows: Height in cells.

    Returns:
        The rows from the top.
    """
    latest = [None if load is None or math.isnan(load) else min(max(load, 0.0), 100.0) for load in loads[-columns:]]
    drawn = []
    for row in reversed(range(rows)):
        content = Content(" " * (columns - len(latest)))
        cells = (
            (_block_of(load, row, rows), f"{_load_colour(load)}-area" if load else _load_colour(load))
            for load in latest
        )
        for style, same in groupby(cells, lambda cell: cell[1]):
            content += Content.styled("".join(block for block, _ in same), style)
        drawn.append(content)
    return drawn


def _load_colour(load: float | None) -> str:
    return "" if load is None else f"$load-{min(max(int(load // 20), 0), 4)}"


def _block_of(load: float | None, row: int, rows: int) -> str:
    """The part of a load in a row, counted from the bottom; the lowest load is seen, too."""
    if load is None:
        return " "
    eighths = max(round(8 * rows * load / 100), 1)
    return " ▁▂▃▄▅▆▇█"[min(max(eighths - 8 * row, 0), 8)]


def cell(device: Device, meter: Meter | None, ids: int = ID_WIDTH) -> Content:
    """A device in 38 cells: utilization, memory, temperature, power."""
    prefix = (f"{device.id:<{ids}}", "$accent")
    if meter is None or _has_no_readings(meter):
        return Content.assemble(prefix, " ", _without_readings(meter))
    temperature, power = (
        _plain(meter, name, format_string) for name, format_string in (("temperature", "{:.0f}°"), ("power", "{:.0f}W"))
    )
    return Content.assemble(
        prefix, " ", _use(meter, 4), " ", _amounts(meter), _warning(meter), f"{temperature:>4} {power:>4}"
    )


def small_cell(device: Device, meter: Meter | None, ids: int = ID_WIDTH) -> Content:
    """A device in 18 cells: utilization and memory."""
    prefix = (f"{device.id:<{ids - 1}}", "$accent")
    if meter is None or _has_no_readings(meter):
        return Content.assemble(prefix, " ", _without_readings(meter))
    use = meter.reading("utilization")
    return Content.assemble(
        prefix, _warning(meter), *_block(use), f" {_plain(meter, 'memory_used', '', numbers.short_size):>5}"
    )


def smallest_cell(device: Device, meter: Meter | None, ids: int = ID_WIDTH) -> Content:
    """A device in 11 cells: utilization."""
    use = meter.reading("utilization") if meter else Reading(None)
    return Content.assemble((f"{device.id:<{ids}}", "$accent"), *_block(use))


CELLS: tuple[tuple[int, Callable[[Device, Meter | None, int], Content]], ...] = (
    (38, cell),
    (18, small_cell),
    (11, smallest_cell),
)
"""Cell formats, the most detailed first: the width with an id of :data:`ID_WIDTH` cells, and the function."""


def worker_cell(name: str, meters: Sequence[Meter | None], *, memory: bool) -> Content:
    """A worker's devices in a cell: a block per device, mean utilization, and total memory."""
    loads = [meter.reading("utilization").value if meter else None for meter in meters]
    known = [load for load in loads if load is not None]
    mean = Reading(sum(known) / len(known), "%") if known else Reading(None)
    content = Content.assemble((name, "$accent"), " ", (sparkline(loads, len(loads)), "$accent"), _percent(mean))
    if not memory:
        return content
    used = [meter.reading("memory_used").value if meter else None for meter in meters]
    total = numbers.short_size(sum(amount for amount in used if amount)) if any(used) else _MISSING
    return Content.assemble(content, f" {total:>5}")


def detail(meter: Meter | None, width: int) -> Content:
    """Further metrics of a device, in a second line."""
    if meter is None:
        return Content("")
    parts = _details(meter)
    cores = _cores(meter, width - len(f"{_INDENT}cores ") - sum(part.cell_length + 3 for part in parts))
    if cores:
        parts.insert(0, cores)
    return Content.assemble(_INDENT, Content("   ").join(parts)).truncate(width, ellipsis=True)


def short_device_name(device: Device) -> str:
    """A device's name without its well-known vendor."""
    return device.name.removeprefix("NVIDIA ")


def _details(meter: Meter) -> list[Content]:
    return _host_details(meter) if "load" in meter.sample.readings else _accelerator_details(meter)


def _host_details(meter: Meter) -> list[Content]:
    parts = []
    if "engine_memory" in meter.sample.readings:
        cpu, memory = _plain(meter, "engine_cpu", "{:.0f}%"), _plain(meter, "engine_memory", "", numbers.short_size)
        parts.append(_labelled("engine", f"{cpu} {memory}"))
    if meter.reading("swap_total").value:
        used, total = (_plain(meter, name, "", numbers.short_size) for name in ("swap_used", "swap_total"))
        parts.append(_labelled("swap", f"{used}/{total}"))
    parts += _both(meter, "disk", ("disk_read", "disk_written"), "rw")
    return parts + _both(meter, "net", ("network_received", "network_sent"), "↓↑")


def _accelerator_details(meter: Meter) -> list[Content]:
    parts = []
    if meter.reading("allocated").value is not None:
        now, peak = (_plain(meter, name, "", numbers.short_size) for name in ("allocated", "allocated_peak"))
        parts.append(_labelled("allocated", f"{now}, peak {peak}"))
    clocks = [meter.reading(name).value for name in ("clock_sm", "clock_memory")]
    if clocks[0] is not None:
        text = "/".join(f"{clock:.0f}" for clock in clocks if clock is not None)
        parts.append(_labelled("clocks", f"{text} MHz"))
    generation, lanes = meter.reading("pcie_generation").value, meter.reading("pcie_width").value
    if generation is not None and lanes is not None:
        parts.append(_labelled("PCIe", f"{generation:.0f}x{lanes:.0f}"))
    parts += _both(meter, "bus", ("pcie_received", "pcie_sent"), "↓↑")
    fan = meter.reading("fan").value
    if fan is not None:
        parts.append(_labelled("fan", f"{fan:.0f}%"))
    errors = [(name, meter.reading(f"ecc_{name}").value) for name in ("corrected", "uncorrected")]
    if any(count for _, count in errors):
        text = ", ".join(f"{count:.0f} {name}" for name, count in errors if count)
        style = "$text-error" if errors[1][1] else ""
        parts.append(Content.assemble(("ECC ", "$text-muted"), (text, style)))
    for name in ("processes", "instances"):
        for part in meter.reading(name).items:
            memory = "" if part.memory is None else f" {numbers.short_size(part.memory)}"
            total = "" if part.total is None else f"/{numbers.short_size(part.total)}"
            parts.append(
                Content.assemble(
                    part.name, (f" {part.id}" if name == "processes" else "", "$text-muted"), memory + total
                )
            )
    return parts


def _both(meter: Meter, label: str, names: tuple[str, str], marks: str) -> list[Content]:
    """Two rates, if either is known."""
    if all(meter.reading(name).value is None for name in names):
        return []
    rates = (f"{mark} {_plain(meter, name, '', numbers.short_size)}/s" for name, mark in zip(names, marks, strict=True))
    return [_labelled(label, " ".join(rates))]


def _labelled(label: str, value: str) -> Content:
    return Content.assemble((f"{label} " if label else "", "$text-muted"), value)


def _use(meter: Meter, cells: int) -> Content:
    reading = meter.reading("utilization")
    filled = 0 if reading.value is None else round(cells * min(max(reading.value, 0.0), 100.0) / 100)
    return Content.assemble(
        (_BAR * filled, "$accent"),
        (_REST * (cells - filled), "$foreground 15%"),
        (f" {_percent(reading)}", _load_colour(reading.value)),
    )


def _block(use: Reading) -> tuple[tuple[str, str], str]:
    return (sparkline((use.value,), 1), "$accent"), _percent(use)


def _percent(reading: Reading) -> str:
    return f"{f'{reading.value:.0f}%' if reading.value is not None else _MISSING:>4}"


def _amounts(meter: Meter) -> str:
    used, total = (_plain(meter, name, "", numbers.short_size) for name in ("memory_used", "memory_total"))
    return f"{f'{used}/{total}':<11}"


def _memory(meter: Meter) -> Content:
    word = "HBM" if meter.sample.device.startswith("tpu:") else "mem"
    return Content.assemble((f"{word} ", "$text-muted"), _amounts(meter))


def _plain(meter: Meter, name: str, format_string: str, formatter: Callable[[float], str] | None = None) -> str:
    value = meter.reading(name).value
    if value is None:
        return _MISSING
    return formatter(value) if formatter else format_string.format(value)


def _extras(meter: Meter, width: int) -> Iterable[Content]:
    readings = meter.sample.readings
    if "temperature" in readings:
        yield Content(f"  {_plain(meter, 'temperature', '{:.0f}°C'):>4}")
    if "power" in readings:
        limit = meter.reading("power_limit").value if width >= 100 else None
        yield Content(f"  {_plain(meter, 'power', '{:.0f}'):>3}{'' if limit is None else f'/{limit:.0f}'}W")
    if "load" in readings:
        yield Content.assemble(("  load ", "$text-muted"), _plain(meter, "load", "{:.1f}"))


def _throttle_reasons(meter: Meter, *, include_normal: bool = True) -> list[str]:
    """The throttle reasons of a device."""
    return [
        part.name for part in meter.reading("throttling").items if include_normal or part.name not in _NORMAL_THROTTLING
    ]


def _throttling(meter: Meter, width: int) -> Content:
    words = _throttle_reasons(meter)
    if not words:
        return Content("")
    abnormal = _throttle_reasons(meter, include_normal=False)
    return Content.styled(
        f"{'▼' if width < 100 else 'throttled:'} {', '.join(abnormal or words)}",
        "$text-warning" if abnormal else "$text-muted",
    )


def _warning(meter: Meter) -> tuple[str, str]:
    """A mark of a device that is throttled abnormally."""
    return ("!" if _throttle_reasons(meter, include_normal=False) else " "), "$text-warning"


def _without_readings(meter: Meter | None) -> Content:
    """In place of readings: that they are awaited, or why there are none."""
    return Content.styled("reading…", "$text-muted") if meter is None else _reasons(meter)


def _has_no_readings(meter: Meter) -> bool:
    return all(meter.reading(name).value is None for name in ("utilization", "memory_used"))


def _reasons(meter: Meter) -> Content:
    missing = (meter.sample.readings.get(name) for name in _ESSENTIAL)
    reasons = dict.fromkeys(reading.reason for reading in missing if reading and reading.value is None)
    return Content.styled("; ".join(reasons), "$text-disabled")


def _cores(meter: Meter, available: int) -> Content:
    """A block per CPU core; with too little room, the busiest of several cores."""
    loads = [reading.value for name, reading in meter.sample.readings.items() if name.startswith("core_")]
    if not loads or available < min(len(loads), 8):
        return Content("")
    group_size = -(-len(loads) // available)
    groups = (loads[first : first + group_size] for first in range(0, len(loads), group_size))
    busiest = [max((load for load in group if load is not None), default=None) for group in groups]
    return Content.assemble(("cores ", "$text-muted"), (sparkline(busiest, len(busiest)), "$accent 70%"))
