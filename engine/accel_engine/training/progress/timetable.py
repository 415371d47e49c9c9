"""When a run validates, saves a checkpoint and ends, as its plan says."""

import math
import time
from collections.abc import Callable

from accel_engine.plan import Plan
from accel_engine.plan.interval import Interval, parse_duration, parse_interval


class Recurring:
    """Something that a run does at intervals of epochs, steps or minutes.

    Args:
        interval: The interval; ``None`` for never.
        now: A monotonic clock, in seconds.
    """

    def __init__(self, interval: Interval | None, now: Callable[[], float] = time.monotonic) -> None:
        self._interval = interval
        self._now = now
        self._done_at = now()
        self._done_step: int | None = None

    def repeat_every(self, interval: Interval) -> None:
        """Change the interval; the time since it was last done still counts."""
        self._interval = interval

    @property
    def by_clock(self) -> bool:
        """Whether the interval is a time, so that workers have to agree on it."""
        return self._interval is not None and self._interval.unit == "minutes"

    def steps_until(self, step: int) -> int | None:
        """Steps until it is due, from a number of steps taken; ``None`` if they do not decide."""
        if self._interval is None or self._interval.unit != "steps":
            return None
        return self._interval.count - step % self._interval.count

    def next_epoch(self, epoch: int) -> float:
        """The first epoch, from one on, after which it is due; infinite if epochs do not decide."""
        if self._interval is None or self._interval.unit != "epochs":
            return math.inf
        return -(-epoch // self._interval.count) * self._interval.count

    def is_due(self, step: int, epoch: int | None) -> bool:
        """Whether it is due after some steps, and has not been done after them.

        Args:
            step: Steps taken, at least one.
            epoch: Epochs taken, if the last one has just ended.
        """
        if self._interval is None or self.is_done(step):
            return False
        count = self._interval.count
        match self._interval.unit:
            case "epochs":
                return epoch is not None and epoch % count == 0
            case "steps":
                return step % count == 0
        return self._now() - self._done_at >= 60 * count

    def is_done(self, step: int) -> bool:
        """Whether it was last done after these steps."""
        return step == self._done_step

    def done(self, step: int) -> None:
        """Note that it was done after some steps; the minutes until the next time start again."""
        self._done_at, self._done_step = self._now(), step


class Timetable:
    """The intervals of a plan.

    Args:
        plan: The plan.
        now: A monotonic clock, in seconds.
        validates: Whether there is anything to validate.
        since: The time from which the time limit counts, by ``now``; now by default.
    """

    def __init__(
        self,
        plan: Plan,
        now: Callable[[], float] = time.monotonic,
        *,
        validates: bool = True,
        since: float | None = None,
    ) -> None:
        during = validates and plan.validation == "epoch"
        self.validation = Recurring(parse_interval("validation_every", plan.validation_every) if during else None, now)
        automatic = plan.checkpoint_every == "auto"
        every = None if automatic else parse_interval("checkpoint_every", plan.checkpoint_every)
        self.checkpoint = Recurring(every, now)
        self._recurring, self._validates = (self.validation, self.checkpoint), during
        self.saves_every_epoch = automatic
        """Whether checkpoints are due after each epoch, as far as their time allows."""
        self._now = now
        begin = now() if since is None else since
        self._end = begin + parse_duration("time_limit", plan.time_limit) if plan.time_limit else math.inf

    @property
    def validates(self) -> bool:
        """Whether it validates before the end."""
        return self._validates

    @property
    def by_clock(self) -> bool:
        """Whether the clock decides on anything, so that workers have to agree."""
        return self._end < math.inf or any(each.by_clock for each in self._recurring)

    @property
    def is_over(self) -> bool:
        """Whether the time limit is reached."""
        return self.seconds_left <= 0

    @property
    def seconds_left(self) -> float:
        """Seconds until the time limit; infinite without one."""
        return self._end - self._now()

    def is_due_by_clock(self, step: int) -> bool:
        """Whether a validation, a checkpoint or the end is due after some steps, by the clock."""
        return self.is_over or any(each.by_clock and each.is_due(step, None) for each in self._recurring)

    def next_epoch(self, epoch: int) -> float:
        """The first epoch, from one on, after which a validation or a checkpoint is due; infinite if none will be."""
        return min(each.next_epoch(epoch) for each in self._recurring)

    def steps_until_next(self, step: int) -> int | None:
        """Steps until a validation or a checkpoint is due within an epoch; ``None`` if none will be."""
        found = [each.steps_until(step) for each in self._recurring]
        return min((steps for steps in found if steps is not None), default=None)
