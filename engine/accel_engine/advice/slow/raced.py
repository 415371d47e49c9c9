"""A configuration of the plan that a race has found to be faster."""

from collections.abc import Iterator

from accel_engine.advice.finding import Confidence, Cure, Evidence, Finding, Gain, Trouble
from accel_engine.advice.recorded import Recorded
from accel_engine.plan.changed_plan import options_text
from accel_engine.run.store.steps import THROUGHPUT
from accel_engine.words.numbers import percent


def raced_faster(recorded: Recorded) -> Iterator[Finding]:
    """A race of the run's plan on this machine found a faster configuration."""
    found = recorded.faster
    if found is None or found.factor <= 1:
        return
    options, factor = options_text(found.changes), f"{found.factor:.2f} times"
    yield Finding(
        id="raced-faster",
        trouble=Trouble.SLOW,
        title="A race found a faster configuration of this plan",
        evidence=(Evidence(f"{options}: {factor} the examples per second, in turns on this machine", THROUGHPUT),),
        confidence=Confidence.LIKELY,
        cost=f"{percent(1 - 1 / found.factor)} of the time of steps",
        cures=(
            Cure(
                f"train with {options}",
                found.changes,
                gain=Gain(f"{factor} the steps per second", "a race on this machine", found.factor),
            ),
        ),
        weight=1 - 1 / found.factor,
    )
