"""How noisy gradients are, and which batch that asks for."""

import math
from collections.abc import Iterator

import numpy as np

from accel_engine.advice.finding import Confidence, Evidence, Finding
from accel_engine.advice.poor.findings import poor_finding, set_field
from accel_engine.advice.poor.learning import Learning
from accel_engine.run.store.series_names import GRADIENT_NORM, MICRO_BATCH_NORM

NOISY, QUIET = 16.0, 1 / 16
"""Noise scale over the batch: above the first one gradients are mostly noise, below the second one a smaller batch
would learn about as much in a step."""

MIN_STEPS = 50
"""Steps from whose second half the noise is measured."""

SMALL_BATCH = 32
"""Examples of a batch that is not needlessly large for any device."""


def gradient_noise(learning: Learning) -> Iterator[Finding]:
    """The batch is far smaller, or far larger, than the noise of its gradients asks for."""
    scale, built = noise_scale(learning), learning.recorded.built
    if scale is None or built is None or not built.global_batch:
        return
    batch = built.global_batch
    if scale > NOISY * batch:
        yield _finding(learning, scale, batch, 8 * batch, small=True)
    elif scale < QUIET * batch and batch > SMALL_BATCH:
        yield _finding(learning, scale, batch, max(SMALL_BATCH, 2 ** round(math.log2(max(2 * scale, 1)))), small=False)


def noise_scale(learning: Learning) -> float | None:
    """The batch whose noise is as large as its gradient, in examples; infinite if there is only noise.

    It follows from the norms of the gradients of two batch sizes: McCandlish et al., An Empirical Model of Large-Batch
    Training, 2018, appendix A.1. ``None`` without these norms.
    """
    built, parts = learning.recorded.built, int(learning.settings.get("micro_batches") or 1)
    large, small = _mean_square(learning, GRADIENT_NORM), _mean_square(learning, MICRO_BATCH_NORM)
    if built is None or not built.per_replica_batch or built.replicas > 1 or parts < 2 or not large or not small:
        return None
    batch, part = built.per_replica_batch, built.per_replica_batch / parts
    signal = (batch * large - part * small) / (batch - part)
    noise = max(0.0, (small - large) / (1 / part - 1 / batch))
    return noise / signal if signal > 0 else math.inf


def _mean_square(learning: Learning, name: str) -> float | None:
    """The mean square of a norm over the second half of the steps; ``None`` with too few."""
    norms = learning.recorded.of(name).between(learning.first, learning.stop)
    if len(norms) < MIN_STEPS:
        return None
    return float(np.mean(np.square(norms.mean[len(norms) // 2 :])))


def _finding(learning: Learning, scale: float, batch: int, better: int, *, small: bool) -> Finding:
    found = f"about {scale:,.0f} examples" if math.isfinite(scale) else "larger than can be measured"
    steps = ((learning.first + learning.stop) // 2, learning.stop)
    return poor_finding(
        "noisy-gradients" if small else "batch-needlessly-large",
        "Gradients are mostly noise: the batch is small" if small else "The batch is larger than its gradients need",
        [Evidence(f"the noise scale is {found}, the batch {batch:,}", MICRO_BATCH_NORM, steps)],
        "most of each update is noise" if small else "a smaller batch would learn about as much in a step",
        [
            set_field(
                f"Use a {'larger' if small else 'smaller'} batch: --batch-size {better}",
                f"fit(batch_size={better})",
                "steadier updates, which allow a larger learning rate" if small else "more updates in the same time",
                "the noise scale of the gradients",
                batch_size=better,
            )
        ],
        weight=0.3,
        confidence=Confidence.POSSIBLE,
    )
