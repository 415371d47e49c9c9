"""A run of many workers without TensorFlow: the chief's engine and the others', each with a separate run."""

import socket
import time
from contextlib import closing

from accel_engine import events
from accel_engine.plan import Plan
from accel_engine.run.runs.creation import create_worker
from accel_engine.run.store.database import RunDatabase
from tui.fake_engine import FakeEngine

PLAN = Plan(model="mlp", strategy="multi-worker", epochs=4)


class Worker(FakeEngine):
    """Another worker than the chief.

    Args:
        chief: The chief's engine.
        index: Which worker.
        host: The machine that it seems to be on; this one when left out.
        pid: Its process, when that is not this one.
    """

    def __init__(self, chief: FakeEngine, index: int, host: str = "", pid: int | None = None) -> None:
        super().__init__(chief.plan, directory=create_worker(chief.directory, str(index), chief.plan), pid=pid)
        self.name = f"worker {index}"
        self.host = host or socket.gethostname()

    def begin(self, first_step: int = 0) -> "Worker":
        super().begin(first_step)
        self.say(
            events.RunStarted,
            run=self.directory.name,
            name="",
            plan=self.plan.to_mapping(),
            first_step=first_step,
            pid=self.pid,
            host=self.host,
            versions={},
            worker=self.name,
        )
        with closing(RunDatabase(self.directory)) as connection:
            connection.execute("UPDATE main.meta SET value = ? WHERE key = 'host'", (self.host,))
            # Of an engine on another machine only this tells that it lives.
            connection.execute("UPDATE main.meta SET value = ? WHERE key = 'heartbeat'", (time.time() + 3600,))
        return self


def meet(chief: FakeEngine, *hosts: str, reduction: str = "ring") -> None:
    """Let the chief say that it trains with workers on these machines."""
    everyone = (socket.gethostname(), *hosts)
    workers = tuple(
        events.Worker(
            f"worker {index}",
            f"10.0.0.{index}:2222",
            host,
            f"k3f{index}-mlp-digits" if index else chief.directory.name,
        )
        for index, host in enumerate(everyone)
    )
    chief.say(events.WorkersMet, workers=workers, reduction=reduction)
