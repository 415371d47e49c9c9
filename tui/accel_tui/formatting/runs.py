"""Runs in words: why one was lost, what changed, its metrics, the devices that it uses."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from accel_engine.events import PlanChanged
from accel_engine.run import RunInfo
from accel_engine.run.engine.memory_loss import MemoryLoss
from accel_engine.run.history.history import Part
from accel_engine.run.runs.devices_in_use import runs_on
from accel_engine.run.store.series_names import elements
from accel_tui.formatting.text import shorten

_PART_WIDTH = 24  # columns for the name of a part

DIRECTORY_LOST = "its directory was deleted, moved or replaced"
"""Why no command finds a run any more, as a clause."""


def lost_reason(info: RunInfo | None) -> str:
    """Which process of a lost run is gone, or why nobody knows, as a clause."""
    if info and info.launched:
        return "the script's supervisor was killed"
    process = "script" if info and info.script else "training process"
    if info and info.memory_loss is MemoryLoss.KILLED:
        return f"the system probably killed the {process}, as memory ran out"
    if info and info.memory_loss is MemoryLoss.CRASHED:
        return f"the {process} crashed, as memory ran out"
    return f"the {process} exited unexpectedly{f': {info.last_words}' if info and info.last_words else ''}"


def plan_change_text(event: PlanChanged) -> str:
    """A change of the plan, its step and reason: ``validation every 500 steps (was 1 epoch) from step 22: me@here``."""
    changed = ", ".join(
        f"{name.replace('_', ' ')} {_value(value)} (was {_value(event.before.get(name))})"
        for name, value in event.changes.items()
    )
    return f"{changed} from step {event.step:,}{f': {event.reason}' if event.reason else ''}"


def _value(value: Any) -> str:
    """A value as the command line takes it; an optional field may have none."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value)) or "none"
    return "default" if value is None else f"{value:g}" if isinstance(value, float) else str(value) or "default"


def part_title(part: Part) -> str:
    """The number and name of a part of a script's run, such as ``part 2 · fine_tuning``."""
    return f"part {part.started.part} · {shorten(part.started.name, _PART_WIDTH)}"


def metric_ranges(metrics: Mapping[str, float]) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Yield each metric's name and value; for one with several values, the minimum and the maximum.

    Args:
        metrics: The values by series name.
    """
    elements_of = elements(metrics)
    metric_of = {name: metric for metric, names in elements_of.items() for name in names}
    yielded = set[str]()
    for name, value in metrics.items():
        metric = metric_of.get(name)
        if metric is None:
            yield name, (value,)
        elif metric not in yielded:
            yielded.add(metric)
            values = [metrics[one] for one in elements_of[metric]]
            yield metric, (min(values), max(values))


def device_warnings(measured: Sequence[str], *, can_choose: bool = True) -> Iterator[str]:
    """A warning for each run that trains on one of the devices, or on unknown ones.

    Args:
        measured: Such as ``cpu``, ``gpu`` or ``gpu:1``; empty for all devices.
        can_choose: Whether the user can choose other devices.
    """
    for each in runs_on(measured):
        where = f" on {', '.join(each.devices)}" if each.devices else ""
        yield (
            f"run {each.run} is training{where}: the machine is not idle while it is measured, and either may "
            f"run out of memory; stop the run{', or choose other devices' if can_choose else ' before'}"
        )
