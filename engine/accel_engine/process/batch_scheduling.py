"""What the engine asks of the machine's processors: all that is left, but not before whoever waits at a keyboard."""

import contextlib
import os


def set_batch_scheduling() -> None:
    """Have the system treat this process, and all that it starts, as one that computes and that nobody waits for.

    Under Linux its threads, which often wait for one another, then no longer interrupt a program that answers a key
    whenever they wake up (``SCHED_BATCH`` in sched(7)). Its share of the processors stays the same. A lower priority
    (``nice``) would give that up too, to everything else that runs on the machine. Elsewhere, nothing is done.
    """
    with contextlib.suppress(AttributeError, OSError):  # not Linux; or a container that does not allow it
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
