"""Adds a plan of the form to the queue."""

import os
from collections.abc import Sequence

from accel_engine.devices import detect
from accel_engine.devices.device_types import Device
from accel_engine.plan import Plan
from accel_engine.process.start_run import prepare_run
from accel_engine.run_queue import queue
from accel_engine.run_queue.needs import find_need


def queue_plan(plan: Plan, devices: Sequence[Device] | None) -> str:
    """Create a run that waits in the queue; this blocks.

    Args:
        plan: The plan.
        devices: The devices of the machine; detected if ``None``.

    Returns:
        What to say about it.

    Raises:
        AccelError: The plan does not fit, or the run cannot be written.
    """
    machine = detect().devices if devices is None else devices
    find_need(plan, None, machine, os.environ)
    directory = prepare_run(plan, machine, queued=True)
    queue.enqueue(directory)
    position = next((entry.position for entry in queue.entries() if entry.run == directory.name), 0)
    return f"{directory.name}, position {position}" if position else directory.name
