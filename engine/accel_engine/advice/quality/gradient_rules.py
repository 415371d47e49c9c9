"""Gradients that vanish on their way through the layers, or explode at some steps, where the plan records them."""

from collections.abc import Iterator

import numpy as np

from accel_engine.advice.finding import Confidence, Evidence, Finding
from accel_engine.advice.quality.findings import quality_finding, set_field, text_cure
from accel_engine.advice.quality.learning import Learning
from accel_engine.plan.plan_checks import CLIPPING
from accel_engine.run.store.series_names import GRADIENT_NORM, MICRO_BATCH_NORM
from accel_engine.words import numbers

VANISHED = 1e-3
"""The largest norm of the gradients of the first layers over the last ones', below which they have vanished."""

EXPLODED = 100.0
"""The norm of all gradients at a step over the median of all steps, above which they have exploded."""

MIN_STEPS = 20
"""Points of a curve that a median needs; as many at its beginning, as of a warm-up, may be large."""


def vanishing_gradients(learning: Learning) -> Iterator[Finding]:
    """The gradients of early layers are far smaller than in the last ones."""
    built = learning.built
    every = [name for name in (built.series if built else ()) if name.startswith(f"{GRADIENT_NORM}_")]
    names = [name for name in every if name != MICRO_BATCH_NORM]
    norms = {name: _median(learning, name) for name in names}
    known = {name: norm for name, norm in norms.items() if norm is not None}
    if len(known) < 3:
        return
    # Even the largest norm of the first third must be small: the keys of an attention, for example, have small
    # gradients anywhere in a healthy model.
    early = list(known)[: max(1, len(known) // 3)]
    name = max(early, key=lambda each: known[each])
    lowest, last = known[name], max(list(known.values())[-2:])
    if not 0 <= lowest < VANISHED * last:
        return
    layer = name.removeprefix(f"{GRADIENT_NORM}_")
    yield quality_finding(
        "vanishing-gradients",
        "Gradients vanish on their way to the first layers",
        [
            Evidence(
                f"the gradient of layer {layer} has a norm of {lowest:.2g}, and {last:.2g} in the last layers "
                "(medians)",
                name,
                (learning.first, learning.stop),
            )
        ],
        f"the gradient of layer {layer} is {numbers.metric(last / lowest)} times smaller than that of the last layers"
        if lowest
        else f"layer {layer} has no gradient in half of the steps or more",
        [
            text_cure(
                "Use ReLU or GELU instead of sigmoid and tanh in hidden layers, batch or layer normalization, and "
                "residual connections",
                "Dense(units, 'relu', kernel_initializer='he_normal'); layers.BatchNormalization()",
            )
        ],
        weight=0.85,
        confidence=Confidence.CERTAIN if lowest < VANISHED * last / 10 else Confidence.LIKELY,
    )


def exploding_gradients(learning: Learning) -> Iterator[Finding]:
    """Some steps have a far larger gradient than usual, and nothing clips it."""
    norms, settings = learning.of(GRADIENT_NORM), learning.settings
    if any(settings.get(name) for name in CLIPPING) or len(norms) < 5 * MIN_STEPS:
        return
    middle = float(np.median(norms.mean))
    high = np.flatnonzero(norms.high[MIN_STEPS:] > EXPLODED * middle) + MIN_STEPS
    if len(high) < 3 or middle <= 0:
        return
    step, limit = int(norms.first[high[0]]), float(f"{middle * 2:.1g}")
    yield quality_finding(
        "exploding-gradients",
        "Some gradients are far larger than the others",
        [
            Evidence(
                f"the norm of the gradient is over {EXPLODED:g} times its median of {middle:.3g} at {len(high)} points "
                f"of the curve, first at step {step:,}",
                GRADIENT_NORM,
                (step, step + norms.width),
            )
        ],
        "one such step can undo many others",
        [
            set_field(
                f"Clip the gradients: --global-clip-norm {limit:g}",
                f"optimizer(global_clipnorm={limit:g})",
                "steps of even size",
                "twice the median of the norms",
                global_clip_norm=limit,
            )
        ],
        weight=0.5,
    )


def _median(learning: Learning, name: str) -> float | None:
    series = learning.of(name)
    return float(np.median(series.mean)) if len(series) >= MIN_STEPS else None
