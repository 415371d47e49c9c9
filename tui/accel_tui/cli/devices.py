"""``accel-tui devices``: what hardware is here, and how busy it is."""

import json
import queue
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import click

from accel_engine.devices import Sampler
from accel_engine.devices.reading import Inventory, Reading, Sample
from accel_tui.cli.table import table

EPILOG = """\b
Examples:
  accel-tui devices                   what is here, and how busy it is now
  accel-tui devices --watch           the same, every second, until Ctrl-C
  accel-tui devices --watch --json    a sample of a device a line
"""

HEADER = ("DEVICE", "USE", "MEMORY", "TEMP", "POWER", "NAME")

SHOWN = ("utilization", "memory_used", "memory_total", "temperature", "power")
"""The readings that the table has a place for."""

PATIENCE = 3.0
"""Seconds to wait for readings, before showing what is here without them."""

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
        click.echo(_render(inventory, samples))
        return
    readings = {sample.device: sample for sample in samples}
    for device in inventory.devices:
        known = {"id": device.id, "kind": device.kind, "name": device.name, "memory": device.memory}
        known |= {"cores": device.cores, "address": device.address}
        sample = readings.get(device.id)
        click.echo(json.dumps(known | {"readings": _wire_readings(sample) if sample else {}}))
    for absence in inventory.absences:
        click.echo(json.dumps({"id": None, "kind": absence.kind, "problem": absence.reason}))


def _watch(inventory: Inventory, batches: "queue.SimpleQueue[tuple[Sample, ...]]", *, as_json: bool) -> None:
    in_place = sys.stdout.isatty() and not as_json
    for samples in _forever(batches):
        if as_json:
            for sample in samples:
                line = {"event": "sample", "time": sample.time, "device": sample.device}
                click.echo(json.dumps(line | {"readings": _wire_readings(sample)}))
        else:
            click.echo((HOME_AND_CLEAR if in_place else "") + _render(inventory, samples))


def _forever(batches: "queue.SimpleQueue[tuple[Sample, ...]]") -> Iterator[tuple[Sample, ...]]:
    """The batches as they come, until Ctrl-C."""
    try:
        while True:
            yield batches.get()
    except KeyboardInterrupt:
        return


def _latest(batches: "queue.SimpleQueue[tuple[Sample, ...]]") -> tuple[Sample, ...]:
    """The second batch: use is measured between two readings."""
    samples: tuple[Sample, ...] = ()
    try:
        for _ in range(2):
            samples = batches.get(timeout=PATIENCE)
    except queue.Empty:
        pass
    return samples


def _render(inventory: Inventory, samples: Sequence[Sample]) -> str:
    readings = {sample.device: sample.readings for sample in samples}
    rows = []
    for device in inventory.devices:
        known = readings.get(device.id, {})
        rows.append(
            (
                device.id,
                _text(known.get("utilization")),
                _memory(known.get("memory_used"), known.get("memory_total"), device.memory),
                _text(known.get("temperature")),
                _text(known.get("power")),
                f"{device.name}, {device.cores} cores" if device.cores else device.name,
            )
        )
    absences = [f"no {absence.kind.upper()}: {absence.reason}" for absence in inventory.absences]
    reasons = _reasons(samples)
    return "\n".join([table(HEADER, rows), *([""] if absences or reasons else []), *absences, *reasons])


def _reasons(samples: Sequence[Sample]) -> list[str]:
    """Why there are no values, a line for all devices and readings that lack them for one reason."""
    lacking: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for sample in samples:
        for name, reading in sample.readings.items():
            if name in SHOWN and reading.value is None and reading.reason:
                devices, names = lacking.setdefault(reading.reason, ({}, {}))
                devices[sample.device] = names[name.replace("_", " ")] = None
    return [f"{', '.join(devices)}: no {', '.join(names)}: {reason}" for reason, (devices, names) in lacking.items()]


def _text(reading: Reading | None) -> str:
    """A reading in a cell; a dash where there is none, whose reason is told below the table."""
    if reading is None or reading.value is None:
        return "-"
    unit = {"C": "\N{DEGREE SIGN}C"}.get(reading.unit, reading.unit)
    return f"{reading.value:.0f}{unit if unit == '%' else f' {unit}'}".rstrip()


def _memory(used: Reading | None, total: Reading | None, size: int | None) -> str:
    whole = total.value if total and total.value is not None else size
    if whole is None:
        return "-"
    part = "-" if used is None or used.value is None else f"{used.value / 2**30:.1f}"
    return f"{part} / {whole / 2**30:.1f} GiB"


def _wire_readings(sample: Sample) -> dict[str, dict[str, Any]]:
    return {
        name: {"value": reading.value, "unit": reading.unit}
        | ({"reason": reading.reason} if reading.value is None else {})
        for name, reading in sample.readings.items()
    }
