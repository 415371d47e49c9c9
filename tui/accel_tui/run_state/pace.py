"""How fast a run trains, and how many validations are left."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from accel_engine.errors import PlanError
from accel_engine.events import ModelBuilt
from accel_engine.plan import DEFAULTS
from accel_engine.plan.interval import parse_interval
from accel_engine.run import Chunk
from accel_engine.run.reading.reader import RECENT_CHUNKS
from accel_engine.run.store.steps import rate_of, working_seconds


@dataclass(frozen=True, slots=True)
class StepRate:
    """The training speed in the last chunks of the latest engine, some seconds of training.

    Time between chunks, such as pauses and validations, does not count, nor does the engine's first chunk, which
    includes tracing and compilation.
    """

    recent: tuple[tuple[int, float], ...] = ()
    """Steps and seconds of each of these chunks."""
    ended: float = -math.inf
    """End of the last chunk, in seconds since the Unix epoch."""
    cold_from: int | None = 0
    """First step of the latest engine; ``None`` once the chunk with it was read. Not a time, as the clock may have been
    set back."""
    rate: float | None = field(init=False)
    """Steps per second; ``None`` until the chunks take long enough together to tell."""

    def __post_init__(self) -> None:
        steps, seconds = sum(steps for steps, _ in self.recent), sum(seconds for _, seconds in self.recent)
        object.__setattr__(self, "rate", rate_of(steps, seconds))

    def restarted(self, step: int) -> "StepRate":
        """The rate when an engine continues from a step: unknown."""
        return replace(self, recent=(), cold_from=step)

    def after(self, chunks: Sequence[Chunk]) -> tuple["StepRate", list[float]]:
        """The rate after more chunks, and the working seconds of each chunk."""
        started, ended = np.array([each.started for each in chunks]), np.array([each.ended for each in chunks])
        seconds: list[float] = working_seconds(started, ended, self.ended).tolist()
        recent, cold_from = list(self.recent), self.cold_from
        for chunk, duration in zip(chunks, seconds, strict=True):
            if cold_from is not None:
                cold_from = None if chunk.first_step >= cold_from else cold_from
            elif duration > 0:
                recent.append((chunk.count, duration))
        return StepRate(tuple(recent[-RECENT_CHUNKS:]), chunks[-1].ended, cold_from), seconds


FORWARD_SHARE = 1 / 3
"""Share of a training step that its forward pass takes: gradients need twice its operations."""


def validations_left(
    plan: Mapping[str, Any], epochs: int, steps: int, done: tuple[int, int], seconds: float
) -> float | None:
    """How many validations are left, one that is due now included; ``None`` if the plan does not say when they are.

    Args:
        plan: The plan's values.
        epochs: Epochs of the run.
        steps: Steps of the run.
        done: Epochs completed and steps taken at the last validation; zeros before the first.
        seconds: How long the steps that are left take.
    """
    when = plan.get("validation")
    if when not in ("epoch", "end", "off"):
        return None
    if when == "off" or done[1] >= steps:
        return 0
    if when == "end":
        return 1
    try:
        every = parse_interval("validation_every", str(plan.get("validation_every", DEFAULTS["validation_every"])))
    except PlanError:
        return None
    match every.unit:
        case "epochs":
            return -(-epochs // every.count) - done[0] // every.count
        case "steps":
            return -(-steps // every.count) - done[1] // every.count
    return seconds // (60 * every.count) + 1


def assumed_seconds(built: ModelBuilt, rate: float) -> float:
    """About how long a validation takes by the speed of training; 0 if its examples are unknown.

    Args:
        built: The size of the data.
        rate: Steps per second.
    """
    batch = built.global_batch or 0
    return FORWARD_SHARE * (built.validation_examples or 0) / (batch * rate) if batch else 0.0
