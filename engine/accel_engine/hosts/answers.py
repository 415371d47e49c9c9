"""Answers requests to a host; the functions that :mod:`accel_engine.hosts.host_requests` names."""

import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from accel_engine.devices import Sample, Sampler
from accel_engine.errors import RunError
from accel_engine.hosts.host_requests import (
    AnnotateRequest,
    CancelRequest,
    CheckedHost,
    CheckRequest,
    CommandAnswer,
    CommandAnswers,
    CommandsRequest,
    ContentsRequest,
    Done,
    HostNews,
    ListedRun,
    NewsRequest,
    Ping,
    QueuedRun,
    RemoveRequest,
    RunId,
    RunNews,
    RunNewsRequest,
    SentCommand,
)
from accel_engine.requests.protocol.request import Send
from accel_engine.run.directory.run_paths import LOG, checkpoint_steps, runs_directory
from accel_engine.run.engine.status import RunInfo, Status, read_info
from accel_engine.run.runs.listing import RunList, RunSummary
from accel_engine.run.runs.removal import Contents, count_contents
from accel_engine.run.runs.removal import remove as remove_run
from accel_engine.run.store.annotations import (
    Annotations,
    validate_name,
    validate_note,
    validate_tags,
    write_annotations,
)
from accel_engine.run.store.copied_rows import copied_meta, read_new_rows
from accel_engine.run.store.database import DATABASE, RunDatabase, reading, writing
from accel_engine.run.store.meta import HostState

T = TypeVar("T")

_INTERVAL = 0.1
"""Seconds between looks for news of a run."""

_LIST_INTERVAL = 1.0
"""Seconds between looks for news of all runs."""

_MOST_RUNS = 50
"""Most runs of an answer, so that the first ones come soon."""

LOG_BYTES = 1 << 16
"""Most bytes of a log in an answer."""

_SAMPLE_SECONDS = 2.0

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
"""The names of runs that cross a link; they are names of directories on both machines."""


def pong(_request: Ping, _: Send) -> Done:
    """Answer that somebody is there."""
    return Done()


def directory_of(run: RunId) -> Path:
    """The directory of a run of this machine.

    Raises:
        RunError: There is no such run here.
    """
    directory = runs_directory() / run
    if not RUN_ID.fullmatch(run) or not (directory / DATABASE).is_file():
        raise RunError(f"there is no run {run!r} on the host")
    return directory


def _state_of(info: RunInfo) -> HostState:
    return HostState(str(info.status), str(info.waiting or ""), str(info.memory_loss or ""), info.last_words)


class _Lists:
    """The runs and devices that a connection was last told, to send only news."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs = RunList(runs_directory())
        self._told: dict[RunId, ListedRun] = {}
        self._samples: tuple[Sample, ...] = ()
        self._sampler: Sampler | None = None

    @property
    def samples(self) -> tuple[Sample, ...]:
        """The latest sample of each device."""
        return self._samples

    def news(self, request: NewsRequest) -> HostNews:
        """Find the news since the last call."""
        with self._lock:
            self._runs.refresh()
            listed = {
                run.directory.name: _listed(run) for run in self._runs.runs if RUN_ID.fullmatch(run.directory.name)
            }
            found = {name: run for name, run in listed.items() if run is not None}
            changed = [run for run in found.values() if self._told.get(run.id) != run]
            gone = tuple(self._told.keys() - listed.keys())
            told = tuple(changed[:_MOST_RUNS])
            self._told = {name: run for name, run in self._told.items() if name in listed} | {
                run.id: run for run in told
            }
        devices = self._devices() if request.devices else None
        return HostNews(
            told,
            gone,
            devices.inventory.devices if devices else (),
            self._samples,
            tuple(_queued(run.id) for run in found.values() if run.state.status == Status.QUEUED),
            time.time(),
            more=len(changed) > len(told),
        )

    def _devices(self) -> Sampler:
        with self._lock:
            if self._sampler is None:
                self._sampler = Sampler(self._take, _SAMPLE_SECONDS)
                self._sampler.start()
            return self._sampler

    def _take(self, samples: tuple[Sample, ...]) -> None:
        self._samples = samples


@cache
def _lists() -> _Lists:
    return _Lists()


def _listed(run: RunSummary) -> ListedRun | None:
    """A run in a list; ``None`` if it cannot be read, which its own machine shows."""
    if run.info is None:
        return None
    with suppress(RunError), reading(run.directory) as database:
        meta = copied_meta(database)
        return ListedRun(run.directory.name, _state_of(run.info), replace(run, directory=Path(), info=None), meta)
    return None


def _queued(run: RunId) -> QueuedRun:
    from accel_engine.run_queue.queue import why_waits  # seldom needed

    return QueuedRun(run, why_waits(run))


def news(request: NewsRequest, _: Send) -> HostNews:
    """Wait for news of all runs, and of the devices, which are read every two seconds."""
    lists = _lists()
    before = lists.samples
    return _wait_for(
        lambda: lists.news(request),
        lambda found: bool(found.changed or found.gone or found.samples is not before),
        request.seconds,
        _LIST_INTERVAL,
    )


def run_news(request: RunNewsRequest, _: Send) -> RunNews:
    """The rows that a mirror of a run lacks."""
    directory = directory_of(request.run)
    with reading(directory) as database:
        return _wait_for(lambda: _run_news(database, request), lambda news: news.is_new, request.seconds)


def _run_news(database: RunDatabase, request: RunNewsRequest) -> RunNews:
    rows = read_new_rows(database, request.position, request.size)
    state, steps = _state_of(read_info(database)), tuple(checkpoint_steps(database.directory))
    log, begin = _log_after(database.directory / LOG, request.log)
    return RunNews(
        rows,
        state if state != request.state else None,
        log,
        begin,
        steps if steps != request.checkpoints else None,
    )


def _log_after(path: Path, size: int) -> tuple[bytes, int]:
    """The bytes of a log after others, and where they begin: 0 if it is shorter than before."""
    try:
        with path.open("rb") as file:
            begin = size if size <= path.stat().st_size else 0
            file.seek(begin)
            return file.read(LOG_BYTES), begin
    except OSError:
        return b"", size


def _wait_for(read: Callable[[], T], is_new: Callable[[T], bool], seconds: float, interval: float = _INTERVAL) -> T:
    """Read until there is something new, but not longer than some seconds."""
    deadline = time.monotonic() + seconds
    while not is_new(found := read()) and time.monotonic() < deadline:
        time.sleep(interval)
    return found


def commands(request: CommandsRequest, _: Send) -> CommandAnswers:
    """Give commands to a run's engine, and wait for an answer."""
    directory = directory_of(request.run)
    with writing(directory) as database:
        is_live = read_info(database).status.live
        numbers = {
            each.time: _give(database, each) if is_live else database.find_command(each.time, each.who)
            for each in request.commands
        }
    with reading(directory) as database:
        return _wait_for(lambda: _answers(database, numbers), lambda found: bool(found.answers), request.seconds)


def _give(database: RunDatabase, command: SentCommand) -> int:
    """Add a command unless it is there, or withdraw it; returns its id, 0 for one that nobody has to obey."""
    number = database.find_command(command.time, command.who)
    if command.withdrawn:
        if number:
            database.withdraw(number)
        return number
    if number:
        return number
    argument = command.argument
    if command.ends is not None:
        argument = float(database.find_command(command.ends, command.who))
    return database.copy_command(command.time, command.who, command.name, argument, command.reason, command.purpose)


def _answers(database: RunDatabase, numbers: dict[float, int]) -> CommandAnswers:
    has_ended = not read_info(database).status.live  # read first: all answers stand before the end
    answers = {sent: database.answer_to(number) for sent, number in numbers.items()}
    if has_ended:
        answers = {sent: answer or (False, "the run has ended") for sent, answer in answers.items()}
    return CommandAnswers(tuple(CommandAnswer(sent, *answer) for sent, answer in answers.items() if answer))


def answer_annotate(request: AnnotateRequest, _: Send) -> Done:
    """Change a run's annotations."""
    after = Annotations(validate_name(request.name), validate_note(request.note), validate_tags(request.tags))
    write_annotations(directory_of(request.run), lambda _: after)
    return Done()


def contents(request: ContentsRequest, _: Send) -> Contents:
    """Count what deleting a run would delete."""
    return count_contents(directory_of(request.run))


def answer_remove(request: RemoveRequest, _: Send) -> Done:
    """Delete a run."""
    remove_run(directory_of(request.run))
    return Done()


def answer_cancel(request: CancelRequest, _: Send) -> Done:
    """Take a run out of the queue."""
    from accel_engine.run_queue import queue  # seldom needed

    queue.cancel(directory_of(request.run).name)
    return Done()


def answer_check(request: CheckRequest, send: Send) -> CheckedHost:
    """Check this machine, with a report of each check as it ends."""
    del request
    from accel_engine.doctor.all_checks import checks_of, run_checks  # slow to import, and seldom needed
    from accel_engine.process.engine_process import package_versions

    for report in run_checks(checks_of()):
        send(report)
    return CheckedHost(package_versions())
