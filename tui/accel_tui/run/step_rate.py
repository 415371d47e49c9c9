"""How fast a run goes, and how long the rest of it will take."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from accel_engine.run import Chunk
from accel_engine.run.reader import RECENT_CHUNKS
from accel_engine.run.steps import working_seconds

RECENT = RECENT_CHUNKS
"""How many of the last chunks a rate is taken from: some seconds of training."""


@dataclass(frozen=True, slots=True)
class StepRate:
    """The speed of training of late.

    Only the time within chunks counts, so that neither a pause nor validation slows it, and only the chunks of the
    latest engine. Its first chunk is left out, because it waits for the graph to be traced and compiled.

    Attributes:
        recent: Steps and seconds of the last warm chunks.
        ended: When the last chunk ended, in seconds since the Unix epoch.
        cold_from: The step that the latest engine began at: the first chunk from there on is cold, and those before it
            are of other engines. ``None`` once it was seen. A step, since the clock may have been set back.
        rate: Steps a second, or ``None`` before there was a warm chunk.
    """

    recent: tuple[tuple[int, float], ...] = ()
    ended: float = -math.inf
    cold_from: int | None = 0
    rate: float | None = field(init=False)

    def __post_init__(self) -> None:
        steps, seconds = map(sum, zip(*self.recent, strict=True)) if self.recent else (0, 0.0)
        rate = steps / seconds if seconds > 0 else None
        object.__setattr__(self, "rate", rate)

    def restarted(self, step: int) -> "StepRate":
        """The pace of an engine that has taken up the run at this step: not known yet."""
        return replace(self, recent=(), cold_from=step)

    def after(self, chunks: Sequence[Chunk]) -> tuple["StepRate", list[float]]:
        """The pace after these chunks too, and the seconds of work that each took."""
        started, ended = (np.array([getattr(chunk, end) for chunk in chunks]) for end in ("started", "ended"))
        seconds: list[float] = working_seconds(started, ended, self.ended).tolist()
        recent, cold_from = list(self.recent), self.cold_from
        for chunk, taken in zip(chunks, seconds, strict=True):
            if cold_from is not None:
                cold_from = None if chunk.first_step >= cold_from else cold_from
            elif taken > 0:
                recent.append((chunk.count, taken))
        return StepRate(tuple(recent[-RECENT:]), chunks[-1].ended, cold_from), seconds
