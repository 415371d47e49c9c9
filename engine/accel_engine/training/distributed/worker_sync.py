"""Synchronizes the workers of a cluster, so that all run the same steps and handle the same commands.

Workers exchange values through a collective operation of the strategy.
"""

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine import clock
from accel_engine.errors import RunError
from accel_engine.events import CheckpointSaved, Phase, PhaseChanged, RunStarted, Worker, WorkersMet
from accel_engine.run.directory.run_paths import CHECKPOINTS
from accel_engine.run.engine.commands import COMMANDS, Command
from accel_engine.run.runs.worker_runs import link, path_of
from accel_engine.run.store.database import reading
from accel_engine.run.store.stored_events import decoded_events
from accel_engine.strategies.cluster_spec import ClusterSpec
from accel_engine.training.commands.command_mailbox import CommandMailbox

PAUSE_SECONDS = 0.25
"""How often paused workers exchange commands."""

_CODES = tuple(COMMANDS)


class WorkerSync:
    """Collective operations of a cluster's workers, all of which must call the same methods in the same order.

    Args:
        strategy: The workers' strategy.
        cluster: The workers' addresses.

    Attributes:
        index: The index of this worker.
    """

    def __init__(self, strategy: tf.distribute.Strategy, cluster: ClusterSpec) -> None:
        self._workers = len(cluster.workers)
        self.index = cluster.index
        local_replicas = strategy.num_replicas_in_sync // self._workers

        def own(table: tf.Tensor) -> tf.Tensor:
            first = tf.distribute.get_replica_context().replica_id_in_sync_group % local_replicas == 0
            return tf.where(first, table, tf.zeros_like(table))  # one replica per worker contributes

        def exchange(table: tf.Tensor) -> tf.Tensor:
            return strategy.reduce("SUM", strategy.run(own, args=(table,)), axis=None)

        self._exchange = tf.function(exchange, reduce_retracing=True)

    def all_gather(self, *values: float) -> npt.NDArray[np.float64]:
        """Gather the values of all workers, float64 ``[workers, values]``."""
        table = np.zeros((self._workers, len(values)))
        table[self.index] = values
        return self._exchange(tf.constant(table)).numpy()

    def all_gather_text(self, text: str) -> tuple[str, ...]:
        """Gather a string from each worker, the chief's first."""
        encoded = text.encode()
        length = int(self.all_gather(len(encoded)).max())
        gathered = self.all_gather(*encoded.ljust(length, b"\0")).astype(np.uint8)
        return tuple(row.tobytes().rstrip(b"\0").decode() for row in gathered)

    def broadcast(self, count: int) -> int:
        """The chief's count, or flag as 0 or 1, on every worker."""
        return int(self.all_gather(count)[0, 0])

    def start_step(self, step: int, *, lost_early: bool = False) -> int:
        """The step that all workers continue from, the oldest of their newest checkpoints; 0 to start anew.

        Args:
            step: The step of this worker's newest checkpoint; 0 if there is none.
            lost_early: As :func:`was_lost_early` says of its run.

        Raises:
            RunError: A worker has no checkpoint any more, but others do.
        """
        gathered = self.all_gather(step, lost_early)
        steps = gathered[:, 0].astype(int)
        missing = np.flatnonzero((steps == 0) & (gathered[:, 1] == 0))
        if steps.max() and len(missing):
            raise RunError(
                f"worker {missing[0]} has no checkpoint of this run, but worker {steps.argmax()} has one of step "
                f"{steps.max():,}: copy its directory {CHECKPOINTS} into the run of the other, or start a new run"
            )
        return int(steps.min())


def was_lost_early(directory: Path) -> bool:
    """Whether the engine of a run was lost in training before it had saved its first checkpoint.

    A worker without checkpoints that did save some, or that has never trained the run, has lost its disk.

    Raises:
        RunError: The run cannot be read.
    """
    kinds = [kind.kind() for kind in (RunStarted, PhaseChanged, CheckpointSaved)]
    is_early = begins = False
    with reading(directory) as database:
        for _, event in decoded_events(database, database.events(kinds=kinds)):
            if isinstance(event, RunStarted):
                begins = event.first_step == 0
            elif isinstance(event, CheckpointSaved):
                is_early = False
            elif begins and isinstance(event, PhaseChanged) and event.phase is Phase.TRAINING:
                is_early, begins = True, False
    return is_early


def link_worker_runs(sync: WorkerSync, cluster: ClusterSpec, directory: Path, reduction: str) -> WorkersMet:
    """Gather the run directories of all workers, and link this worker's run from the chief's.

    Args:
        sync: Synchronizes the workers, all of which call this now.
        cluster: Their addresses.
        directory: This worker's run.
        reduction: How gradients are summed.
    """
    gathered = [
        json.loads(text) for text in sync.all_gather_text(json.dumps([socket.gethostname(), path_of(directory)]))
    ]
    if not cluster.chief:
        host, run = gathered[0]
        link(directory, run, host, cluster.index)
    workers = tuple(
        Worker(f"worker {index}", address, host, run)
        for index, (address, (host, run)) in enumerate(zip(cluster.workers, gathered, strict=True))
    )
    return WorkersMet(time=clock.now(), workers=workers, reduction=reduction)


class SharedCommands:
    """Delivers a command that any worker receives to all workers between the same two chunks.

    Args:
        mailbox: This worker's commands.
        sync: Synchronizes the workers.
        is_withdrawn: Whether the sender of one of them has withdrawn it; asked before other workers get it.
    """

    is_shared = True

    def __init__(self, mailbox: CommandMailbox, sync: WorkerSync, is_withdrawn: Callable[[Command], bool]) -> None:
        self._mailbox = mailbox
        self._sync = sync
        self._is_withdrawn = is_withdrawn
        self._next: Command | None = None

    def take(self) -> Command | None:
        """Return the command of the first worker that has one; ``None`` if no worker has."""
        self._next = self._next or self._mailbox.take()
        if self._next and self._is_withdrawn(self._next):
            self._next = None
        gathered = self._sync.all_gather(*_encode(self._next))
        (senders,) = np.nonzero(gathered[:, 0])
        if not len(senders):
            return None
        command = _decode(gathered[senders[0]], f"worker {senders[0]}")
        if self._next is not None and self._sync.index == senders[0]:
            command, self._next = self._next, None
        return command

    def wait(self) -> Command:
        """Wait until any worker has a command, then return it."""
        while (command := self.take()) is None:
            self._mailbox.wait_for_next(PAUSE_SECONDS)
        return command

    def wait_at_most(self, seconds: float) -> Command | None:
        """Wait until any worker has a command: their clocks differ, so that none may end the wait by its own."""
        return self.wait()


def _encode(command: Command | None) -> tuple[float, float, float]:
    if command is None:
        return 0.0, 0.0, 0.0
    argument = command.argument
    return _CODES.index(command.name) + 1, argument is not None, 0.0 if argument is None else argument


def _decode(values: Any, who: str) -> Command:
    code, has_argument, argument = values
    return Command(0, clock.now(), who, _CODES[int(code) - 1], float(argument) if has_argument else None)
