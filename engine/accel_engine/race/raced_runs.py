"""What a race has measured of a run's plan, for the rules of advice, which do not read races themselves."""

import socket
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from accel_engine.advice import FasterPlan, Recorded, read_recorded
from accel_engine.devices import detect
from accel_engine.errors import AccelError
from accel_engine.plan.resolved_plan import check
from accel_engine.race.remembered import has_races, recall
from accel_engine.run.engine.status import RunInfo


def read_with_races(directory: Path) -> Recorded:
    """Read the records of a run, with what a race has found to be faster for its plan.

    Raises:
        RunError: There is no run, or this program cannot read it.
    """
    recorded = read_recorded(directory)
    return replace(recorded, faster=faster_plan(recorded.info))


def faster_plan(info: RunInfo) -> FasterPlan | None:
    """What a race on this machine has found to be faster for a run's plan; ``None`` for a run of another machine.

    Args:
        info: The run.
    """
    if not info.has_engine or info.plan is None or info.host != socket.gethostname() or not has_races():
        return None
    with suppress(AccelError):  # its data is gone, for example
        devices = detect().devices
        found = recall(check(info.plan, devices), devices)
        tried = {"xla": "on"} if info.plan.xla == "auto" else {}  # by the run itself
        if found and found.faster_changes and found.faster_changes != tried:
            return FasterPlan(found.faster_changes, found.factor)
    return None
