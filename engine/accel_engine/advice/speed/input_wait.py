"""Steps that wait for their batches."""

from collections.abc import Iterator

import numpy as np

from accel_engine.advice.finding import Confidence, Cure, Evidence, Finding, Gain, speed_finding
from accel_engine.advice.recorded import Recorded
from accel_engine.advice.speed.machine_load import cpu_use_of_others
from accel_engine.advice.time_spent import TimeSpent, time_spent
from accel_engine.words.numbers import percent, span, times

SOME, MUCH = 0.05, 0.2
"""Shares of the steps' time: below the first one waiting is no matter, above the second one it is the matter."""

BUSY = 0.85
"""Utilization of the processors from which they limit how fast data is prepared."""

OTHERS = 40.0
"""Utilization of all processors by other programs or workers, in percent, from which small waits are their doing."""

_PIPELINE = (
    "prepare batches ahead and in parallel: .cache() after what is the same in each epoch, "
    ".map(..., num_parallel_calls=tf.data.AUTOTUNE), and .prefetch(tf.data.AUTOTUNE) at the end"
)


def input_wait(recorded: Recorded) -> Iterator[Finding]:
    """Steps wait for their batches for more than a small share of their time."""
    spent = time_spent(recorded)
    if spent is None or spent.input_share < SOME:
        return
    share = spent.input_share
    if share < MUCH and _others_fill_processors(recorded):
        return
    factor = 1 / max(1 - share, 0.05)
    gain = Gain(f"up to {times(factor)} the steps per second", "the measured wait, if no step waited", factor)
    is_small = share < MUCH
    yield speed_finding(
        id="input-wait",
        title=f"Steps wait for their batches: {percent(share)} of their time",
        evidence=(_evidence(spent), *_host(recorded)),
        confidence=Confidence.LIKELY if is_small else Confidence.CERTAIN,
        cost=f"{percent(share)} of the steps' time",
        cures=(_cure(recorded, gain),),
        weight=share,
    )


def _others_fill_processors(recorded: Recorded) -> bool:
    """Whether other programs, or other workers on this machine, leave the input too little processor time."""
    others = cpu_use_of_others(recorded)
    _, busy = recorded.readings("cpu:0", "utilization")
    return others is not None and others >= OTHERS and float(np.median(busy)) >= 100 * BUSY


def _evidence(spent: TimeSpent) -> Evidence:
    waited, steps = spent.spent["input"], spent.spent["steps"]
    return Evidence(f"{span(waited)} of {span(steps)} of steps were waits for batches", "steps/s", spent.steps)


def _cure(recorded: Recorded, gain: Gain) -> Cure:
    if _processors_are_busy(recorded):
        return Cure(
            "the processors are the limit: do less for each example, such as smaller images (--image-size) or files "
            "that are already decoded and resized, or use a machine with more cores",
            script="the processors are the limit: move work out of the pipeline, by .cache() or files prepared before",
            gain=gain,
        )
    return Cure(
        "make the data faster: "
        + _PIPELINE
        + "; of a Python generator, read several batches at once or return arrays; "
        "files on a slow disk or network belong on a local one",
        script=_PIPELINE,
        gain=gain,
    )


def _host(recorded: Recorded) -> Iterator[Evidence]:
    _, busy = recorded.readings("cpu:0", "utilization")
    if len(busy):
        yield Evidence(f"the processors were busy for {percent(float(np.mean(busy)) / 100)} of the time")


def _processors_are_busy(recorded: Recorded) -> bool:
    """Whether the engine itself takes all processors: other programs are not a reason to do less."""
    _, own = recorded.readings("cpu:0", "engine_cpu")
    return bool(len(own) and recorded.cores) and float(np.median(own)) >= 100 * BUSY * recorded.cores
