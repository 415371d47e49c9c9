"""Batches that are too small for batch normalization, so large that there are few updates, or unlike their noise."""

import math
from collections.abc import Iterator

import numpy as np

from accel_engine.advice.finding import Confidence, Cure, Evidence, Finding
from accel_engine.advice.quality.findings import of_loss, quality_finding, set_field, text_cure
from accel_engine.advice.quality.learning import Learning, start_and_end
from accel_engine.run.store.series_names import GRADIENT_NORM, MICRO_BATCH_NORM
from accel_engine.words.numbers import counted, metric

SMALL_FOR_STATISTICS = 4
"""Examples per replica up to which batch normalization hurts: Wu and He, Group Normalization, 2018, figure 1."""

LARGE_FOR_STATISTICS = 16
"""Examples per replica that suffice: the same."""

FEW_UPDATES = 5
"""Steps of an epoch up to which a batch is large for its data."""

MANY_EXAMPLES = 500
"""Examples from which a smaller batch gives more updates that are still good."""


def small_statistics(learning: Learning) -> Iterator[Finding]:
    """Batch normalization takes the statistics of very few examples."""
    table, built = learning.recorded.diagnostics.layers, learning.built
    if table is None or built is None or not built.per_replica_batch:
        return
    micro_batches = int(learning.settings.get("micro_batches") or 1)
    count = built.per_replica_batch // micro_batches
    layers = [layer for layer in table.layers if layer.kind == "BatchNormalization" and layer.trainable]
    if not layers or not 0 < count <= SMALL_FOR_STATISTICS or not learning.stop:
        return
    yield quality_finding(
        "batch-norm-small-batch",
        "Batch normalization with very small batches",
        [
            Evidence(
                f"{len(layers)} layers take their statistics of {counted(count, 'example')} per replica, "
                f"first {layers[0].name}"
            )
        ],
        "statistics of so few examples are noise, and differ from those that validation uses",
        [
            _larger_batch(learning, LARGE_FOR_STATISTICS * max(1, built.replicas) * micro_batches),
            text_cure(
                "Use LayerNormalization or GroupNormalization, which do not depend on the batch",
                "layers.GroupNormalization(groups=8)",
            ),
        ],
        weight=0.5,
        confidence=Confidence.LIKELY if count > 2 else Confidence.CERTAIN,
    )


def _larger_batch(learning: Learning, batch: int) -> Cure:
    """A larger batch with a learning rate to match, as there are fewer updates.

    The rate grows with the batch, of adaptive optimizers with its square root: Goyal et al., Accurate, Large Minibatch
    SGD, 2017; Malladi et al., On the SDEs and Scaling Rules for Adaptive Gradient Algorithms, 2022.
    """
    built, rate = learning.built, learning.highest_rate
    if built is None or not built.global_batch or rate is None:
        return set_field(f"Use a larger batch: --batch-size {batch}", f"fit(batch_size={batch})", batch_size=batch)
    factor = batch / built.global_batch
    wanted = float(f"{rate * (factor if built.optimizer == 'SGD' else math.sqrt(factor)):.2g}")
    return set_field(
        f"Use a larger batch, with a learning rate to match: --batch-size {batch} --learning-rate {wanted:g}",
        f"fit(batch_size={batch}), compile(optimizer=...(learning_rate={wanted:g}))",
        batch_size=batch,
        learning_rate=wanted,
    )


def few_updates(learning: Learning) -> Iterator[Finding]:
    """An epoch has few updates, and the model still learns fast at the end."""
    built = learning.built
    if built is None or not built.steps_per_epoch or not built.examples or not built.global_batch:
        return
    if (
        built.steps_per_epoch > FEW_UPDATES
        or built.examples < MANY_EXAMPLES
        or learning.settings.get("steps_per_epoch")
    ):
        return
    if len(learning.loss) < 4:
        return
    start, end = start_and_end(learning.loss)
    before = float(learning.loss.mean[int(0.7 * len(learning.loss))])
    reference = max(start, learning.chance_loss or 0.0)
    if end < 0.5 * reference or before - end < 0.003 * reference:
        return
    smaller = max(8, min(64, built.examples // 32))
    more = built.global_batch / smaller
    yield quality_finding(
        "batch-too-large",
        "The batch is so large that there are few updates",
        [
            Evidence(
                f"{built.global_batch:,} of {built.examples:,} examples a step: {built.steps_per_epoch} updates an "
                "epoch"
            ),
            of_loss(
                learning,
                f"after {len(learning.loss):,} updates the loss is {metric(end)}, of {metric(start)}, and still falls",
            ),
        ],
        "each epoch teaches little",
        [
            set_field(
                f"Use a smaller batch: --batch-size {smaller}",
                f"fit(batch_size={smaller})",
                f"{more:,.0f} times as many updates an epoch",
                "the ratio of the batches",
                batch_size=smaller,
            )
        ],
        weight=0.6,
    )


NOISY, QUIET = 16.0, 1 / 16
"""Noise scale over the batch: above the first one gradients are mostly noise, below the second one a smaller batch
would learn about as much in a step."""

NOISE_STEPS = 50
"""Steps from whose second half the noise is measured."""

SMALL_BATCH = 32
"""Examples of a batch that is not needlessly large for any device."""


def gradient_noise(learning: Learning) -> Iterator[Finding]:
    """The batch is far smaller, or far larger, than the noise of its gradients asks for."""
    scale, built = noise_scale(learning), learning.built
    if scale is None or built is None or not built.global_batch:
        return
    batch = built.global_batch
    if scale > NOISY * batch:
        yield _noise_finding(learning, scale, batch, 8 * batch, small=True)
    elif scale < QUIET * batch and batch > SMALL_BATCH:
        better = max(SMALL_BATCH, 2 ** round(math.log2(max(2 * scale, 1))))
        yield _noise_finding(learning, scale, batch, better, small=False)


def noise_scale(learning: Learning) -> float | None:
    """The batch whose noise is as large as its gradient, in examples; infinite if there is only noise.

    It follows from the norms of the gradients of two batch sizes: McCandlish et al., An Empirical Model of Large-Batch
    Training, 2018, appendix A.1. ``None`` without these norms.
    """
    built, parts = learning.built, int(learning.settings.get("micro_batches") or 1)
    large, small = _mean_square(learning, GRADIENT_NORM), _mean_square(learning, MICRO_BATCH_NORM)
    if built is None or not built.per_replica_batch or built.replicas > 1 or parts < 2 or not large or not small:
        return None
    batch, part = built.per_replica_batch, built.per_replica_batch / parts
    signal = (batch * large - part * small) / (batch - part)
    noise = max(0.0, (small - large) / (1 / part - 1 / batch))
    return noise / signal if signal > 0 else math.inf


def _mean_square(learning: Learning, name: str) -> float | None:
    """The mean square of a norm over the second half of the steps; ``None`` with too few."""
    norms = learning.of(name)
    if len(norms) < NOISE_STEPS:
        return None
    return float(np.mean(np.square(norms.mean[len(norms) // 2 :])))


def _noise_finding(learning: Learning, scale: float, batch: int, better: int, *, small: bool) -> Finding:
    found = f"about {scale:,.0f} examples" if math.isfinite(scale) else "larger than can be measured"
    steps = ((learning.first + learning.stop) // 2, learning.stop)
    return quality_finding(
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
