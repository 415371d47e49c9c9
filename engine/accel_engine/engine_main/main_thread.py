"""Supervises one run in the engine process's main thread, which never waits for TensorFlow."""

import os
import socket
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent import futures
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from accel_engine import clock, hangup, strategies
from accel_engine.devices import Sampler, find_by_address
from accel_engine.devices.device_types import Sample
from accel_engine.devices.preemption import OFF, NoticeWatcher, find_provider
from accel_engine.devices.xid import error_text, kernel_errors
from accel_engine.engine_main.cluster_processes import LOST_HINT, ClusterProcesses
from accel_engine.engine_main.commands_and_signals import CommandReader
from accel_engine.engine_main.tensorflow_import import TensorFlowImport
from accel_engine.errors import AccelError, DatabaseError, RunError, UsageError, format_error
from accel_engine.events import Outcome, Phase, PhaseChanged, RunEnded, RunStarted, Warned
from accel_engine.keep_alive.restart import Restart
from accel_engine.plan import Plan
from accel_engine.plan.placement import find_cluster
from accel_engine.plan.resolved_plan import ResolvedPlan, resolve
from accel_engine.process.engine_process import package_versions
from accel_engine.run import RunWriter, Status, read_run
from accel_engine.run.directory.log_file import OWN_PREFIX
from accel_engine.run.directory.run_paths import latest_checkpoint, runs_directory
from accel_engine.run.engine.status import HEARTBEAT_SECONDS
from accel_engine.run.history.history import read_epochs
from accel_engine.run_queue.queue_database import ensure_waiter
from accel_engine.training.commands.command_mailbox import StopRequested
from accel_engine.training.core.deadline import Deadline

if TYPE_CHECKING:
    from accel_engine.tensorboard.run_log import LiveLog
    from accel_engine.training.distributed.cluster_server import ClusterServer
    from accel_engine.training.recovery.recovery_action import NewProcess
    from accel_engine.training.trainer import Trainer

POLL_SECONDS = 0.05
"""How often the main thread polls for commands."""


def train_command(directory: Path) -> list[str]:
    """The command line of a process that trains a run."""
    return [sys.executable, "-m", "accel_engine.process", "--run", str(directory)]


def wake_queue(directory: Path, *, isolated: bool) -> None:
    """Make sure that a process starts the next queued run once this one has exited.

    Args:
        directory: The run's directory; a worker within another run leaves this to its chief.
        isolated: Whether this process is in its own network, in which no other run should be.
    """
    if not isolated and directory.parent == runs_directory():
        ensure_waiter()


class EngineMainThread:
    """Starts a run, trains it in a thread and forwards its commands to the trainer.

    Args:
        directory: The run's directory.
        tensorflow: Imported on demand, or ahead.
        isolated: Whether nobody else can reach the ports of this process.
    """

    def __init__(self, directory: Path, tensorflow: TensorFlowImport, *, isolated: bool = False) -> None:
        self._directory = directory
        self._isolated = isolated
        self._tensorflow = tensorflow
        self._writer = RunWriter(directory, waits=True)
        self._commands = CommandReader(self._writer)
        self._cluster = ClusterProcesses(self._writer.write_event, self._warn)
        self._sampler = Sampler(self._write_samples, engine=os.getpid())
        self._told_errors: Counter[str] = Counter()
        self._errors: list[tuple[set[str], str]] = []
        self._tensorboard: LiveLog | None = None
        self._notices: NoticeWatcher | None = None
        self._began = time.monotonic()
        self._first_step, self._first_epochs = latest_checkpoint(directory), 0
        self._values: dict[str, object] = {}
        self._trainer: Trainer | ClusterServer | None = None
        self._ended: RunEnded | None = None
        self._next: NewProcess | None = None
        self._restart = Restart.take()
        self._deadline = Deadline()

    def run(self) -> Outcome:
        """Train the run and return its outcome.

        Raises:
            RunError: The run has ended already, another process writes it, or it was stopped before it could begin.
        """
        clock.read_wall_clock()
        self._commands.handle_signals()
        self._sampler.find_devices()  # while the disk is written
        self._start_run()
        training = threading.Thread(target=self._train, name="train", daemon=True)
        training.start()
        last_heartbeat = 0.0
        while training.is_alive():
            self._commands.forward()
            if time.monotonic() - last_heartbeat >= HEARTBEAT_SECONDS:
                self._write_heartbeat()
                last_heartbeat = time.monotonic()
                if self._cluster.spec:  # TensorFlow's server takes SIGTERM for itself, and then does nothing about it
                    self._commands.handle_signals()
            if self._commands.is_stop_overdue:
                self._write_end(self._make_end(Outcome.STOPPED, "stopped immediately, without waiting for TensorFlow"))
                self._exit(0)
            if late := self._deadline.missed:
                self._write_end(replace(self._make_end(Outcome.FAILED, late), temporary=True))
                self._exit(1)
            if problem := self._cluster.problem:
                self._exit_for_lost_peers(problem)
            training.join(POLL_SECONDS)
        if self._next:
            self._commands.drop_withdrawn_stop()
            if not self._commands.stop:
                self._continue_in_new_process(self._next)
        ended = self._ended or self._end_without_result()
        if self._trainer and self._trainer.lost_connection:
            ended = self._cluster.explain_loss(ended)
        outcome = self._write_end(ended)
        # TensorFlow's server never stops, and retries lost workers for long.
        if self._cluster.spec and self._cluster.spec.coordinated:
            self._exit(1 if outcome is Outcome.FAILED else 0)
        self._cluster.end_local()
        return outcome

    def _end_without_result(self) -> RunEnded:
        """The end of a run that a stop keeps from continuing in another process, or whose training gave no result."""
        if not self._next:
            return self._make_end(Outcome.FAILED, "training ended without a result")
        stop = self._commands.stop
        return self._make_end(Outcome.STOPPED, stop.origin if stop else "")

    def _exit_for_lost_peers(self, problem: str) -> NoReturn:
        """Exit because other processes are lost; for a process that serves a coordinator, this is the normal end."""
        if self._cluster.has_served:
            self._write_end(self._make_end(Outcome.FINISHED, f"training has ended, or {problem}"))
            self._exit(0)
        self._write_end(replace(self._make_end(Outcome.FAILED, problem, LOST_HINT), temporary=True))
        self._exit(1)

    def _continue_in_new_process(self, left: "NewProcess") -> NoReturn:
        """Replace this process by one that continues the run, with all of the memory."""
        repair = left.repair
        self._sampler.stop()
        if self._tensorboard:
            self._tensorboard.stop()
            self._tensorboard = None
        restart = Restart(repair.trouble, left.failed_step, repair.reason, repair.action, dict(repair.changes))
        try:
            self._wait_in_thread(partial(self._writer.leave_to_new_process, left.plan), self._commands.forward)
        except StopRequested as stop:  # while the disk was full
            self._write_end(self._make_end(Outcome.STOPPED, str(stop)))
            self._exit(0)
        sys.stdout.flush()
        command = train_command(self._directory)
        hangup.ignore()  # a handler would not outlive this program
        try:
            os.execve(command[0], command, {**os.environ, **restart.environment})  # noqa: S606
        except OSError as error:  # such as too little memory
            self._writer = self._commands.writer = RunWriter(self._directory)
            self._writer.begin()
            reason = f"{repair.reason}; the engine cannot be started again: {error.strerror}"
            self._write_end(self._make_end(Outcome.FAILED, reason))
            self._exit(1)

    def _exit(self, status: int) -> NoReturn:
        """Exit although the training thread may be in native code, which nothing else can interrupt."""
        self._cluster.end_local(0.0)
        wake_queue(self._directory, isolated=self._isolated)
        sys.stdout.flush()
        os._exit(status)

    def _start_run(self) -> None:
        info = read_run(self._directory)
        if not info.status.live and info.status is not Status.LOST:  # an engine that was started twice
            raise RunError(f"run {info.id} has already ended, and was not reopened")
        self._values = info.plan_values
        self._first_epochs = read_epochs(self._directory, self._first_step)
        started = RunStarted(
            time=clock.now(),
            run=self._directory.name,
            name=str(self._values.get("name", "")),
            plan=self._values,
            first_step=self._first_step,
            pid=os.getpid(),
            host=socket.gethostname(),
            versions=package_versions(),
            worker=self._worker(),
        )
        try:
            self._wait_in_thread(lambda: self._writer.begin(started), self._commands.forward_signals)
        except StopRequested as stop:
            raise RunError(str(stop)) from stop
        if self._restart:
            self._writer.write_event(self._restart.event(self._first_step))
        self._writer.disk.set_aside()
        self._sampler.start()
        provider = find_provider(str(self._values.get("preemption_notice", OFF)))
        if provider and not (started.worker and self._values.get("local_workers")):  # their chief stops, too
            self._notices = NoticeWatcher(provider, self._commands.stop_before_end, self._warn)
            self._notices.start()
        if self._values.get("tensorboard") == "on" and not started.worker:
            from accel_engine.tensorboard.run_log import LiveLog  # seldom needed

            self._tensorboard = LiveLog(self._directory, self._warn)
            self._tensorboard.start()

    def _wait_in_thread(self, write: Callable[[], object], meanwhile: Callable[[], None]) -> None:
        """Call a function, which may wait for the disk, in a thread, and another in this one until it has returned."""
        with futures.ThreadPoolExecutor(1) as threads:
            written = threads.submit(write)
            while not written.done():
                meanwhile()
                futures.wait([written], POLL_SECONDS)
        written.result()

    def _worker(self) -> str:
        """The name of this worker; empty for the chief and for a single process."""
        with suppress(UsageError):  # reported where the cluster is needed
            cluster = find_cluster(strategies.find(str(self._values["strategy"])), os.environ)
            return cluster.name if cluster and not cluster.chief else ""
        return ""

    def _write_samples(self, samples: tuple[Sample, ...]) -> None:
        for sample in samples:
            if errors := sample.readings.get("errors"):
                for item in errors.items[self._told_errors[sample.device] :]:
                    self._tell_error(sample.device, f"{sample.device} had {item.name}")
                self._told_errors[sample.device] = len(errors.items)
        allocated_memory = self._trainer.allocated_memory if self._trainer else None
        with suppress(DatabaseError):  # it has them in memory, and writes them with the next ones
            self._writer.write_samples(allocated_memory.add_to(samples) if allocated_memory else samples)

    def _tell_error(self, device: str, text: str) -> None:
        """Tell an error of a GPU of the run in it, and in its log: the process may end at once."""
        if not self._own_errors([({device}, text)]):
            return
        self._errors.append(({device}, text))
        print(f"{OWN_PREFIX}{text}", file=sys.stderr)  # noqa: T201 (the run's log)
        self._warn(text)

    def _error_of_gpu(self) -> str:
        """The last error that the driver or the kernel's log tells of the run's GPUs since this process has begun."""
        told = self._own_errors(self._errors) or self._own_errors(self._logged_errors())
        return told[-1] if told else ""

    def _logged_errors(self) -> list[tuple[set[str], str]]:
        """The errors in the kernel's log, each with the devices that may have had it: some have no known address."""
        if not (logged := kernel_errors(since=self._began)):
            return []
        inventory, errors = self._sampler.inventory, []
        located = {device.id for device in inventory.devices if device.address}
        others = {each for each in self._devices() - located if each.startswith("gpu")}
        for address, number in logged:
            device = find_by_address(inventory, address)
            name = device.id if device else f"the GPU at {address}"
            errors.append(({device.id} if device else others, f"{name} had {error_text(number)}"))
        return errors

    def _own_errors(self, errors: Iterable[tuple[set[str], str]]) -> list[str]:
        """Those errors that a device of the run may have had; all while its devices are unknown."""
        own = self._devices()
        return [text for devices, text in errors if not own or own & devices]

    def _devices(self) -> set[str]:
        """Ids of the devices that the run trains on, as far as is known: before they are chosen, those of the plan."""
        asked = self._values.get("devices")
        placed = self._trainer.devices if self._trainer else ()
        return set(placed) or {str(each).lower() for each in (asked if isinstance(asked, list | tuple) else ())}

    def _write_heartbeat(self) -> None:
        # The trainer reports a locked database, and waits for a full disk.
        try:
            with suppress(DatabaseError):
                self._writer.heartbeat()
        except RunError as error:  # nothing can be written any more
            print(error, file=sys.stderr)  # noqa: T201 (this is the run's log)
            self._exit(1)

    def _train(self) -> None:
        try:
            resolved = resolve(Plan.from_mapping(self._values), chosen=())  # they were checked when it was created
            if not self._tensorflow.imported:
                self._writer.write_event(PhaseChanged(time=clock.now(), phase=Phase.IMPORTING, detail="TensorFlow"))
            resolved = self._cluster.start(self._directory, resolved.check(), isolated=self._isolated)
            self._tensorflow.wait()
            self._trainer = self._create_trainer(resolved)
            ended = self._trainer.train()
            if isinstance(ended, RunEnded):
                self._ended = ended
            else:
                self._next = ended
        except StopRequested as stop:
            self._ended = self._make_end(Outcome.STOPPED, str(stop))
        except AccelError as error:
            self._ended = self._make_end(Outcome.FAILED, str(error))
        except Exception as error:  # noqa: BLE001 (the run must record why it ended)
            traceback.print_exc()
            self._ended = self._make_end(Outcome.FAILED, format_error(error))

    def _create_trainer(self, resolved: ResolvedPlan) -> "Trainer | ClusterServer":
        """Create the trainer, or the server of a process that serves a coordinator."""
        inventory = self._sampler.inventory
        if self._cluster.spec and self._cluster.spec.serves:
            from accel_engine.training.distributed.cluster_server import ClusterServer

            return ClusterServer(resolved, self._writer, self._commands.mailbox, inventory, self._began)
        from accel_engine.training.trainer import Trainer

        self._cluster.wait_for_all()
        return Trainer(
            resolved,
            self._writer,
            self._commands.mailbox,
            inventory,
            self._first_step,
            self._began,
            self._deadline,
            may_leave=not (resolved.strategy.processes or self._isolated),
            is_remat_tried=self._restart is not None and self._restart.changes.get("remat") == "on",
        )

    def _warn(self, message: str) -> None:
        with suppress(StopRequested):  # nobody waits for the disk any more
            self._writer.write_event(Warned(time=clock.now(), message=message))

    def _write_end(self, ended: RunEnded) -> Outcome:
        """Stop the other writers, then write the event that ends the run."""
        if self._commands.is_preempted and ended.outcome is Outcome.STOPPED:
            ended = replace(ended, temporary=True)
        if ended.outcome is Outcome.FAILED and (error := self._error_of_gpu()) and error not in ended.reason:
            ended = replace(ended, reason=f"{ended.reason}; meanwhile {error}")
        self._sampler.stop()
        if self._notices:
            self._notices.stop()
        self._cluster.stop_monitoring()
        try:
            self._wait_in_thread(partial(self._write_last, ended), self._commands.forward)
        except StopRequested as stop:
            print(f"{stop}; the end of the run could not be written", file=sys.stderr)  # noqa: T201 (the run's log)
        return ended.outcome

    def _write_last(self, ended: RunEnded) -> None:
        if self._tensorboard:
            self._tensorboard.stop()
        self._writer.disk.free_all()
        self._writer.end(ended)

    def _make_end(self, outcome: Outcome, reason: str, hint: str = "") -> RunEnded:
        """The event of an end that the trainer did not cause."""
        if self._trainer:
            return self._trainer.ended(outcome, reason, hint)
        return RunEnded(
            time=clock.now(),
            outcome=outcome,
            steps=self._first_step,
            epochs=self._first_epochs,
            seconds=time.monotonic() - self._began,
            reason=reason,
            hint=hint,
        )
