"""A run that ``train --on HOST`` or ``continue`` gives to a host: started there, and shown as if it were here."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from accel_engine.devices.device_types import Device
from accel_engine.errors import UsageError
from accel_engine.hosts.carried_files import THERE
from accel_engine.hosts.host_list import find_host
from accel_engine.hosts.reading import HostReader, HostReading
from accel_engine.hosts.runs_there import choose_host, continue_there, live_runs, start
from accel_engine.places import ANY, PlaceName, PlaceRequest
from accel_engine.plan import PATH_FIELDS, Plan
from accel_engine.plan.plan_file import PlanFile, read_plan_file
from accel_engine.run import RunReader, find_run
from accel_engine.run.directory.run_paths import host_of_run
from accel_tui.cli.chosen_plan import with_chosen_plan
from accel_tui.cli.follow_run import Interrupts, follow_run, view_for
from accel_tui.cli.output import print_to_stderr, write
from accel_tui.settings.user_settings import load_settings


def train_on_host(
    place: tuple[PlaceName, PlaceRequest] | None,
    run: str | None,
    plan_file: Path | None,
    fields: Mapping[str, Any],
    *,
    queued: bool,
    as_json: bool,
    plain: bool,
    detach: bool,
) -> int:
    """Train a plan on a host, or continue a run there, and show it until it ends.

    Args:
        place: The host, and what is asked of clusters only; ``None`` for the host of the run.
        run: The run to continue; ``None`` for a new one.
        plan_file: The plan of a new run; ``None`` for the settings alone.
        fields: Plan fields that are given as options.
        queued: Whether it waits in the queue there.
        as_json: Whether to print JSON lines.
        plain: Whether to print log lines on a terminal too.
        detach: Whether to print the run's id and return.

    Returns:
        The exit status.
    """
    if place and place[1] != PlaceRequest():
        raise click.UsageError(f"{place[0]} is no cluster: --nodes, --gpus and so on are for places such as slurm")
    if run is not None:
        directory, warnings = continue_there(_of_host(run, place), fields, queued=queued)
    else:
        reading = _chosen(place[0].detail if place else ANY)
        busy = place is not None and place[0].detail == ANY and live_runs(reading) > 0
        directory, warnings = _start(reading, read_plan_file(plan_file) if plan_file else None, fields, queued or busy)
    for warning in warnings:
        print_to_stderr(warning)
    if detach or queued:
        write(f"{host_of_run(directory)}:{directory.name}")
        return 0
    with closing(RunReader(directory)) as reader, Interrupts() as interrupts:
        if run is not None:
            reader.skip()  # what earlier engines did was shown before
        return follow_run(reader, view_for(sys.stdout, as_json=as_json, plain=plain), interrupts)


def _of_host(run: str, place: tuple[PlaceName, PlaceRequest] | None) -> Path:
    directory = find_run(run)
    host = host_of_run(directory)
    if not host:
        raise UsageError(f"run {directory.name} is on this machine: continue it without --on")
    if place and place[0].detail != host:
        raise UsageError(f"run {directory.name} is on {host}, and is continued there: leave out --on")
    return directory


def _chosen(name: str) -> HostReading:
    """What is known of the host that the user has named, or of the one that ``any`` means.

    Raises:
        UsageError: It cannot be reached.
    """
    if name == ANY:
        reading = choose_host()
        print_to_stderr(f"trains on {reading.host}")
        return reading
    reading = HostReader(find_host(name)).read(HostReading(name))
    if reading.state != "connected":
        raise UsageError(reading.message)
    return reading


def _start(
    reading: HostReading, file: PlanFile | None, fields: Mapping[str, Any], queued: bool
) -> tuple[Path, Sequence[str]]:
    """Start a plan that is checked here with the devices there; what is named by its path there is checked there."""
    values = {**(file.values if file else {}), **fields}
    there = {name: value for name, value in values.items() if name in PATH_FIELDS and _is_there(value)}
    here = {name: value for name, value in fields.items() if name not in there}
    if file:
        file = PlanFile(file.path, {name: each for name, each in file.values.items() if name not in there}, file.lines)

    def use(plan: Plan, devices: Sequence[Device]) -> tuple[Path, Sequence[str]]:
        del devices
        return start(reading.host, plan.changed() | there, queued=queued)

    return with_chosen_plan(load_settings(), file, here, use, reading.devices)


def _is_there(value: object) -> bool:
    return isinstance(value, str) and value.startswith(THERE)
