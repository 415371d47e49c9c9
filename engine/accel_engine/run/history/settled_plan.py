"""A run's plan with what it was left to choose by itself: the execution mode, and the number of threads."""

from collections.abc import Iterable
from typing import Any

from accel_engine.events import Event, MicroBatchesTried, ThreadsChosen, XlaTried
from accel_engine.plan import Plan


def settled_plan(plan: Plan, events: Iterable[Event]) -> Plan:
    """The plan with the execution mode that the run trains in, so that a trial needs no autotuning.

    A run that has chosen no mode trains without XLA, unless its plan has it, and in whole batches.

    Args:
        plan: The run's plan.
        events: The run's events, in order.
    """
    chosen: dict[str, Any] = {"xla": "off"}
    for event in events:
        match event:
            case XlaTried():
                chosen["xla"] = "on" if event.xla else "off"
            case MicroBatchesTried():
                chosen["micro_batches"] = event.micro_batches
            case ThreadsChosen():
                chosen["threads"] = event.threads
    left = {"xla": plan.xla == "auto", "micro_batches": plan.micro_batches is None, "threads": plan.threads is None}
    return plan.replace(**{name: value for name, value in chosen.items() if left[name]})
