"""The mirror of a host's runs: a directory for each, as the host lists it, and all rows of those that are read."""

import json
import os
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from msgspec import to_builtins

from accel_engine.errors import RunError, file_errors, format_error
from accel_engine.files import open_log, private_directory, replacing
from accel_engine.hosts.answers import LOG_BYTES, RUN_ID
from accel_engine.hosts.connection import HostConnection
from accel_engine.hosts.host_requests import (
    CommandsRequest,
    HostNews,
    ListedRun,
    NewsRequest,
    QueuedRun,
    RunId,
    RunNews,
    RunNewsRequest,
    SentCommand,
)
from accel_engine.hosts.link import HostLink
from accel_engine.json_values import decode_or_none, encode
from accel_engine.run.directory.checkpoint_files import steps_in, write_host_steps
from accel_engine.run.directory.lock import WriterLock, is_locked
from accel_engine.run.directory.run_paths import CHECKPOINTS, LOG
from accel_engine.run.engine.commands import Command
from accel_engine.run.engine.status import Status
from accel_engine.run.store.copied_rows import NewRows, position_of, write_new_rows
from accel_engine.run.store.database import DATABASE, RunDatabase, create_file, reading, writing
from accel_engine.run.store.meta import HOST_STATE, HOST_SUMMARY, HostState
from accel_engine.versioned_database import WRITING, database_errors

FOLLOW_LOCK = "follow.lock"
"""File that the process locks which mirrors all of a run."""

WAIT_SECONDS = 5.0
"""How long a host waits for news before it answers that there are none."""

MIN_SECONDS = 0.25
"""The least time between two questions for news of a run."""

ANSWER_SECONDS = 0.2
"""How long a host waits for an answer of an engine before it replies without one."""

COMMAND_SECONDS = 0.05
"""Seconds between looks for commands to send."""


ROUNDS = 2
"""How often what is new is written until all is here that was there before."""

LONGEST_SECONDS = 5.0
"""How long to wait for what is written in one of these rounds."""

IDLE_SECONDS = 60.0
"""How long a run is mirrored after nobody reads it."""


def put_listed(host: str, directory: Path, runs: tuple[ListedRun, ...], gone: tuple[RunId, ...], ahead: float) -> None:
    """Write what a host lists of its runs.

    Args:
        host: The host's name.
        directory: Where its runs are mirrored.
        runs: The runs that have changed.
        gone: The runs that no longer exist.
        ahead: Seconds by which its clock is ahead.

    Raises:
        RunError: The mirror cannot be written, or a run has an invalid name.
    """
    for name in filter(RUN_ID.fullmatch, gone):
        shutil.rmtree(directory / name, ignore_errors=True)
    for run in runs:
        if not RUN_ID.fullmatch(run.id):
            raise RunError(f"{host} lists a run with the invalid name {run.id!r}")
        _put_one(directory / run.id, run, ahead)


def _put_one(directory: Path, run: ListedRun, ahead: float) -> None:
    with file_errors(f"{directory} cannot be written"):
        private_directory(directory)
        if not (directory / DATABASE).exists():
            with database_errors(f"run {directory}", WRITING), replacing(directory / DATABASE) as unfinished:
                create_file(unfinished, **{HOST_STATE: encode(replace(run.state, ahead=ahead))})
    fields = to_builtins(run.summary, enc_hook=str)
    with writing(directory) as database:
        write_new_rows(database, NewRows(meta=run.meta))
        if not is_locked(directory, FOLLOW_LOCK):  # else its steps and its end come together
            database.set_meta(**{HOST_STATE: encode(replace(run.state, ahead=ahead))})
        database.set_meta(**{HOST_SUMMARY: json.dumps(fields | {"info": None})})


class ListMirror:
    """Mirrors the list of a host's runs. Thread-safe.

    Args:
        link: The link to the host.

    Attributes:
        queue: Its runs that wait, as it has told last.
    """

    def __init__(self, link: HostLink) -> None:
        self._link = link
        self._lock = threading.Lock()
        self._asking: HostConnection | None = None
        self._asked: HostConnection | None = None
        self._listed: set[RunId] = set()
        self.queue: tuple[QueuedRun, ...] = ()

    def poll(self, seconds: float = 0.0, *, devices: bool = False) -> HostNews:
        """Ask for news, and write them; the first answer through a connection has all runs, in parts.

        Args:
            seconds: How long to wait for news.
            devices: Whether to ask for devices.

        Raises:
            RunError: The host cannot be reached, or the mirror cannot be written.
        """
        with self._lock:
            connection = self._link.connection()
            is_first = connection is not self._asked
            if connection is not self._asking:
                self._asking, self._listed = connection, set()
            news = connection.ask(NewsRequest(0.0 if is_first else seconds, devices))
            directory = self._link.host.directory / "runs"
            put_listed(self._link.host.name, directory, news.changed, news.gone, connection.ahead)
            self._listed |= {run.id for run in news.changed}
            self._listed -= set(news.gone)
            self.queue = news.queue
            if not news.more:
                if is_first:
                    _delete_others(directory, self._listed)
                self._asked = connection
            return news

    def poll_all(self) -> None:
        """Ask until all news are here; raises as :meth:`poll`."""
        while self.poll().more:
            pass


def _delete_others(directory: Path, listed: set[RunId]) -> None:
    """Delete the mirrors of runs that the host no longer has."""
    with suppress(OSError):
        for entry in os.scandir(directory):
            if entry.name not in listed:
                shutil.rmtree(entry.path, ignore_errors=True)


class RunMirror:
    """Mirrors all of a run while it is read, and gives commands that are added here to its engine there.

    Args:
        directory: Where the run is mirrored.
        link: The link to its host.

    Attributes:
        problem: Why it is not up to date; ``None`` while it is.
    """

    def __init__(self, directory: Path, link: HostLink) -> None:
        self.directory = directory
        self.problem: RunError | None = None
        self._link = link
        self._readers, self._read, self._is_stopped = 0, time.monotonic(), False
        self._settled = threading.Event()
        self._rounds = 0
        self._sending = threading.Lock()
        self._sent: dict[int, SentCommand] = {}
        threading.Thread(
            target=self._run, args=(self._follow, "follow"), name=f"mirror-{directory.name}", daemon=True
        ).start()
        threading.Thread(
            target=self._run, args=(self._send, "send"), name=f"send-{directory.name}", daemon=True
        ).start()

    def add_reader(self) -> None:
        """Note that one more reads it."""
        self._readers += 1

    def remove_reader(self) -> None:
        """Note that one less reads it; the mirror ends when nobody has read it for :data:`IDLE_SECONDS`."""
        self._readers -= 1
        self._read = time.monotonic()

    def stop(self) -> None:
        """End soon, whoever reads."""
        self._is_stopped = True

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or does so soon."""
        return not self._is_wanted

    @property
    def _is_wanted(self) -> bool:
        return not self._is_stopped and self._has_readers

    @property
    def _has_readers(self) -> bool:
        return self._readers > 0 or time.monotonic() - self._read < IDLE_SECONDS

    def wait(self) -> None:
        """Wait until all of the run is here that its host has now.

        Raises:
            RunError: The host cannot be reached, or the mirror cannot be written.
        """
        is_old = self._settled.is_set()
        self._settled.wait()
        rounds = ROUNDS if is_old else 0
        while rounds and not self.problem:
            news, before = self._link.ask(self._request(0.0)), self._rounds
            if not news.is_new:
                break
            # The other thread writes it, in this round or in the next. A live run may have news without end.
            rounds -= not news.rows.more
            until = time.monotonic() + LONGEST_SECONDS
            while self._rounds == before and not self.problem and time.monotonic() < until:
                time.sleep(COMMAND_SECONDS)
        if self.problem:
            raise self.problem

    def _run(self, work: Callable[[], object], name: str) -> None:
        """Work until it is stopped, and again after each problem."""
        while self._is_wanted:
            try:
                with WriterLock(self.directory, f"{name}.lock"):
                    work()
            except BlockingIOError:  # another process of this machine does it
                self._look()
                time.sleep(0.5)
            except RunError as error:
                self._settle(error)
                time.sleep(max(0.5, self._link.next_try))
            except Exception as error:  # noqa: BLE001 (whoever waits is told)
                self._settle(RunError(f"{self._link.host.name}: {format_error(error)}"))
                time.sleep(5.0)

    def _look(self) -> None:
        """See whether another process has copied all, but what a live run has written in the last moment."""
        try:
            is_behind = self._link.ask(self._request(0.0)).rows.more
            self._rounds += 1
            if not is_behind:
                self._settle(None)
        except RunError as error:
            self._settle(error)

    def _settle(self, problem: RunError | None) -> None:
        self.problem = problem
        self._settled.set()

    def _follow(self) -> None:
        """Copy what is new, again and again."""
        while self._is_wanted:
            begun = time.monotonic()
            connection = self._link.connection()
            is_settled = self._settled.is_set() and self.problem is None
            request = self._request(WAIT_SECONDS if is_settled else 0.0)
            news = connection.ask(request)
            if news.state and not Status(news.state.status).live:
                self._send_once()  # answers come before the end, for who waits for one
            if news.is_new:
                self._write(news, connection.ahead)
            self._rounds += 1
            if not news.rows.more and len(news.log) < LOG_BYTES:
                self._settle(None)
                time.sleep(max(0.0, begun + MIN_SECONDS - time.monotonic()))

    def _request(self, seconds: float) -> RunNewsRequest:
        with reading(self.directory) as database:
            position, state = position_of(database), decode_or_none(database.meta(HOST_STATE), HostState)
        try:
            log = (self.directory / LOG).stat().st_size
        except OSError:
            log = 0
        return RunNewsRequest(
            self.directory.name,
            position,
            replace(state, ahead=0.0) if state else None,
            log,
            tuple(steps_in(self.directory / CHECKPOINTS)),
            seconds,
        )

    def _write(self, news: RunNews, ahead: float) -> None:
        # A run that has ended is shown so once all of it is here.
        is_whole = not news.rows.more or (news.state is not None and Status(news.state.status).live)
        with writing(self.directory) as database:
            write_new_rows(database, news.rows)
            if news.state and is_whole:
                database.set_meta(**{HOST_STATE: encode(replace(news.state, ahead=ahead))})
        with file_errors(f"{self.directory} cannot be written"):
            if news.log:
                with open(open_log(self.directory / LOG), "ab", buffering=0) as file:
                    file.truncate(news.log_from)
                    file.write(news.log)
            if news.checkpoints is not None:
                write_host_steps(self.directory / CHECKPOINTS, news.checkpoints)

    def _send(self) -> None:
        """Give commands that are added here to the engine, and write its answers."""
        while self._is_wanted:
            self._send_once(ANSWER_SECONDS)
            time.sleep(COMMAND_SECONDS)

    def _send_once(self, seconds: float = 0.0) -> None:
        with self._sending, RunDatabase(self.directory) as database:
            if not (waiting := self._waiting(database)):
                return
            request = CommandsRequest(self.directory.name, tuple(waiting.values()), seconds)
            answers = {each.time: each for each in self._link.ask(request).answers}
            for number, command in waiting.items():
                if answer := answers.get(command.time):
                    self._sent.pop(number)
                    if not command.withdrawn:
                        database.answer(number, answer.answer, obeyed=answer.obeyed)

    def _waiting(self, database: RunDatabase) -> dict[int, SentCommand]:
        """The commands without an answer, and those that were sent and withdrawn since, by id."""
        unanswered = {each.id: _sent_form(database, each) for each in database.unanswered(Command)}
        withdrawn = {
            number: replace(each, withdrawn=True) for number, each in self._sent.items() if number not in unanswered
        }
        self._sent = unanswered | withdrawn
        return dict(self._sent)


def _sent_form(database: RunDatabase, command: Command) -> SentCommand:
    ends = None
    if command.name == "resume" and command.argument is not None:
        ends = database.command_time(int(command.argument))
    argument = None if ends is not None else command.argument
    return SentCommand(command.time, command.who, command.name, argument, command.reason, command.purpose, ends)
