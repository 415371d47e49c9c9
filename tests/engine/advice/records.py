"""Makes records of runs, for tests of rules."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accel_engine.advice import Recorded
from accel_engine.devices.device_types import CountedItem, Reading, Sample
from accel_engine.events import DevicesFound, Event, RunStarted, TensorFlowDevice
from accel_engine.plan import Plan
from accel_engine.run.diagnostics import Diagnostics
from accel_engine.run.engine.status import RunInfo, Status
from example_events import model_built

from .recorded_example import series


def started(**changes: Any) -> RunStarted:
    values = {"run": "abcd", "name": "", "plan": {}, "first_step": 0, "pid": 42, "host": "here", "versions": {}}
    return RunStarted(time=0.0, **{**values, **changes})


def on(kind: str) -> DevicesFound:
    """An event that says that a kind of device trains."""
    device = TensorFlowDevice(f"{kind.upper()}:0", kind, "", f"{kind}:0")
    return DevicesFound(time=0.0, devices=(device,), strategy="OneDeviceStrategy")


def samples(device: str, count: int = 10, **readings: Any) -> list[Sample]:
    """Readings of a device: numbers, one for all times or one for each, or names of counted items."""

    def reading(value: Any, at: int) -> Reading:
        if isinstance(value, tuple):
            return Reading.counted(
                tuple(CountedItem(*item) if isinstance(item, tuple) else CountedItem(item) for item in value)
            )
        return Reading(float(value[at] if isinstance(value, list) else value))

    return [
        Sample(float(at), device, {name: reading(value, at) for name, value in readings.items()}) for at in range(count)
    ]


def recorded(
    *events: Event,
    plan: Plan | None = None,
    kind: str = "cpu",
    status: Status = Status.FINISHED,
    readings: Sequence[Sample] = (),
    series_of: Mapping[str, Sequence[float]] | None = None,
    built: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Recorded:
    """The records of a run of this program."""
    plan = plan or Plan()
    info = RunInfo("abcd", Path("abcd"), plan, plan.to_mapping(), 0.0, "here", 42, status)
    known = {name: series(values) for name, values in (series_of or {}).items()}
    return Recorded(
        info=changes.pop("info", info),
        events=(started(), on(kind), model_built(**(built or {})), *events),
        series=known,
        steps=changes.pop("steps", max((len(each) for each in known.values()), default=1000)),
        samples=tuple(readings),
        diagnostics=changes.pop("diagnostics", Diagnostics()),
        **changes,
    )
