"""Starts, continues and changes runs on a host, and brings runs and what they have made here."""

import os
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from accel_engine.errors import RunError, UsageError
from accel_engine.files import private_directory
from accel_engine.hosts import host_requests
from accel_engine.hosts.carried_files import carried_value
from accel_engine.hosts.engine_requests import fetch_file
from accel_engine.hosts.host_list import read_hosts
from accel_engine.hosts.link import HostLink, link_to
from accel_engine.hosts.mirrored_runs import list_runs_of
from accel_engine.hosts.reading import HostReading, read_all
from accel_engine.plan import PATH_FIELDS
from accel_engine.requests.protocol.request import Send
from accel_engine.run import RunReader, read_run
from accel_engine.run.directory.run_paths import host_of_run, run_name, runs_directory
from accel_engine.run.store.database import DATABASE, RunDatabase
from accel_engine.run.store.meta import HOST_STATE, HOST_SUMMARY
from accel_engine.run_queue.queue_entries import PLAIN_REQUEST, QueueRequest
from accel_engine.versioned_database import copy_database

_POLL_SECONDS = 0.1


def start(
    host: str, values: Mapping[str, Any], *, queued: bool = False, asked: QueueRequest = PLAIN_REQUEST
) -> tuple[Path, Sequence[str]]:
    """Train a plan on a host.

    Args:
        host: The host's name.
        values: The fields of a plan that are not at their defaults. The files that they name travel, but those after
            :data:`~accel_engine.hosts.carried_files.THERE`, which are on the host.
        queued: Whether the run waits in the queue there.
        asked: What it asks of the queue; ``after`` has ids of runs there.

    Returns:
        The directory that mirrors the run, and warnings.

    Raises:
        UsageError: The plan is refused, or its files are too large.
        RunError: The host cannot be reached, or cannot start it.
    """
    link = link_to(host)
    carried = {name: _carried(link, name, value) for name, value in values.items()}
    return _started(link, link.ask(host_requests.StartRequest(carried, queued=queued, asked=asked)))


def continue_there(
    directory: Path,
    changes: Mapping[str, Any] | None = None,
    *,
    queued: bool = False,
    asked: QueueRequest = PLAIN_REQUEST,
) -> tuple[Path, Sequence[str]]:
    """Continue a mirrored run on its host; see :func:`start`."""
    link = link_to(host_of_run(directory))
    carried = {name: _carried(link, name, value) for name, value in (changes or {}).items()}
    return _started(link, link.ask(host_requests.StartRequest(carried, directory.name, queued, asked)))


def command_there(
    host: str,
    words: Sequence[str],
    plan: Mapping[str, Any] | None,
    show: Callable[[str, bool], object],
    interrupts: Callable[[], int],
) -> int:
    """Run a command of the program on a host.

    Args:
        host: The host's name.
        words: The command.
        plan: The fields of a plan that are not at their defaults; its file is the last word. ``None`` for none.
        show: Called with each line that it prints, and whether as an error.
        interrupts: How often it is to be interrupted, as by Ctrl-C; asked all the time.

    Returns:
        Its exit status.

    Raises:
        UsageError: The plan's files are too large.
        RunError: The host cannot be reached, or the connection has broken, which interrupts the command.
    """
    link, key, is_over = link_to(host), secrets.token_hex(8), threading.Event()
    carried = None if plan is None else {name: _carried(link, name, value) for name, value in plan.items()}
    request = host_requests.CommandRequest(
        key, (*words, *(() if plan is None else (f"{host_requests.FOLDER}/{host_requests.PLAN}",))), carried
    )

    def watch() -> None:
        sent = 0
        with suppress(RunError):
            while not is_over.wait(_POLL_SECONDS):
                if interrupts() > sent:
                    sent += 1
                    link.ask(host_requests.EndAskRequest(key))
            link.ask(host_requests.EndAskRequest(key))  # which deletes its files

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        return link.ask(request, lambda line: show(line.text, line.is_error)).status
    finally:
        is_over.set()
        watching.join()


def cure_there(directory: Path, changes: Mapping[str, Any], finding: str = "") -> host_requests.CureResult:
    """Apply a cure to a mirrored run, on its host; without changes, take its last cure back.

    Raises:
        RunError: The host cannot apply it; the message says why.
    """
    return link_to(host_of_run(directory)).ask(host_requests.CureRequest(directory.name, dict(changes), finding))


def answer_cure(request: host_requests.CureRequest, _: Send) -> host_requests.CureResult:
    """Apply a cure to a run on this machine, or take its last cure back."""
    from accel_engine.advice.cures import apply_cure  # these are slow to import, and seldom needed
    from accel_engine.hosts.answers import directory_of
    from accel_engine.process.detached import leave

    directory = directory_of(request.run)
    if request.changes:
        values = {name: tuple(each) if isinstance(each, list) else each for name, each in request.changes.items()}
        done = apply_cure.apply(directory, values, finding=request.finding)
    else:
        done = apply_cure.undo(directory)
    if done.process:
        leave(done.process)
    return host_requests.CureResult(done.method.value, dict(done.changes), dict(done.before), done.text)


def _started(link: HostLink, answer: host_requests.StartedThere) -> tuple[Path, Sequence[str]]:
    if answer.refusal:
        raise UsageError(f"{link.host.name}: {answer.refusal}")
    list_runs_of(link.host.name)
    return link.host.directory / "runs" / Path(answer.run).name, answer.warnings


def _carried(link: HostLink, name: str, value: Any) -> Any:
    """The value of a field of a plan there."""
    return carried_value(link, name, value) if name in PATH_FIELDS else value


def fetch_run(directory: Path) -> Path:
    """Make a mirrored run one of this machine, and return its directory.

    Raises:
        RunError: The run still trains, is here already, or cannot be read or written.
    """
    target = runs_directory() / directory.name
    if target.exists():
        raise RunError(f"run {directory.name} is here already: {target}")
    with closing(RunReader(directory)) as reader:
        info = reader.info()
        if info.status.live:
            raise RunError(f"run {info.id} is {info.status}: bring it when it has ended, or only its files, with --to")
        private_directory(target.parent)
        with TemporaryDirectory(prefix=".fetch-", dir=target.parent) as hidden:
            unfinished = Path(hidden, directory.name)
            private_directory(unfinished)
            _copy_database(directory, unfinished)
            fetch_files(directory, unfinished)
            unfinished.rename(target)
    return target


def _copy_database(directory: Path, to: Path) -> None:
    """Copy the database of a mirror, which has all of the run, without what only a mirror has."""
    copy_database(directory / DATABASE, to / DATABASE, f"run {directory.name}")
    with RunDatabase(to) as database:
        database.execute("DELETE FROM command")
        database.set_meta(**{HOST_STATE: None, HOST_SUMMARY: None})


def fetch_files(directory: Path, folder: Path) -> tuple[int, int]:
    """Bring the files of a mirrored run but its own database into a folder; returns their number and bytes.

    Raises:
        RunError: The host cannot be reached, or a file cannot be read or written.
    """
    link = link_to(host_of_run(directory))
    files = link.ask(host_requests.RunFilesRequest(directory.name)).files
    size = 0
    for file in files:
        relative = PurePosixPath(file.path)
        if relative.is_absolute() or ".." in relative.parts or not relative.parts:
            raise RunError(f"{run_name(directory)} has a file with the invalid name {file.path!r}")
        size += fetch_file(link, host_requests.FilePartRequest(file.path, 0, directory.name), folder / relative)
    return len(files), size


def choose_host() -> HostReading:
    """The host that could start a run first: the one with the fewest runs that wait and train for its devices.

    Raises:
        UsageError: No host can be reached.
    """
    if not read_hosts():
        raise UsageError("there is no host to choose from: add one with accel-tui hosts add NAME")
    readings = read_all()
    reached = [reading for reading in readings if reading.state == "connected"]
    if not reached:
        raise UsageError("; ".join(reading.message for reading in readings))
    return min(reached, key=lambda reading: (len(reading.queue), live_runs(reading) / accelerators(reading)))


def live_runs(reading: HostReading) -> int:
    """The number of runs that train on a host."""
    return sum(1 for run in reading.runs if run.status and run.status.live) - len(reading.queue)


def accelerators(reading: HostReading) -> int:
    """The number of devices of a host on which runs train side by side: its GPUs and TPUs, else one."""
    return max(1, sum(1 for device in reading.devices if device.kind != "cpu"))


def answer_start(request: host_requests.StartRequest, _: Send) -> host_requests.StartedThere:
    """Start or continue a run on this machine."""
    from accel_engine.devices import detect
    from accel_engine.hosts.answers import directory_of  # these are slow to import, and seldom needed
    from accel_engine.plan import Plan
    from accel_engine.process.detached import leave
    from accel_engine.process.engine_process import start_engine
    from accel_engine.process.start_run import prepare_continuation, prepare_run
    from accel_engine.run.writing.waiting_run import handing_over
    from accel_engine.run_queue.needs import find_need
    from accel_engine.run_queue.queue import enqueue

    warnings: list[str] = []
    try:
        if request.run:
            directory = prepare_continuation(
                directory_of(request.run), dict(request.values), warnings.append, queued=request.queued
            )
        else:
            plan = Plan.from_mapping(dict(request.values))
            directory = prepare_run(plan, None, warnings.append, queued=request.queued)
        with handing_over(directory, "it could not be queued", is_new=not request.run):
            if request.queued:
                if made := read_run(directory).plan:
                    find_need(made, request.asked.devices, detect().devices, os.environ)
                enqueue(directory, request.asked)
            else:
                leave(start_engine(directory))
    except UsageError as error:
        return host_requests.StartedThere(refusal=str(error))
    return host_requests.StartedThere(directory.name, warnings=tuple(warnings))
