"""The recent training speed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from accel_engine.run import Chunk
from accel_engine.run.reading.reader import RECENT_CHUNKS
from accel_engine.run.store.steps import rate_of, working_seconds

RECENT = RECENT_CHUNKS
"""Number of recent chunks that the rate averages: some seconds of training."""


@dataclass(frozen=True, slots=True)
class StepRate:
    """The recent training speed.

    Only time within chunks counts, not pauses and validation, and only chunks of the latest engine, without its first
    one, which includes tracing and compilation.

    Attributes:
        recent: Steps and seconds of the last warm chunks.
        ended: End of the last chunk, in seconds since the Unix epoch.
        cold_from: First step of the latest engine, whose chunk is cold; ``None`` once that chunk was seen. A step,
            since the clock may have been set back.
        rate: Steps per second; ``None`` before warm chunks that take long enough together.
    """

    recent: tuple[tuple[int, float], ...] = ()
    ended: float = -math.inf
    cold_from: int | None = 0
    rate: float | None = field(init=False)

    def __post_init__(self) -> None:
        steps, seconds = map(sum, zip(*self.recent, strict=True)) if self.recent else (0, 0.0)
        object.__setattr__(self, "rate", rate_of(steps, seconds))

    def restarted(self, step: int) -> "StepRate":
        """The rate when an engine continues from a step: unknown."""
        return replace(self, recent=(), cold_from=step)

    def after(self, chunks: Sequence[Chunk]) -> tuple["StepRate", list[float]]:
        """The rate after more chunks, and the working seconds of each chunk."""
        started, ended = (np.array([getattr(chunk, end) for chunk in chunks]) for end in ("started", "ended"))
        seconds: list[float] = working_seconds(started, ended, self.ended).tolist()
        recent, cold_from = list(self.recent), self.cold_from
        for chunk, duration in zip(chunks, seconds, strict=True):
            if cold_from is not None:
                cold_from = None if chunk.first_step >= cold_from else cold_from
            elif duration > 0:
                recent.append((chunk.count, duration))
        return StepRate(tuple(recent[-RECENT:]), chunks[-1].ended, cold_from), seconds
