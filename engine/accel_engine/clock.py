"""Clocks that do not jump.

The wall clock is adjusted by NTP, by hand and after a suspend. Runs use a clock without such steps, so that durations
are correct and events are in order.
"""

import time


def boot_seconds() -> float:
    """Seconds of a monotonic clock that all processes of this machine share.

    On Linux, the time since boot, including suspends (``CLOCK_BOOTTIME``).
    """
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


OFFSET = time.time() - boot_seconds()
"""Offset of :func:`now` from :func:`boot_seconds`, from the last :func:`read_wall_clock`."""


def read_wall_clock() -> None:
    """Synchronize :func:`now` with the wall clock, at the start of a run in a process that may be much older."""
    global OFFSET
    OFFSET = time.time() - boot_seconds()


def now() -> float:
    """Seconds since the Unix epoch, by the wall clock at the last :func:`read_wall_clock`."""
    return OFFSET + boot_seconds()
