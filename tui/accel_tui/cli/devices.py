"""``accel-tui devices``: what hardware is here, and how busy it is."""

import json
import queue
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click

from accel_engine.devices import Sampler
from accel_engine.devices.reading import CountedItem, Device, Inventory, Reading, Sample
from accel_tui.cli.output import write
from accel_tui.cli.table import table
from accel_tui.formatting import units

EPILOG = """\b
Examples:
  accel-tui devices                   what is here, and how busy it is now
  accel-tui devices --watch           the same, every second, until Ctrl-C
  accel-tui devices --json            everything that is read, a device a line
  accel-tui devices --watch --json    a sample of a device a line
"""

SHOWN = ("utilization", "memory_used", "memory_total", "temperature", "power")
"""The readings whose reasons, where there are none, are told below the table."""

WIDE = 100
"""Columns of a terminal from which clocks and fans are in the table too."""

PATIENCE = 3.0
"""Seconds to wait for readings, before showing what is here without them."""

GRACE = 1.0
"""Seconds to wait further for a device of which nothing at all is known yet."""

HOME_AND_CLEAR = "\x1b[H\x1b[J"


@click.command(epilog=EPILOG)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line on standard output.")
@click.option("--watch", "watching", is_flag=True, help="Go on until Ctrl-C, a reading of every device a second.")
def devices(as_json: bool, watching: bool) -> None:
    """Show the devices of this machine, how busy they are, and why kinds of them are not here.

    TensorFlow is not needed: the readings come from the system and from the devices' drivers.
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
        known = {"id": device.id, "kind": device.kind, "name": device.name, "memory": device.memory}
        known |= {"cores": device.cores, "address": device.address}
        sample = readings.get(device.id)
        write(json.dumps(known | {"readings": _wire_readings(sample) if sample else {}}))
    for absence in inventory.unavailable:
        write(json.dumps({"id": None, "kind": absence.kind, "problem": absence.reason}))


def _watch(inventory: Inventory, batches: "queue.SimpleQueue[tuple[Sample, ...]]", *, as_json: bool) -> None:
    in_place = sys.stdout.isatty() and not as_json
    for samples in _forever(batches):
        if as_json:
            for sample in samples:
                line = {"event": "sample", "time": sample.time, "device": sample.device}
                write(json.dumps(line | {"readings": _wire_readings(sample)}))
        else:
            text = _render(inventory, samples)
            write(_fitted(text) if in_place else text, control=HOME_AND_CLEAR * in_place)


def _fitted(text: str) -> str:
    """What there is room for in the terminal; how much there is no room for is said."""
    width, height = shutil.get_terminal_size((80, 24))
    lines = [row for line in text.splitlines() for row in textwrap.wrap(line, width, subsequent_indent="  ") or [""]]
    room = height - 1
    if len(lines) <= room:
        return "\n".join(lines)
    return "\n".join([*lines[: room - 1], f"\N{HORIZONTAL ELLIPSIS} {len(lines) - room + 1} more lines"])


def _forever(batches: "queue.SimpleQueue[tuple[Sample, ...]]") -> Iterator[tuple[Sample, ...]]:
    """The batches as they come, until Ctrl-C."""
    try:
        while True:
            yield batches.get()
    except KeyboardInterrupt:
        return


def _latest(batches: "queue.SimpleQueue[tuple[Sample, ...]]") -> tuple[Sample, ...]:
    """The second batch, since use is measured between two readings, or a later one with a word of every device."""
    samples: tuple[Sample, ...] = ()
    try:
        for _ in range(2):
            samples = batches.get(timeout=PATIENCE)
        until = time.monotonic() + GRACE
        while not all(any(_known(reading) for reading in sample.readings.values()) for sample in samples):
            samples = batches.get(timeout=max(until - time.monotonic(), 0.0))
    except queue.Empty:
        pass
    return samples


def _render(inventory: Inventory, samples: Sequence[Sample]) -> str:
    readings = {sample.device: sample.readings for sample in samples}
    wide = shutil.get_terminal_size((80, 24)).columns >= WIDE
    extra = _in_use(_EXTRA, readings) if wide else {}
    rows = [_row(device, readings.get(device.id, {}), extra) for device in inventory.devices]
    header = ("DEVICE", "USE", "MEMORY", "TEMP", "POWER", *extra, "NAME")
    paragraphs = [
        [table(header, rows)],
        _about_host(readings),
        _about_accelerators(readings) + _programs(readings),
        [f"no {absence.kind.upper()}: {absence.reason}" for absence in inventory.unavailable] + _reasons(samples),
    ]
    return "\n\n".join("\n".join(lines) for lines in paragraphs if lines)


_EXTRA = {"CLOCK": "clock_sm", "FAN": "fan"}


def _in_use(columns: Mapping[str, str], readings: Mapping[str, Mapping[str, Reading]]) -> Mapping[str, str]:
    """The columns that have a value in any row."""
    return {
        title: name for title, name in columns.items() if any(_known(known.get(name)) for known in readings.values())
    }


def _row(device: Device, known: Mapping[str, Reading], extra: Mapping[str, str]) -> tuple[str, ...]:
    limit = known.get("power_limit")
    power = _text(known.get("power"))
    if _known(known.get("power")) and limit and limit.value is not None:
        power = f"{power.removesuffix(' W')} / {limit.value:.0f} W"
    return (
        device.id,
        _text(known.get("utilization")),
        _memory(known.get("memory_used"), known.get("memory_total"), device.memory),
        _text(known.get("temperature")),
        power,
        *(_text(known.get(name)) for name in extra.values()),
        f"{device.name}, {device.cores} core{'s' * (device.cores > 1)}" if device.cores else device.name,
    )


def _about_host(readings: Mapping[str, Mapping[str, Reading]]) -> list[str]:
    """Swap, disks and networks, of whichever are known."""
    known = readings.get("cpu:0", {})
    swap_used, swap_total = known.get("swap_used"), known.get("swap_total")
    said = [f"swap: {_memory(swap_used, swap_total, None)}"] if swap_total and swap_total.value else []
    for what, names in (
        ("disk", {"disk_read": "read", "disk_written": "written"}),
        ("network", {"network_received": "received", "network_sent": "sent"}),
    ):
        rates = [f"{_text(known[name])} {word}" for name, word in names.items() if _known(known.get(name))]
        said += [f"{what}: {', '.join(rates)}"] if rates else []
    return ["   ".join(said)] if said else []


def _about_accelerators(readings: Mapping[str, Mapping[str, Reading]]) -> list[str]:
    """What happens seldom: slow clocks, memory errors, instances; each said once for all devices."""
    devices: dict[str, list[str]] = {}
    for device, known in readings.items():
        slowed = ", ".join(part.name for part in _parts(known, "throttling"))
        said = [f"slowed: {slowed}"] if slowed else []
        for name, word in (("ecc_corrected", "corrected"), ("ecc_uncorrected", "uncorrected")):
            errors = known.get(name)
            if errors and errors.value:
                said.append(f"{errors.value:.0f} {word} memory errors")
        said += [f"{part.name}, {_part_memory(part)}, {part.id}" for part in _parts(known, "instances")]
        for each in said:
            devices.setdefault(each, []).append(device)
    return [f"{', '.join(having)}: {said}" for said, having in devices.items()]


def _programs(readings: Mapping[str, Mapping[str, Reading]]) -> list[str]:
    """The programs on the devices, and what memory each has of which."""
    uses: dict[tuple[str, str], list[str]] = {}
    for device, known in readings.items():
        for part in _parts(known, "processes"):
            memory = "" if part.memory is None else f" {units.size(part.memory)}"
            uses.setdefault((part.id, part.name), []).append(device + memory)
    return [f"process {pid} {name}: {', '.join(having)}" for (pid, name), having in uses.items()]


def _reasons(samples: Sequence[Sample]) -> list[str]:
    """Why there are no values, a line for all devices and readings that lack them for one reason."""
    lacking: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for sample in samples:
        for name, reading in sample.readings.items():
            if name in SHOWN and reading.value is None and reading.reason:
                devices, names = lacking.setdefault(reading.reason, ({}, {}))
                devices[sample.device] = names[name.replace("_", " ")] = None
    return [f"{', '.join(devices)}: no {', '.join(names)}: {reason}" for reason, (devices, names) in lacking.items()]


def _known(reading: Reading | None) -> bool:
    return reading is not None and reading.value is not None


def _parts(known: Mapping[str, Reading], name: str) -> tuple[CountedItem, ...]:
    return known[name].items if name in known else ()


def _part_memory(part: CountedItem) -> str:
    used = "-" if part.memory is None else units.size(part.memory)
    return used if part.total is None else f"{used} / {units.size(part.total)}"


def _text(reading: Reading | None) -> str:
    """A reading in a cell; a dash where there is none, whose reason is told below the table."""
    if reading is None or reading.value is None:
        return "-"
    if reading.unit == "B/s":
        return f"{units.size(reading.value)}/s"
    unit = {"C": "\N{DEGREE SIGN}C"}.get(reading.unit, reading.unit)
    return f"{reading.value:.0f}{unit if unit == '%' else f' {unit}'}".rstrip()


def _memory(used: Reading | None, total: Reading | None, size: int | None) -> str:
    whole = total.value if total and total.value is not None else size
    if whole is None:
        return "-"
    part = "-" if used is None or used.value is None else f"{used.value / 2**30:.1f}"
    return f"{part} / {whole / 2**30:.1f} GiB"


def _wire_readings(sample: Sample) -> dict[str, dict[str, Any]]:
    return {name: _wire(reading) for name, reading in sample.readings.items()}


def _wire(reading: Reading) -> dict[str, Any]:
    said: dict[str, Any] = {"value": reading.value, "unit": reading.unit}
    if reading.value is None:
        said["reason"] = reading.reason
    if reading.items:
        said["parts"] = [{key: known for key, known in asdict(part).items() if known} for part in reading.items]
    return said
