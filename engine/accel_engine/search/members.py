"""Which of the machines that share a search still work on it."""

import time
from collections.abc import Callable

from optuna.study import Study

ALIVE = "accel_tui_alive:"
"""Begins the names of attributes of Optuna's study that members change again and again; ends with the member."""

NOTE_SECONDS = 20.0
"""Seconds after which a member changes its attribute."""

LOST_SECONDS = 120.0
"""Seconds without a change after which a member is lost."""


class Members:
    """The members of a search.

    A member is lost if its attribute has not changed for :data:`LOST_SECONDS` of this machine's clock, as clocks of
    machines differ. One that continues is no longer lost.

    Args:
        study: Optuna's study.
        own: This member.
        now: A monotonic clock in seconds.
    """

    def __init__(self, study: Study, own: str, now: Callable[[], float] = time.monotonic) -> None:
        self._study = study
        self._own = own
        self._now = now
        self._noted = -NOTE_SECONDS
        self._changed: dict[str, tuple[object, float]] = {}

    def update(self) -> None:
        """Note that this member is alive, and read which others are."""
        now = self._now()
        if now - self._noted >= NOTE_SECONDS:
            self._noted = now
            self._study.set_user_attr(ALIVE + self._own, time.time())
        for name, value in self._study.user_attrs.items():
            member = name.removeprefix(ALIVE)
            if member != name and self._changed.get(member, (None, 0.0))[0] != value:
                self._changed[member] = (value, now)

    def is_lost(self, member: str) -> bool:
        """Whether a member is lost."""
        _, changed = self._changed.setdefault(member, (None, self._now()))
        return member != self._own and self._now() - changed > LOST_SECONDS
