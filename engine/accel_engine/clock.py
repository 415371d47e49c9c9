"""Clocks that nobody sets.

The wall clock is set by NTP, by hand and when a machine wakes up. What a run records is timed so that no such step
makes a duration wrong or puts events out of order.
"""

import time


def boot_seconds() -> float:
    """Seconds of a clock that all processes of this machine share and nobody sets.

    On Linux it counts since the boot, the time that the machine slept included (``CLOCK_BOOTTIME``).
    """
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


OFFSET = time.time() - boot_seconds()
"""What :func:`now` adds to :func:`boot_seconds`: as the wall clock was at the last :func:`read_wall_clock`."""


def read_wall_clock() -> None:
    """Go by the wall clock as it is now; for the beginning of a run, in a process that may be far older."""
    global OFFSET
    OFFSET = time.time() - boot_seconds()


def now() -> float:
    """Seconds since the Unix epoch, by the wall clock as it was at the last :func:`read_wall_clock`."""
    return OFFSET + boot_seconds()
