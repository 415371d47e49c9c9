"""Follows a run until it ends, and stops it on Ctrl-C in stages: stop, stop now, terminate, kill."""

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, Self, TextIO

import psutil

from accel_engine.errors import RunError, UsageError
from accel_engine.events import RunEnded
from accel_engine.run import RunInfo, RunReader, Status, Update, send_command
from accel_engine.run.directory.log_file import lines_of
from accel_engine.run.directory.run_paths import LOG, host_of_run, latest_checkpoint
from accel_engine.text import shell_command
from accel_tui.cli.output import print_to_stderr
from accel_tui.cli.signals import signal_handlers
from accel_tui.formatting.runs import DIRECTORY_LOST, lost_reason

INTERVAL = 0.1
"""Seconds between two polls of the run."""

STARTING_INTERVAL = 0.03
"""Seconds between two polls until the first step."""

_QUEUE_INTERVAL = 1.0
"""Seconds between two readings of the queue."""

TIMEOUTS = (None, 15.0, 5.0, None)
"""Seconds to wait after each stage before the next one; ``None`` for no limit."""


class ProgressView(Protocol):
    """Shows a run while it trains."""

    def show(self, update: Update, info: RunInfo | None = None) -> None:
        """Show what is new, which may be nothing.

        Args:
            update: The events and chunks since the last call.
            info: The run's present status.
        """

    def lost(self, info: RunInfo, steps: int) -> None:
        """Show that the engine exited unexpectedly."""

    def clear(self) -> None:
        """Make room for a message on standard error."""


def view_for(stream: TextIO, *, as_json: bool, plain: bool) -> ProgressView:
    """Return the requested view; by default a bar on a terminal and a log elsewhere."""
    # These import NumPy, which --help and shell completion do not need.
    from accel_tui.cli.live import is_live
    from accel_tui.cli.progress import Bar, JsonLines, Log

    if as_json:
        return JsonLines(stream)
    return Bar(stream) if is_live(stream) and not plain else Log(stream)


def follow_run(
    reader: RunReader,
    view: ProgressView,
    interrupts: "Interrupts | None" = None,
    restart: Callable[[Path], bool] | None = None,
) -> int:
    """Show a run until it ends.

    Args:
        reader: The run; only what it has not yet read is shown.
        view: Shows the run.
        interrupts: Stops the run on Ctrl-C; without it, Ctrl-C ends only the following.
        restart: Starts the engine of a run again if that can help, and returns whether it did. Called for a lost run,
            and for one that a place has started, however it ended.

    Returns:
        The status for the shell: 0 when the run finished or was stopped, 1 when it failed or was lost.
    """
    steps, was_queued, lost, queue = 0, False, "", QueueReasons()
    ended, waiting = None, None
    try:
        while True:
            info = reader.info()  # before the poll, so that the last events are not missed
            update = reader.poll()
            if update.chunks:
                steps = update.chunks[-1].first_step + update.chunks[-1].count
            ended = next((event for event in reversed(update.events) if isinstance(event, RunEnded)), ended)
            view.show(update, info)
            if not info.status.live:
                if (info.status is Status.LOST or info.place) and restart and restart(info.directory):
                    continue
                break
            lost, was_lost = reader.link_problem, lost
            messages = [*(interrupts.escalate(info) if interrupts else ())]
            if bool(lost) != bool(was_lost):
                messages.append(f"{lost}; the run continues there" if lost else "connected again")
            if info.waiting and info.waiting is not waiting:
                messages.append(info.waiting.waiting)
            waiting = info.waiting
            if info.status is Status.QUEUED:
                was_queued = True
                messages += queue.new(info.id)
            for message in messages:
                view.clear()
                print_to_stderr(message)
            time.sleep(INTERVAL if steps else STARTING_INTERVAL)
        if info.status is Status.LOST:
            view.lost(info, steps)
    finally:
        view.clear()
    if info.status is Status.LOST:
        print_to_stderr(_lost_message(info, steps, was_queued=was_queued))
    elif message := _end_message(info, ended, could_be_stopped=interrupts is not None):
        print_to_stderr(message)
    return int(info.status in (Status.LOST, Status.FAILED))


def _end_message(info: RunInfo, ended: RunEnded | None, *, could_be_stopped: bool) -> str:
    """The message on a run that has failed or was stopped, with the next thing to do; else empty."""
    if info.status is Status.FAILED and ended:
        return _failed_message(info, ended)
    if info.status is not Status.STOPPED:
        return ""
    if ended and ended.hint:
        return f"run {info.id} was stopped: {ended.reason}; {ended.hint}"
    return _continue_message(info) if could_be_stopped and not info.script and not info.is_directory_lost else ""


def _continue_message(info: RunInfo) -> str:
    """How to continue a stopped run, or to train it again if it has no checkpoint."""
    if latest_checkpoint(info.directory) or info.plan is None:
        return f"continue it with: accel-tui continue {info.id}{_where(info)}"
    return f"it has no checkpoint yet; train it again with: {info.plan.command()}{_where(info)}"


def _where(info: RunInfo) -> str:
    """The options of a command that trains a run where it was trained, after a blank; empty for this machine."""
    return f" {shell_command(list(info.place.options))}" if info.place and info.place.options else ""


def _failed_message(info: RunInfo, ended: RunEnded) -> str:
    log = f"Log: {info.directory / LOG}" if (info.launched or not info.script) and not info.is_directory_lost else ""
    again = f"Run it again: {info.script}" if info.launched else ""
    lines = (f"run {info.id} failed: {ended.reason}", ended.hint, log, again)
    return "\n".join(filter(None, lines))


def _lost_message(info: RunInfo, steps: int, *, was_queued: bool) -> str:
    why = f"run {info.id}: {lost_reason(info)} after step {steps:,}"
    if info.is_directory_lost:
        again = info.script or (info.plan.command() if info.plan else "")
        lines = [f"{why}, and {DIRECTORY_LOST}: {info.directory}", f"Run it again: {again}" if again else ""]
    elif info.launched:
        lines = [why, f"Log: {info.directory / LOG}", f"Run it again: {info.script}"]
    elif info.script:
        lines = [why, f"Only the script itself can continue the run; start it again: {info.script}"]
    else:
        lines = _lost_engine_lines(info, steps, was_queued=was_queued)
    return "\n".join(filter(None, lines))


def _lost_engine_lines(info: RunInfo, steps: int, *, was_queued: bool) -> list[str]:
    log = info.directory / LOG
    last_line: list[str] = []
    if not steps and not info.last_words and log.is_file():
        # An engine that never trained says why in its log.
        last_line = lines_of(log.read_text(errors="replace"))[-1:]
    what = (
        f"run {info.id}: {lost_reason(info)}"
        if info.memory_loss or info.last_words
        else f"the engine of run {info.id} exited unexpectedly"
    )
    again = _where(info) or (" --queue" if was_queued else "")
    when = f"after step {steps:,}"
    lines = [f"{what} ({when})" if info.last_words else f"{what} {when}", *last_line, f"Log: {log}"]
    if checkpoint := latest_checkpoint(info.directory):
        lines.append(f"Continue from the checkpoint of step {checkpoint:,}: accel-tui continue {info.id}{again}")
    elif info.plan:
        lines.append(f"Train it again: {info.plan.command()}{again}")
    return lines


class QueueReasons:
    """Reads why a queued run waits; reading starts the queue's process again if it was killed."""

    def __init__(self) -> None:
        self._due = 0.0
        self._said = ""

    def new(self, run: str) -> list[str]:
        """A message if the reason has changed; else empty."""
        if time.monotonic() < self._due:
            return []
        from accel_engine.run_queue.queue import why_waits  # seldom needed

        self._due = time.monotonic() + _QUEUE_INTERVAL
        said = why_waits(run)
        is_new, self._said = said != self._said, said
        return [f"run {run} waits: {said}"] if is_new else []


class Interrupts:
    """Counts Ctrl-C (and SIGTERM) and stops the run in stages, one per signal.

    The stages: stop with a checkpoint; stop now; SIGTERM; SIGKILL. After a timeout, the next stage begins without
    another signal.
    """

    def __init__(self) -> None:
        self._signals = 0
        self._stage = 0
        self._stage_started = 0.0
        self._handlers = signal_handlers(dict.fromkeys((signal.SIGINT, signal.SIGTERM), self._on_signal))

    def __enter__(self) -> Self:
        self._handlers.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._handlers.__exit__(None, None, None)

    def escalate(self, info: RunInfo) -> Iterator[str]:
        """Perform the due stages on a live run; yield a message for each."""
        while self._stage < len(TIMEOUTS) and (self._stage < self._signals or self._is_overdue()):
            stage = (_stop, _stop_now, _terminate, _kill)[self._stage]
            self._stage += 1
            self._stage_started = time.monotonic()
            with contextlib.suppress(RunError, UsageError, psutil.Error):  # the run has just ended
                yield stage(info)

    def _is_overdue(self) -> bool:
        timeout = TIMEOUTS[self._stage - 1] if self._stage else None
        return timeout is not None and time.monotonic() - self._stage_started > timeout

    def _on_signal(self, *_: object) -> None:
        self._signals += 1


def _stop(info: RunInfo) -> str:
    if info.status is Status.QUEUED:
        from accel_engine.run_queue.queue import cancel  # seldom needed

        cancel(info.id)
        return "cancelled before it began"
    if info.is_directory_lost:
        return f"{DIRECTORY_LOST}: its engine stops by itself (press Ctrl-C or send SIGTERM again to stop it now)"
    send_command(info.directory, "stop")
    return "stopping with a checkpoint (press Ctrl-C or send SIGTERM again to stop now, without one)"


def _stop_now(info: RunInfo) -> str:
    if info.is_directory_lost:
        return _terminate(info)
    send_command(info.directory, "stop_now")
    limit = sum(filter(None, TIMEOUTS))
    return (
        f"stopping now; the last checkpoint is kept (an engine that does not stop is killed after {limit:g} s; "
        "press Ctrl-C or send SIGTERM again to terminate it)"
    )


def _terminate(info: RunInfo) -> str:
    if host := host_of_run(info.directory):
        return f"the engine does not stop: process {info.pid} of {host}; its last checkpoint is kept"
    if info.place:
        from accel_engine.places.placed_runs import cancel_job  # seldom needed

        cancel_job(info.place)
        return f"the engine does not stop: took job {info.place.job} from {info.place.place}"
    for process in _engine_processes(info):
        process.terminate()
    return "the engine does not stop: sent SIGTERM"


def _kill(info: RunInfo) -> str:
    if host := host_of_run(info.directory):
        return f"waiting for the engine on {host}; Ctrl-C does no more, and 'accel-tui watch {info.id}' shows it again"
    if info.place:
        return f"waiting for {info.place.place} to end job {info.place.job}; the last checkpoint is kept"
    for process in _engine_processes(info):
        process.kill()
    return "the engine does not exit: sent SIGKILL; the last checkpoint is kept"


def _engine_processes(info: RunInfo) -> list[psutil.Process]:
    """The live processes of the engine on this machine, its children first."""
    if info.pid is None:
        return []
    engine = psutil.Process(info.pid)
    return [*engine.children(recursive=True), engine]
