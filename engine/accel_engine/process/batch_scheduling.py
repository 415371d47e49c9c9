"""Sets Linux' batch scheduling policy, so that training does not delay interactive programs."""

import contextlib
import os


def set_batch_scheduling() -> None:
    """Use ``SCHED_BATCH`` for this process and its children; does nothing on other systems than Linux.

    Threads that wake up, as those of training often do, then no longer preempt interactive programs (see sched(7)). The
    process's share of the CPUs stays the same; a lower priority (``nice``) would also reduce that.
    """
    with contextlib.suppress(AttributeError, OSError):  # not Linux, or not permitted in a container
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
