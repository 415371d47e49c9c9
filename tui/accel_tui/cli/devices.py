"""``accel-tui devices``: shows the devices of this machine and their metrics."""

import queue
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import click
from rich.text import Text

from accel_engine.devices import Sampler
from accel_engine.devices.device_types import CountedItem, Device, Inventory, Reading, Sample
from accel_engine.words import numbers
from accel_tui.cli.live import LiveArea, is_live
from accel_tui.cli.output import json_option, table, terminal_columns, write, write_json

EPILOG = """\b
Examples:
  accel-tui devices                   show devices and current metrics
  accel-tui devices --watch           update every second until Ctrl-C
  accel-tui devices --json            all metrics, one device per line
  accel-tui devices --watch --json    one sample of a device per line
"""

EXPLAINED = ("utilization", "memory_used", "memory_total", "temperature", "power")
"""The readings whose absence is explained below the table."""

WIDE = 100
"""The width of a terminal from which the table includes clocks and fans."""

TIMEOUT = 3.0
"""Seconds to wait for readings before showing the devices without them."""

SLOW_DEVICE_TIMEOUT = 1.0
"""Seconds to wait longer for a device without any reading."""


@click.command(epilog=EPILOG)
@json_option
@click.option("--watch", "watching", is_flag=True, help="Update every second until Ctrl-C.")
def devices(as_json: bool, watching: bool) -> None:
    """Show the devices of this machine and their utilization, or why a kind of device is missing.

    TensorFlow is not needed: the readings come from the operating system and the device drivers.
    """
    batches: queue.SimpleQueue[tuple[Sample, ...]] = queue.SimpleQueue()
    sampler = Sampler(batches.put, interval=1.0 if watching else 0.25)
    sampler.start()
    try:
        if watching:
            _watch(sampler.inventory, batches, as_json=as_json)
        else:
            _show(sampler.inventory, _latest(batches), as_json=as_json)
    finally:
        sampler.stop()


def _show(inventory: Inventory, samples: Sequence[Sample], *, as_json: bool) -> None:
    if not as_json:
        write(_render(inventory, samples))
        return
    readings = {sample.device: sample for sample in samples}
    for device in inventory.devices:
        line = {"id": device.id, "kind": device.kind, "name": device.name, "memory": device.memory}
        line |= {"cores": device.cores, "address": device.address}
        sample = readings.get(device.id)
        write_json(line | {"readings": _readings_to_json(sample) if sample else {}})
    for absence in inventory.unavailable:
        write_json({"id": None, "kind": absence.kind, "problem": absence.reason})


def _watch(inventory: Inventory, batches: "queue.SimpleQueue[tuple[Sample, ...]]", *, as_json: bool) -> None:
    live = LiveArea(sys.stdout) if is_live(sys.stdout) and not as_json else None
    for samples in _stream(batches):
        if as_json:
            for sample in samples:
                line = {"event": "sample", "time": sample.time, "device": sample.device}
                write_json(line | {"readings": _readings_to_json(sample)})
        else:
            text = _render(inventory, samples)
            if live:
                live.show(Text(_fit_to_terminal(text), no_wrap=True))
            else:
                write(text)
    if live:
        live.leave()


def _fit_to_terminal(text: str) -> str:
    """Cut a text to the height of the terminal, with the number of omitted lines."""
    width, height = shutil.get_terminal_size((80, 24))
    wrapped = (textwrap.wrap(line, width - 3, subsequent_indent="  ") or [""] for line in text.splitlines())
    lines = [row for rows in wrapped for row in rows]
    available = height - 1
    if len(lines) <= available:
        return "\n".join(lines)
    return "\n".join([*lines[: available - 1], f"\N{HORIZONTAL ELLIPSIS} {len(lines) - available + 1} more lines"])


def _stream(batches: "queue.SimpleQueue[tuple[Sample, ...]]") -> Iterator[tuple[Sample, ...]]:
    """Yield batches of samples until Ctrl-C."""
    try:
        while True:
            yield batches.get()
    except KeyboardInterrupt:
        return


def _latest(batches: "queue.SimpleQueue[tuple[Sample, ...]]") -> tuple[Sample, ...]:
    """Return each device's newest sample with a reading, from the second batch on, as utilization needs two."""
    newest: dict[str, Sample] = {}
    later: dict[str, Sample] = {}
    with suppress(queue.Empty):
        _keep_readings(newest, batches.get(timeout=TIMEOUT))
        _keep_readings(later, batches.get(timeout=TIMEOUT))
        deadline = time.monotonic() + SLOW_DEVICE_TIMEOUT
        while not all(map(_has_reading, later.values())):
            _keep_readings(later, batches.get(timeout=max(deadline - time.monotonic(), 0.0)))
    _keep_readings(newest, [*later.values()])
    return tuple(newest.values())


def _keep_readings(newest: dict[str, Sample], samples: Sequence[Sample]) -> None:
    for sample in samples:
        if _has_reading(sample) or not _has_reading(newest.get(sample.device, sample)):
            newest[sample.device] = sample


def _has_reading(sample: Sample) -> bool:
    return any(map(_has_value, sample.readings.values()))


def _render(inventory: Inventory, samples: Sequence[Sample]) -> str:
    readings = {sample.device: sample.readings for sample in samples}
    wide = terminal_columns() >= WIDE
    extra = _with_values(_EXTRA, readings) if wide else {}
    rows = [_row(device, readings.get(device.id, {}), extra) for device in inventory.devices]
    header = ("DEVICE", "USE", "MEMORY", "TEMP", "POWER", *extra, "NAME")
    paragraphs = [
        [table(header, rows)],
        _host_lines(readings),
        _accelerator_lines(readings) + _process_lines(readings),
        [f"no {absence.kind.upper()}: {absence.reason}" for absence in inventory.unavailable] + _missing_lines(samples),
    ]
    return "\n\n".join("\n".join(lines) for lines in paragraphs if lines)


_EXTRA = {"CLOCK": "clock_sm", "FAN": "fan"}


def _with_values(columns: Mapping[str, str], readings: Mapping[str, Mapping[str, Reading]]) -> Mapping[str, str]:
    """The columns with a value in at least one row."""
    return {
        title: name
        for title, name in columns.items()
        if any(_has_value(known.get(name)) for known in readings.values())
    }


def _row(device: Device, known: Mapping[str, Reading], extra: Mapping[str, str]) -> tuple[str, ...]:
    limit = known.get("power_limit")
    power = _format(known.get("power"))
    if _has_value(known.get("power")) and limit and limit.value is not None:
        power = f"{power.removesuffix(' W')} / {limit.value:.0f} W"
    return (
        device.id,
        _format(known.get("utilization")),
        _memory(known.get("memory_used"), known.get("memory_total"), device.memory),
        _format(known.get("temperature")),
        power,
        *(_format(known.get(name)) for name in extra.values()),
        f"{device.name}, {numbers.counted(device.cores, 'core')}" if device.cores else device.name,
    )


def _host_lines(readings: Mapping[str, Mapping[str, Reading]]) -> list[str]:
    """Lines on swap, disk and network, where there are readings."""
    known = readings.get("cpu:0", {})
    swap_used, swap_total = known.get("swap_used"), known.get("swap_total")
    lines = [f"swap: {_memory(swap_used, swap_total, None)}"] if swap_total and swap_total.value else []
    for what, names in (
        ("disk", {"disk_read": "read", "disk_written": "written"}),
        ("network", {"network_received": "received", "network_sent": "sent"}),
    ):
        rates = [f"{_format(known[name])} {word}" for name, word in names.items() if _has_value(known.get(name))]
        lines += [f"{what}: {', '.join(rates)}"] if rates else []
    return ["   ".join(lines)] if lines else []


def _accelerator_lines(readings: Mapping[str, Mapping[str, Reading]]) -> list[str]:
    """Lines on throttling, memory errors and MIG instances; equal lines of several devices are joined."""
    devices: dict[str, list[str]] = {}
    for device, known in readings.items():
        throttling = ", ".join(part.name for part in _parts(known, "throttling"))
        lines = [f"throttled: {throttling}"] if throttling else []
        for name, word in (("ecc_corrected", "corrected"), ("ecc_uncorrected", "uncorrected")):
            errors = known.get(name)
            if errors and errors.value:
                lines.append(f"{errors.value:.0f} {word} memory {numbers.plural(errors.value, 'error')}")
        lines += [f"{part.name}, {_part_memory(part)}, {part.id}" for part in _parts(known, "instances")]
        for each in lines:
            devices.setdefault(each, []).append(device)
    return [f"{', '.join(having)}: {lines}" for lines, having in devices.items()]


def _process_lines(readings: Mapping[str, Mapping[str, Reading]]) -> list[str]:
    """Lines on the processes that use the devices, with their memory."""
    uses: dict[tuple[str, str], list[str]] = {}
    for device, known in readings.items():
        for part in _parts(known, "processes"):
            memory = "" if part.memory is None else f" {numbers.size(part.memory)}"
            uses.setdefault((part.id, part.name), []).append(device + memory)
    return [f"process {pid} {name}: {', '.join(having)}" for (pid, name), having in uses.items()]


def _missing_lines(samples: Sequence[Sample]) -> list[str]:
    """Lines on missing readings, one per reason."""
    missing: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for sample in samples:
        for name, reading in sample.readings.items():
            if name in EXPLAINED and reading.value is None and reading.reason:
                devices, names = missing.setdefault(reading.reason, ({}, {}))
                devices[sample.device] = names[name.replace("_", " ")] = None
    return [f"{', '.join(devices)}: no {', '.join(names)}: {reason}" for reason, (devices, names) in missing.items()]


def _has_value(reading: Reading | None) -> bool:
    return reading is not None and reading.value is not None


def _parts(known: Mapping[str, Reading], name: str) -> tuple[CountedItem, ...]:
    return known[name].items if name in known else ()


def _part_memory(part: CountedItem) -> str:
    used = "-" if part.memory is None else numbers.size(part.memory)
    return used if part.total is None else f"{used} / {numbers.size(part.total)}"


def _format(reading: Reading | None) -> str:
    """Format a reading; a dash if it is missing, which is explained below the table."""
    if reading is None or reading.value is None:
        return "-"
    if reading.unit == "B/s":
        return f"{numbers.size(reading.value)}/s"
    unit = {"C": "\N{DEGREE SIGN}C"}.get(reading.unit, reading.unit)
    return f"{reading.value:.0f}{unit if unit == '%' else f' {unit}'}".rstrip()


def _memory(used: Reading | None, total: Reading | None, size: int | None) -> str:
    whole = total.value if total and total.value is not None else size
    if whole is None:
        return "-"
    part = None if used is None else used.value
    return f"- / {numbers.size(whole)}" if part is None else numbers.size_of(part, whole)


def _readings_to_json(sample: Sample) -> dict[str, dict[str, Any]]:
    return {name: _reading_to_json(reading) for name, reading in sample.readings.items()}


def _reading_to_json(reading: Reading) -> dict[str, Any]:
    line: dict[str, Any] = {"value": reading.value, "unit": reading.unit}
    if reading.value is None:
        line["reason"] = reading.reason
    if reading.items:
        line["parts"] = [{key: known for key, known in asdict(part).items() if known} for part in reading.items]
    return line
