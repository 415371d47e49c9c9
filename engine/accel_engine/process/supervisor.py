"""Conducting one run: the engine process' main thread, which never waits for TensorFlow."""

import os
import signal
import socket
import sqlite3
import sys
import threading
import time
import traceback
from collections import deque
from contextlib import closing, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from accel_engine import clock, strategies
from accel_engine.cluster_spec import ClusterSpec
from accel_engine.devices import Sampler
from accel_engine.devices.reading import Sample
from accel_engine.errors import AccelError, RunError, UsageError
from accel_engine.events import Outcome, Phase, PhaseChanged, RunEnded, RunStarted, Warned
from accel_engine.launch import versions
from accel_engine.plan import Plan
from accel_engine.process.peers import LocalWorkers, PeerWatch, environment
from accel_engine.process.readiness import ReadinessListener
from accel_engine.process.tensorflow_import import TensorFlowImport
from accel_engine.run import RunReader, RunWriter
from accel_engine.run.ending import end
from accel_engine.run.paths import latest_checkpoint
from accel_engine.run.status import HEARTBEAT_SECONDS
from accel_engine.tensorboard.live import LiveLog
from accel_engine.training.command_mailbox import CommandMailbox, from_signal
from accel_engine.training.deadline import Deadline

if TYPE_CHECKING:
    from accel_engine.training.cluster_server import ClusterServer
    from accel_engine.training.trainer import Trainer

POLL_SECONDS = 0.05
"""How often the main thread looks for commands."""

PATIENCE_SECONDS = 3.0
"""How long training may go on (tracing a graph, say) after it was asked to stop now."""

LOST_HINT = "the last checkpoint is kept: continue the run once all workers are reachable"


class EngineSupervisor:
    """Begins a run, has it trained, and stands between its commands and the trainer.

    Args:
        directory: The run's.
        tensorflow: Imported, or being imported.
    """

    def __init__(self, directory: Path, tensorflow: TensorFlowImport) -> None:
        self._directory = directory
        self._tensorflow = tensorflow
        self._writer = RunWriter(directory)
        self._mailbox = CommandMailbox()
        self._signals: deque[int] = deque()
        self._last_command = 0
        self._asked_to_stop = False
        self._sampler = Sampler(self._keep, engine=os.getpid())
        self._tensorboard: LiveLog | None = None
        self._give_up_at: float | None = None
        self._began = time.monotonic()
        self._first_step = latest_checkpoint(directory)
        self._values: dict[str, object] = {}
        self._trainer: Trainer | ClusterServer | None = None
        self._ended: RunEnded | None = None
        self._cluster: ClusterSpec | None = None
        self._workers: LocalWorkers | None = None
        self._watch: PeerWatch | None = None
        self._deadline = Deadline()

    def conduct(self) -> Outcome:
        """Train the run; return how it ended."""
        clock.read_wall_clock()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda received, _: self._signals.append(received))
        self._begin()
        training = threading.Thread(target=self._train, name="train", daemon=True)
        training.start()
        beat = 0.0
        while training.is_alive():
            self._pass_on()
            if time.monotonic() - beat >= HEARTBEAT_SECONDS:
                self._beat()
                beat = time.monotonic()
            if self._give_up_at is not None and time.monotonic() > self._give_up_at:
                self._end(self._result(Outcome.STOPPED, "stopped now, without waiting for TensorFlow"))
                self._leave(0)
            if late := self._deadline.missed:
                self._end(self._result(Outcome.FAILED, late))
                self._leave(1)
            if self._watch and self._watch.problem:
                self._leave_without(self._watch)
            training.join(POLL_SECONDS)
        ended = self._ended or self._result(Outcome.FAILED, "training ended without a result")
        outcome = self._end(self._blame_peers(ended))
        if self._cluster and self._cluster.coordinated:  # a server has no end, and TensorFlow seeks those gone for long
            self._leave(1 if outcome is Outcome.FAILED else 0)
        if self._workers:
            self._workers.end()
        return outcome

    def _leave_without(self, watch: PeerWatch) -> NoReturn:
        """End this process because others are gone; for a server, that is how it learns that all is over."""
        if watch.complete and self._cluster and self._cluster.serves:
            self._end(self._result(Outcome.FINISHED, f"training has ended, or {watch.problem}"))
            self._leave(0)
        self._end(self._result(Outcome.FAILED, watch.problem, LOST_HINT))
        self._leave(1)

    def _leave(self, status: int) -> NoReturn:
        """End this process although the training thread is inside native code, where nothing else can stop it."""
        if self._workers:
            self._workers.end(0.0)
        sys.stdout.flush()
        os._exit(status)

    def _begin(self) -> None:
        with closing(RunReader(self._directory)) as reader:
            self._values = reader.info().values
        started = RunStarted(
            time=clock.now(),
            run=self._directory.name,
            name=str(self._values.get("name", "")),
            plan=self._values,
            first_step=self._first_step,
            pid=os.getpid(),
            host=socket.gethostname(),
            versions=versions(),
            worker=self._worker(),
        )
        self._writer.begin(started)
        self._sampler.start()
        if self._values.get("tensorboard") == "on" and not started.worker:
            self._tensorboard = LiveLog(self._directory, self._warn)
            self._tensorboard.start()

    def _worker(self) -> str:
        """Which worker this is, if it is another than the chief."""
        with suppress(UsageError):  # said where the cluster is needed
            if strategies.find(str(self._values["strategy"])).processes:
                cluster = ClusterSpec.find(os.environ)
                return cluster.name if cluster and not cluster.chief else ""
        return ""

    def _keep(self, samples: tuple[Sample, ...]) -> None:
        allocator = self._trainer.allocator if self._trainer else None
        self._writer.samples(allocator.add(samples) if allocator else samples)

    def _beat(self) -> None:
        # Somebody else's lock on the file, or a full disk, is the trainer's to find out: it can say so.
        try:
            with suppress(sqlite3.OperationalError):
                self._writer.heartbeat()
        except RunError as error:  # nothing more may be written, not even why
            print(error, file=sys.stderr)  # noqa: T201 (this is the run's log)
            self._leave(1)

    def _train(self) -> None:
        try:
            plan = Plan.from_mapping(self._values)
            if not self._tensorflow.imported:
                self._writer.event(PhaseChanged(time=clock.now(), phase=Phase.IMPORTING, detail="TensorFlow"))
            self._gather(plan)
            self._tensorflow.wait()
            self._trainer = self._player(plan)
            self._ended = self._trainer.train()
        except AccelError as error:
            self._ended = self._result(Outcome.FAILED, str(error))
        except Exception as error:  # noqa: BLE001 (a run must end with a word, whatever happened)
            traceback.print_exc()
            self._ended = self._result(Outcome.FAILED, f"{type(error).__name__}: {error}")

    def _player(self, plan: Plan) -> "Trainer | ClusterServer":
        """What plays this process' part: a trainer, unless it is to serve another."""
        inventory = self._sampler.inventory
        if self._cluster and self._cluster.serves:
            from accel_engine.training.cluster_server import ClusterServer

            strategies.resolve_placement(plan, inventory.devices)
            return ClusterServer(plan, self._cluster, self._writer, self._mailbox, inventory, self._began)
        from accel_engine.training.trainer import Trainer

        if self._watch and self._cluster:
            # TensorFlow's patience with servers is short, and its waiting for workers deaf.
            with (
                nullcontext()
                if self._cluster.coordinated
                else ReadinessListener(self._cluster.workers[self._cluster.index])
            ):
                self._watch.wait_for_all()
        return Trainer(plan, self._writer, self._mailbox, inventory, self._first_step, self._began, self._deadline)

    def _gather(self, plan: Plan) -> None:
        """Start the workers that the plan wants on this machine, and watch those of the cluster."""
        if not strategies.find(plan.strategy).processes:
            return
        cluster = ClusterSpec.find(os.environ)
        if cluster is None:
            self._workers = LocalWorkers(self._directory, plan)
            cluster = self._workers.cluster
        if self._workers or cluster.source != "TF_CONFIG":
            os.environ |= environment(cluster)  # where TensorFlow looks for it
        self._cluster = cluster
        if cluster.peers:
            self._watch = PeerWatch(cluster, self._tell_missing, self._warn)

    def _tell_missing(self, names: str) -> None:
        phase, detail = Phase.BUILDING, f"waiting for {names}" if names else ""
        if not names and self._cluster and self._cluster.serves:
            phase = Phase.TRAINING
            detail = f"{'taking steps' if self._cluster.role == 'worker' else 'keeping weights'} for the coordinator"
        self._writer.event(PhaseChanged(time=clock.now(), phase=phase, detail=detail))

    def _warn(self, said: str) -> None:
        self._writer.event(Warned(time=clock.now(), message=said))

    def _blame_peers(self, ended: RunEnded) -> RunEnded:
        """Say who is gone, where that is why training failed: TensorFlow's own words name nobody."""
        if self._watch and self._trainer and self._trainer.cut_off and (problem := self._watch.wait_for_problem()):
            return replace(ended, reason=problem, hint=LOST_HINT)
        return ended

    def _pass_on(self) -> None:
        """Hand what was asked since the last look to the trainer."""
        commands = []
        with suppress(sqlite3.OperationalError):  # as for the heartbeat; they are still there at the next look
            commands = [command for command in self._writer.commands() if command.id > self._last_command]
        self._last_command = max((command.id for command in commands), default=self._last_command)
        while self._signals:
            commands.append(from_signal(self._signals.popleft(), clock.now(), again=self._asked_to_stop))
        for command in commands:
            self._asked_to_stop = self._asked_to_stop or command.name in ("stop", "stop_now")
            if command.name == "stop_now" and self._give_up_at is None:
                self._give_up_at = time.monotonic() + PATIENCE_SECONDS
            self._mailbox.post(command)

    def _end(self, ended: RunEnded) -> Outcome:
        """Write the last word, once nothing else writes but training that hangs."""
        self._sampler.stop()
        if self._watch:
            self._watch.stop()
        if self._tensorboard:
            self._tensorboard.stop()
        end(self._writer, ended)
        return ended.outcome

    def _result(self, outcome: Outcome, reason: str, hint: str = "") -> RunEnded:
        """The end of a run that the trainer did not bring about itself."""
        if self._trainer:
            return self._trainer.ended(outcome, reason, hint)
        return RunEnded(
            time=clock.now(),
            outcome=outcome,
            steps=self._first_step,
            epochs=0,
            seconds=time.monotonic() - self._began,
            steps_per_second=0.0,
            metrics={},
            reason=reason,
            hint=hint,
        )
