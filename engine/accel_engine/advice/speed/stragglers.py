"""A worker that the others wait for at each step."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from accel_engine.advice.finding import Confidence, Cure, Evidence, Finding, speed_finding
from accel_engine.advice.recorded import Recorded
from accel_engine.advice.speed.machine_load import cpu_use_of_others
from accel_engine.advice.time_spent import time_spent
from accel_engine.run.store.steps import THROUGHPUT
from accel_engine.strategies.cluster_spec import CHIEF
from accel_engine.words.numbers import percent

MIN_SAMPLES = 5
"""Readings of a worker from which its processor time is judged."""

WAIT_LEAD = 0.15
"""How much more of its time than the median worker the slowest one waits for input, as a share."""

WAITED, FIRST = 0.15, 0.3
"""Share of the time in which the usual worker waits for the others, from which it matters; and how much of that the
slowest one may wait itself."""

CPU_LEAD = 2.0
"""How many times the processor time of the median worker the slowest one takes, while the others wait for it. The
chief is not a measure: it also validates and saves."""

OTHERS_LEAD = 25.0
"""Utilization by other programs, in percent of all processors, that only the slowest worker's machine has."""


def stragglers(recorded: Recorded) -> Iterator[Finding]:
    """One worker is slower than the others, which wait for it."""
    workers = {CHIEF: recorded, **recorded.workers} if recorded.workers else {}
    if len(workers) < 2:
        return
    found = _slow_input(workers) or _late(workers) or _crowded(workers) or _busier(workers)
    if found is None:
        return
    name, text, cure = found
    yield speed_finding(
        id="straggler",
        title=f"The other workers wait for {name}",
        evidence=(Evidence(text, THROUGHPUT),),
        confidence=Confidence.LIKELY,
        cost="each step takes as long as the slowest worker's",
        cures=(Cure(cure),),
        weight=0.6,
    )


def _slow_input(workers: Mapping[str, Recorded]) -> tuple[str, str, str] | None:
    shares = {name: spent.input_share for name, each in workers.items() if (spent := time_spent(each))}
    if len(shares) < 2:
        return None
    name, most, usual = _apart(shares, max)
    if most - usual < WAIT_LEAD:
        return None
    text = f"{name} waits for its batches for {percent(most)} of its steps, the others for {percent(usual)}"
    return name, text, "give it the data on a disk as fast as the others', and as many processors"


def _late(workers: Mapping[str, Recorded]) -> tuple[str, str, str] | None:
    """The worker that comes last to each chunk of steps."""
    shares = {name: spent.share("workers") for name, each in workers.items() if (spent := time_spent(each))}
    if len(shares) < len(workers):
        return None
    name, least, usual = _apart(shares, min)
    if usual < WAITED or least > FIRST * usual:
        return None
    text = f"the others wait for {name} for {percent(usual)} of the time, it waits for {percent(least)}"
    return name, text, "give each worker a machine of the same speed, or leave the slow one out"


def _crowded(workers: Mapping[str, Recorded]) -> tuple[str, str, str] | None:
    hosts = {each.info.host for each in workers.values()}
    others = {name: use for name, each in workers.items() if (use := cpu_use_of_others(each)) is not None}
    if len(hosts) < 2 or len(others) < 2:
        return None
    name, most, usual = _apart(others, max)
    if most - usual < OTHERS_LEAD:
        return None
    text = f"other programs take {most:.0f}% of the processors of {name}, {usual:.0f}% of the others'"
    return name, text, "end the other programs on its machine, or leave it out"


def _busier(workers: Mapping[str, Recorded]) -> tuple[str, str, str] | None:
    """The worker that computes while the others wait."""
    used = {name: each.readings("cpu:0", "engine_cpu")[1] for name, each in workers.items()}
    medians = {name: float(np.median(values)) for name, values in used.items() if len(values) >= MIN_SAMPLES}
    if len(medians) < 2 or len(medians) < len(workers):
        return None
    name, most, usual = _apart(medians, max)
    if name == CHIEF or most < CPU_LEAD * usual or most < 30:
        return None
    text = f"{name} takes {most:.0f}% of a processor, the others {usual:.0f}% while they wait for it"
    return name, text, "give each worker a machine of the same speed, or leave the slow one out"


def _apart(values: Mapping[str, float], choose: Callable[..., str]) -> tuple[str, float, float]:
    """The worker with the largest or smallest value, by ``max`` or ``min``; that value, and the others' median."""
    name = choose(values, key=values.__getitem__)
    return name, values[name], float(np.median([value for other, value in values.items() if other != name]))
