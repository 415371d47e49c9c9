"""Devices of a pipeline that wait for each other."""

from collections.abc import Iterator

from accel_engine.advice.finding import Confidence, Cure, Evidence, Finding, speed_finding
from accel_engine.advice.recorded import Recorded
from accel_engine.plan.changed_plan import options_text
from accel_engine.words.numbers import percent

LARGE = 0.25
"""Share of a step in which equal stages wait, from which more micro-batches are worthwhile."""

UNEVEN = 1.5
"""How many times its equal share of a step's time the slowest stage takes, from which it matters."""


def few_micro_batches(recorded: Recorded) -> Iterator[Finding]:
    """Equal stages wait for a large part of each step, as a step has few micro-batches."""
    table = recorded.diagnostics.layers
    if table is None or table.bubble < LARGE:
        return
    count, stages = table.micro_batches, len(table.stages)
    batch = recorded.built.per_replica_batch if recorded.built else 0
    more = next((each for each in range(4 * stages, count, -1) if batch and batch % each == 0), 0)
    changes = {"micro_batches": more} if more and count > 1 else {}
    if changes:
        cure = Cure(f"more micro-batches: {options_text(changes)}", changes)
    elif count > 1:
        cure = Cure("a larger batch, which has more micro-batches, or fewer devices")
    else:
        cure = Cure("train on fewer devices: the batch is not divided into micro-batches")
    divided = f"{count} micro-batches" if count > 1 else "the batch undivided"
    yield speed_finding(
        id="pipeline-bubble",
        title=f"The pipeline's devices wait for {percent(table.bubble)} of each step",
        evidence=(Evidence(f"{stages} stages take {divided}: they wait for (S-1)/(M+S-1) if they are equal"),),
        confidence=Confidence.LIKELY,
        cost=f"{percent(table.bubble)} of the time of each device",
        cures=(cure,),
        weight=table.bubble,
    )


def uneven_stages(recorded: Recorded) -> Iterator[Finding]:
    """A stage of a pipeline takes much longer than the others, by the estimate."""
    table = recorded.diagnostics.layers
    if table is None or not table.stages:
        return
    slowest = max(table.stages, key=lambda stage: stage.work)
    if slowest.work * len(table.stages) < UNEVEN:
        return
    if recorded.plan is not None and recorded.plan.stages:
        cure = Cure("leave out --stages: the model is then cut into stages of about one size", {"stages": ()})
    else:
        cure = Cure("divide its layers into several, or train on fewer devices")
    what = f"one of {len(table.stages)}, by the estimate of its layers, {slowest.first} to {slowest.last}"
    waste = 1 - 1 / (slowest.work * len(table.stages))
    yield speed_finding(
        id="uneven-stages",
        title=f"The stage on {slowest.device} takes {percent(slowest.work)} of each step",
        evidence=(Evidence(what),),
        confidence=Confidence.LIKELY,
        cost=f"the others wait for about {percent(waste)} of the time",
        cures=(cure,),
        weight=waste,
    )
