"""Compares the steps of a run with a cure with those before it, or with those of the run that it came from."""

import math
from contextlib import closing
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from accel_engine.advice.cures.apply_cure import AppliedCure, Method
from accel_engine.advice.cures.cure_kinds import Quantity
from accel_engine.advice.cures.cure_outcome import (
    BLOCKS,
    LEAST_WINDOWS,
    Outcome,
    compare_series,
    compare_speed,
    window_rates,
)
from accel_engine.events import ModelBuilt, PlanChanged, RunStarted
from accel_engine.process.paused_run import read_run
from accel_engine.process.run_change import steps_taken
from accel_engine.run import RunReader

SETTLING_CHUNKS = 4
"""Chunks after the change that do not count: in them, graphs are compiled and the length of chunks adapts."""

LEARNING_STEPS = 200
"""Steps after a change of what the run learns that are compared with as many before."""

BEFORE_SECONDS = 20.0
"""Seconds of training that are compared, at most."""

WATCHED_STEPS = 200
"""Steps after a change that only a failure judges, in which the run has to train."""


class CureComparison:
    """What a run does with a cure, and what it did before.

    Args:
        cure: The cure.
    """

    def __init__(self, cure: AppliedCure) -> None:
        self._cure = cure
        self._is_new = cure.method is Method.NEW_RUN
        self._before = steps_taken(cure.source) if self._is_new else cure.step
        self._batch_before = _batch(cure.source)

    @property
    def has_before(self) -> bool:
        """Whether there are enough steps before the change to compare with."""
        match self._cure.judged_by:
            case None:
                return True
            case Quantity.LEARNING:
                return self._before >= 2 * BLOCKS
        return len(self._rates_before) >= LEAST_WINDOWS

    @property
    def steps(self) -> int:
        """Steps that were taken with the cure."""
        return max(0, steps_taken(self._cure.directory) - self._cure.step)

    def compare(self) -> Outcome | None:
        """Compare what judges the cure; ``None`` while there are too few steps."""
        match self._cure.judged_by:
            case None:
                return None
            case Quantity.LEARNING:
                return self._compare_examples() if self._is_new else self._compare_losses()
        return compare_speed(self._rates_before, _rates(self._cure.directory, self._cure.step, math.inf))

    def seconds_needed(self) -> float:
        """About how long the steps take that are compared, from the time of the steps before; 0 if it is unknown."""
        with closing(RunReader(self._cure.source, steps=False)) as reader:
            ends = [(at, step) for at, step in reader.chunk_ends() if step <= self._before][-100:]
        if len(ends) < 2:
            return 0.0
        steps = ends[-1][1] - ends[0][1]
        per_step, chunk = (ends[-1][0] - ends[0][0]) / steps, steps / len(ends)
        match self._cure.judged_by:
            case None:
                return per_step * WATCHED_STEPS
            case Quantity.LEARNING:
                batch = self._cure.changes.get("batch_size") or self._batch_before
                return per_step * 2 * LEARNING_STEPS * max(1.0, self._batch_before / batch)
        return per_step * chunk * (SETTLING_CHUNKS + LEAST_WINDOWS + 1)

    @cached_property
    def _rates_before(self) -> list[float]:
        """Examples a second of the last seconds before the change, since the engine or a change before it."""
        with closing(RunReader(self._cure.source, steps=False)) as reader:
            events = [event for _, event in reader.events(0, RunStarted, PlanChanged)]
        starts = [event.first_step for event in events if isinstance(event, RunStarted)]
        starts += [event.step for event in events if isinstance(event, PlanChanged)]
        last = self._before
        return _rates(self._cure.source, max((step for step in starts if step < last), default=0), last)

    def _compare_losses(self) -> Outcome | None:
        """Compare the losses after the change with as many before it."""
        cure = self._cure
        count = max(2 * BLOCKS, min(LEARNING_STEPS, cure.step))
        after = _losses(cure.directory, cure.step, cure.step + 2 * count)[-count:]
        if self.steps < 2 * count and bool(np.isfinite(after).all()):
            return None
        return compare_series(_losses(cure.directory, max(0, cure.step - count), cure.step), after, "loss")

    def _compare_examples(self) -> Outcome | None:
        """Compare the losses of a new run with those of the run it came from, after as many examples."""
        cure, batches = self._cure, (self._batch_before, _batch(self._cure.directory))
        wanted = LEARNING_STEPS * max(batches)
        examples = min(self._before * batches[0], self.steps * batches[1])
        has_caught_up = examples >= min(wanted, self._before * batches[0])
        if not has_caught_up and read_run(cure.directory).status.live:
            return None
        count = min(examples, wanted)
        before, after = (
            _losses(directory, (examples - count) // batch, examples // batch)
            for directory, batch in zip((cure.source, cure.directory), batches, strict=True)
        )
        return compare_series(before, after, "loss")


def _rates(directory: Path, first: int, last: float) -> list[float]:
    """Examples a second in windows of a run, from one step to another one."""
    with closing(RunReader(directory, steps=False)) as reader:
        ends = reader.chunk_ends()
    inside = [(at, step) for at, step in ends if first < step <= last][SETTLING_CHUNKS:]
    since = inside[-1][0] - BEFORE_SECONDS if inside else 0.0
    return window_rates([(at, step) for at, step in inside if at >= since], _batch(directory))


def _batch(directory: Path) -> int:
    """Examples of a step; 1 if they are unknown."""
    with closing(RunReader(directory, steps=False)) as reader:
        built = [event for _, event in reader.events(0, ModelBuilt) if isinstance(event, ModelBuilt)]
    return (built[-1].global_batch if built else 1) or 1


def _losses(directory: Path, first: int, last: int) -> npt.NDArray[np.floating]:
    with closing(RunReader(directory, steps=False)) as reader:
        parts = [batch.series["loss"] for batch in reader.steps(first, last) if "loss" in batch.series]
    return np.concatenate(parts) if parts else np.zeros(0)
