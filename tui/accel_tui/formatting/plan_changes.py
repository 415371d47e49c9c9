"""Changes of a run's plan in words."""

from typing import Any

from accel_engine.events import PlanChanged


def plan_change(event: PlanChanged) -> str:
    """What changed, from which step and why: ``validation every 500 steps (was 1 epoch) from step 22: me@here``."""
    changed = ", ".join(
        f"{name.replace('_', ' ')} {_value(value)} (was {_value(event.before.get(name))})"
        for name, value in event.changes.items()
    )
    return f"{changed} from step {event.step:,}{f': {event.reason}' if event.reason else ''}"


def _value(value: Any) -> str:
    """A value as the command line takes it; that of an optional field may be none."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value)) or "none"
    return "default" if value is None else f"{value:g}" if isinstance(value, float) else str(value) or "default"
