"""A run that ``train --on HOST`` or ``continue`` gives to a host: started there, and shown as if it were here."""

import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from accel_engine.devices.device_types import Device
from accel_engine.errors import UsageError
from accel_engine.hosts.carried_files import THERE
from accel_engine.hosts.host_list import find_host
from accel_engine.hosts.reading import HostReader, HostReading
from accel_engine.hosts.runs_there import choose_host, command_there, continue_there, live_runs, start
from accel_engine.places import ANY, PlaceName, PlaceRequest
from accel_engine.plan import PATH_FIELDS, Plan
from accel_engine.plan.plan_file import PlanFile, read_plan_file
from accel_engine.run import RunReader, find_run
from accel_engine.run.directory.run_paths import host_of_run, run_name
from accel_engine.run_queue.queue_entries import PLAIN_REQUEST, QueueRequest
from accel_engine.text import printable
from accel_tui.cli.chosen_plan import with_chosen_plan
from accel_tui.cli.follow_run import Interrupts, follow_run, view_for
from accel_tui.cli.output import print_to_stderr, write
from accel_tui.cli.signals import signal_handlers
from accel_tui.settings.user_settings import load_settings

Result = TypeVar("Result")


def train_on_host(
    place: tuple[PlaceName, PlaceRequest] | None,
    run: str | None,
    plan_file: Path | None,
    fields: Mapping[str, Any],
    *,
    request: QueueRequest | None,
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
        request: Asked of the queue there; ``None`` to train now. ``after`` may have names of runs.
        as_json: Whether to print JSON lines.
        plain: Whether to print log lines on a terminal too.
        detach: Whether to print the run's id and return.

    Returns:
        The exit status.
    """
    if place:
        place[1].check_is_empty(place[0])
    if run is not None:
        directory = _of_host(run, place)
        asked = _request_there(request, host_of_run(directory))
        directory, warnings = continue_there(directory, fields, queued=request is not None, asked=asked)
    else:
        reading = chosen_host(place[0].detail if place else ANY)
        asked = _request_there(request, reading.host)
        queued = request is not None or (place is not None and place[0].detail == ANY and live_runs(reading) > 0)

        def begin(values: dict[str, Any]) -> tuple[Path, Sequence[str]]:
            return start(reading.host, values, queued=queued, asked=asked)

        directory, warnings = with_plan_there(reading, read_plan_file(plan_file) if plan_file else None, fields, begin)
    print_to_stderr(*warnings)
    if detach or request is not None:
        write(f"{host_of_run(directory)}:{directory.name}")
        return 0
    with closing(RunReader(directory)) as reader, Interrupts() as interrupts:
        if run is not None:
            reader.skip()  # what earlier engines did was shown before
        status = follow_run(reader, view_for(sys.stdout, as_json=as_json, plain=plain), interrupts)
    if not (status or as_json):
        print_to_stderr(f"the run is on {host_of_run(directory)}; bring it here: accel-tui fetch {run_name(directory)}")
    return status


def run_on_host(
    reading: HostReading,
    words: Sequence[str],
    file: PlanFile | None,
    fields: Mapping[str, Any],
    show: Callable[[str, bool], object] | None = None,
) -> int:
    """Run a command on a host with a plan, which travels with its files.

    Args:
        reading: What is known of the host.
        words: The command with its options, without the plan.
        file: The plan file; ``None`` for the settings alone.
        fields: Plan fields that are given as options.
        show: Called with each line that it prints, and whether as an error; by default they are printed.

    Returns:
        Its exit status.

    Raises:
        AccelError: The plan does not fit the host, or the host cannot be reached.
    """

    def run(values: dict[str, Any]) -> int:
        return command_on(reading.host, words, values, show)

    return with_plan_there(reading, file, fields, run)


def command_on(
    host: str, words: Sequence[str], plan: Mapping[str, Any] | None, show: Callable[[str, bool], object] | None = None
) -> int:
    """Run a command on a host, which Ctrl-C interrupts; see :func:`run_on_host`."""
    interrupts: list[int] = []

    def note(number: int, _: object) -> None:
        interrupts.append(number)

    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    with signal_handlers(dict.fromkeys(signals, note)):
        status = command_there(host, words, plan, show or _print, lambda: len(interrupts))
    if not (show or status or "--json" in words):
        print_to_stderr(f"that was on {host}: its runs are {host}:RUN here; paths and commands are for there")
    return status


def _print(line: str, is_error: bool) -> None:
    stream = sys.stderr if is_error else sys.stdout
    stream.write(f"{printable(line.rstrip())}\n")
    stream.flush()


def _of_host(run: str, place: tuple[PlaceName, PlaceRequest] | None) -> Path:
    directory = find_run(run)
    host = host_of_run(directory)
    if not host:
        raise UsageError(f"run {directory.name} is on this machine: continue it without --on")
    if place and place[0].detail != host:
        raise UsageError(f"run {directory.name} is on {host}, and is continued there: leave out --on")
    return directory


def _request_there(request: QueueRequest | None, host: str) -> QueueRequest:
    """What is asked of the queue of a host, with the ids of the runs there that it names."""
    request = request or PLAIN_REQUEST
    found = [find_run(each) for each in request.after]
    for directory in found:
        if host_of_run(directory) != host:
            where = host_of_run(directory) or "this machine"
            reason = f"the queue of {host} cannot wait for it: name a run there, as {host}:RUN"
            raise UsageError(f"run {directory.name} is on {where}, and {reason}")
    return replace(request, after=tuple(dict.fromkeys(directory.name for directory in found)))


def chosen_host(name: str) -> HostReading:
    """A reading of the host that the user has named, or of the one that ``any`` chooses.

    Raises:
        UsageError: The host cannot be reached.
    """
    if name == ANY:
        reading = choose_host()
        print_to_stderr(f"trains on {reading.host}")
        return reading
    reading = HostReader(find_host(name)).read(HostReading(name))
    if reading.state != "connected":
        raise UsageError(reading.message)
    return reading


def with_plan_there(
    reading: HostReading, file: PlanFile | None, fields: Mapping[str, Any], use: Callable[[dict[str, Any]], Result]
) -> Result:
    """Call a function with a plan that is checked here with the devices there.

    Args:
        reading: What is known of the host.
        file: The plan file; ``None`` without one.
        fields: Plan fields that are given as options.
        use: Called with the fields that are not at their defaults; what is named by its path there is checked there.

    Returns:
        What ``use`` returns.

    Raises:
        AccelError: The plan does not fit the host.
    """
    values = {**(file.values if file else {}), **fields}
    there = {name: value for name, value in values.items() if name in PATH_FIELDS and _is_there(value)}
    here = {name: value for name, value in fields.items() if name not in there}
    if file:
        file = PlanFile(file.path, {name: each for name, each in file.values.items() if name not in there}, file.lines)

    def use_plan(plan: Plan, _: Sequence[Device]) -> Result:
        return use(plan.changed() | there)

    return with_chosen_plan(load_settings(), file, here, use_plan, reading.devices)


def _is_there(value: object) -> bool:
    return isinstance(value, str) and value.startswith(THERE)
