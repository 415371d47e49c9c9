"""Batches that are too small for batch normalization, or so large that there are few updates."""

import math
from collections.abc import Iterator

from accel_engine.advice.finding import Confidence, Cure, Evidence, Finding
from accel_engine.advice.poor.findings import of_loss, poor_finding, set_field, text_cure
from accel_engine.advice.poor.learning import Learning, chance_loss, rate_of, start_and_end
from accel_engine.words import numbers

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
    table, built = learning.recorded.diagnostics.layers, learning.recorded.built
    if table is None or built is None or not built.per_replica_batch:
        return
    count = built.per_replica_batch // int(learning.settings.get("micro_batches") or 1)
    layers = [layer for layer in table.layers if layer.kind == "BatchNormalization" and layer.trainable]
    if not layers or not 0 < count <= SMALL_FOR_STATISTICS or not learning.stop:
        return
    yield poor_finding(
        "batch-norm-small-batch",
        "Batch normalization with very small batches",
        [
            Evidence(
                f"{len(layers)} layers take their statistics of {numbers.counted(count, 'example')} per replica, "
                f"first {layers[0].name}"
            )
        ],
        "statistics of so few examples are noise, and differ from those that validation uses",
        [
            _larger_batch(learning, max(LARGE_FOR_STATISTICS, LARGE_FOR_STATISTICS * built.replicas)),
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
    built, rate = learning.recorded.built, rate_of(learning.recorded)
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
    built = learning.recorded.built
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
    reference = max(start, chance_loss(learning.recorded) or 0.0)
    if end < 0.5 * reference or before - end < 0.003 * reference:
        return
    smaller = max(8, min(64, built.examples // 32))
    more = built.global_batch / smaller
    yield poor_finding(
        "batch-too-large",
        "The batch is so large that there are few updates",
        [
            Evidence(
                f"{built.global_batch:,} of {built.examples:,} examples a step: {built.steps_per_epoch} updates an "
                "epoch"
            ),
            of_loss(
                learning,
                f"after {len(learning.loss):,} updates the loss is {numbers.metric(end)}, of "
                f"{numbers.metric(start)}, and still falls",
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
