"""What the workers of a cluster agree on, so that all of them take the same steps and obey the same commands.

Every worker says something and hears what every other says, through a collective operation of the
strategy's own. Whatever the training thread does next follows from what all of them have heard.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine import clock
from accel_engine.cluster_spec import ClusterSpec
from accel_engine.run.commands import COMMANDS, Command
from accel_engine.training.command_mailbox import CommandMailbox

PAUSE_SECONDS = 0.25
"""How often workers ask each other, while they are paused, whether to go on."""

_CODES = tuple(COMMANDS)


class WorkerSync:
    """The workers of a cluster, all of whom call the same methods in the same order.

    Args:
        strategy: Theirs.
        cluster: Who they are.

    Attributes:
        index: Which of them this is.
    """

    def __init__(self, strategy: tf.distribute.Strategy, cluster: ClusterSpec) -> None:
        self._workers = len(cluster.workers)
        self.index = cluster.index
        here = strategy.num_replicas_in_sync // self._workers

        def mine(table: tf.Tensor) -> tf.Tensor:
            first = tf.distribute.get_replica_context().replica_id_in_sync_group % here == 0
            return tf.where(first, table, tf.zeros_like(table))  # of a worker's replicas only one speaks

        def exchange(table: tf.Tensor) -> tf.Tensor:
            return strategy.reduce("SUM", strategy.run(mine, args=(table,)), axis=None)

        self._exchange = tf.function(exchange, reduce_retracing=True)

    def hear(self, *words: float) -> npt.NDArray[np.float64]:
        """Say some numbers and hear everybody's, float64 ``[workers, numbers]``."""
        table = np.zeros((self._workers, len(words)))
        table[self.index] = words
        heard: npt.NDArray[np.float64] = self._exchange(tf.constant(table)).numpy()
        return heard

    def share(self, text: str) -> tuple[str, ...]:
        """Say something in words and hear what everybody says, the chief first."""
        said = text.encode()
        room = int(self.hear(len(said)).max())
        heard = self.hear(*said.ljust(room, b"\0")).astype(np.uint8)
        return tuple(line.tobytes().rstrip(b"\0").decode() for line in heard)

    def follow(self, count: int) -> int:
        """The chief's number."""
        return int(self.hear(count)[0, 0])

    def least(self, count: int) -> int:
        """The smallest of everybody's numbers."""
        return int(self.hear(count).min())


class SharedCommands:
    """Commands that, whichever worker they reach, reach all workers between the same two chunks.

    Args:
        mine: Where this worker's commands arrive.
        council: All workers.
    """

    def __init__(self, mine: CommandMailbox, council: WorkerSync) -> None:
        self._mine = mine
        self._council = council
        self._next: Command | None = None

    def take(self) -> Command | None:
        """Take the command of the first worker that has one."""
        self._next = self._next or self._mine.take()
        heard = self._council.hear(*_encode(self._next))
        (speakers,) = np.nonzero(heard[:, 0])
        if not len(speakers):
            return None
        command = _decode(heard[speakers[0]], f"worker {speakers[0]}")
        if self._next is not None and self._council.index == speakers[0]:
            command, self._next = self._next, None
        return command

    def wait(self) -> Command:
        """Wait until any worker has a command."""
        while (command := self.take()) is None:
            self._mine.linger(PAUSE_SECONDS)
        return command


def _encode(command: Command | None) -> tuple[float, float, float]:
    if command is None:
        return 0.0, 0.0, 0.0
    argument = command.argument
    return _CODES.index(command.name) + 1, argument is not None, 0.0 if argument is None else argument


def _decode(words: Any, who: str) -> Command:
    code, has_argument, argument = words
    return Command(0, clock.now(), who, _CODES[int(code) - 1], float(argument) if has_argument else None)
