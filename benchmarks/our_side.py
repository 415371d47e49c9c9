"""Our side of the benchmark of training: the real engine, and a dashboard that follows it."""

import sys
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from terminal import Terminal
from works import Work

if TYPE_CHECKING:
    from accel_engine.run import Chunk

SETTLING_SECONDS = 12.0
"""Training before the first turn, in which the engine measures the CPU's peak and tries ways to run a step."""

TUNING_SECONDS = 60.0
"""Training after which the first turn starts even if the autotuner has not finished, or has nothing to try."""

TRIALS = frozenset({"xla_tried", "micro_batches_tried"})
"""The events of the engine's autotuning trials."""


def is_tuned(kinds: Collection[str], xla: str) -> bool:
    """Whether the autotuner has finished.

    Args:
        kinds: Kinds of the run's events so far.
        xla: The ``xla`` of the plan.
    """
    return xla != "auto" or not TRIALS.isdisjoint(kinds)


class Ours:
    """A real engine that trains a run, and a dashboard that follows it."""

    def __init__(self, work: Work, xla: str, dashboard: bool, threads: int | None) -> None:
        from accel_engine import run
        from accel_engine.plan import Plan
        from accel_engine.process import engine_process

        plan = Plan(
            model=work.model,
            data=work.data,
            batch_size=work.batch,
            epochs=10**6,
            validation="off",
            xla=xla,
            last_batch="drop",
            split="none",
        )
        self.directory = run.create(plan)
        # 0 is TensorFlow's own number, also where earlier runs were faster with another one.
        self._engine = engine_process.start_engine(self.directory, {"TF_NUM_INTRAOP_THREADS": str(threads or 0)})
        self._reader = run.RunReader(self.directory)
        watching = (sys.executable, "-m", "accel_tui", "watch", self.directory)
        self._dashboard = Terminal(watching) if dashboard else None
        self._plan = plan

    def settle(self) -> None:
        """Wait until the engine has trained for a while and has chosen how to run a step, and pause it."""
        from accel_engine import run

        kinds: set[str] = set()
        began: list[float] = []

        def settled() -> bool:
            time.sleep(0.2)
            kinds.update(event.kind() for event in self._reader.poll().events)
            if not began and run.list_runs()[0].steps > 5:
                began.append(time.monotonic())
            trained = time.monotonic() - began[0] if began else 0.0
            chosen = is_tuned(kinds, self._plan.xla)
            return trained > (SETTLING_SECONDS if chosen else TUNING_SECONDS)

        self._wait_for(settled)
        self._ask("pause")

    def measure(self, seconds: float) -> float:
        """Train for this long after a warm-up; returns steps per second."""
        chunks = self.train(seconds)
        # From the end of one chunk to the end of another, so that the time between chunks counts.
        return sum(chunk.count for chunk in chunks[1:]) / (chunks[-1].ended - chunks[0].ended)

    def train(self, seconds: float) -> "list[Chunk]":
        """Train for this long after a warm-up; returns the chunks of steps."""
        self._ask("resume")
        time.sleep(0.5)
        self._reader.poll()
        time.sleep(seconds)
        chunks = self._reader.poll().chunks
        self._ask("pause")
        return list(chunks)

    def close(self) -> None:
        """Kill the engine and the dashboard."""
        self._engine.kill()
        self._engine.wait()
        if self._dashboard:
            self._dashboard.close()

    def _ask(self, command: str) -> None:
        from accel_engine import run
        from accel_engine.run.engine.commands import read_answer

        number = run.send_command(self.directory, command)
        self._wait_for(lambda: read_answer(self.directory, number))

    @staticmethod
    def _wait_for(condition: Callable[[], object], seconds: float = 180.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise SystemExit("the engine does not respond")
            time.sleep(0.01)
