"""What a run has chosen by itself is part of the plan that is tried."""

import pytest
from accel_engine.run.history.settled_plan import settled_plan

from accel_engine.events import Event, MicroBatchesTried, ThreadsChosen, XlaTried
from accel_engine.plan import Plan

XLA = XlaTried(time=1.0, step=9, xla=True, plain=1.0, compiled=2.0, remembered=False)
PLAIN = XlaTried(time=2.0, step=99, xla=False, plain=3.0, compiled=2.0, remembered=False)
PARTS = MicroBatchesTried(time=1.0, step=9, micro_batches=4, tried=4, whole=1.0, split=2.0, remembered=True)
THREADS = ThreadsChosen(time=0.5, threads=1, default=2, source="earlier runs")


@pytest.mark.parametrize(
    ("plan", "events", "expected"),
    [
        (Plan(), [], {"xla": "off"}),
        (Plan(), [XLA], {"xla": "on"}),
        (Plan(), [XLA, PLAIN], {"xla": "off"}),
        (Plan(), [THREADS, PARTS], {"xla": "off", "micro_batches": 4, "threads": 1}),
        (Plan(xla="on", micro_batches=2, threads=2), [THREADS, PARTS, PLAIN], {}),
    ],
)
def test_the_mode_is_what_the_run_trains_in(plan: Plan, events: list[Event], expected: dict[str, object]) -> None:
    assert settled_plan(plan, events) == plan.replace(**expected)
