"""What Keras does in a script otherwise than its author means, without an error."""

from collections.abc import Iterator

import numpy as np

from accel_engine.advice.finding import Confidence, Cure, Evidence, Finding
from accel_engine.advice.quality.findings import quality_finding
from accel_engine.advice.quality.learning import Learning
from accel_engine.events import CLASS_WEIGHT_IGNORED, EMPTY_BATCH, Warned

FAULTS = {
    CLASS_WEIGHT_IGNORED: (
        "class-weight-ignored",
        "examples of these classes weigh as much as without them",
        "class_weight={0: 1.0, 1: 5.0}, with the integers of the targets as keys",
        0.7,
    ),
    EMPTY_BATCH: (
        "empty-batch-counted",
        "losses and metrics are lower than they are, by one batch of all; the optimizer takes a step more",
        "dataset.apply(tf.data.experimental.assert_cardinality(batches)), or batches without a fixed size",
        0.5,
    ),
}
"""Id, cost, cure and weight of a fault of a call of ``fit``, by how the warning on it begins."""

FEWER = 0.9
"""Batches of an epoch as a share of the first epoch's, below which data is missing."""

KEPT = 2
"""The batches that Keras has kept of a generator."""


def fit_faults(learning: Learning) -> Iterator[Finding]:
    """Keras carries out a call of ``fit`` otherwise than it says, as its recorder has seen."""
    messages = dict.fromkeys(each.message for each in learning.recorded.events if isinstance(each, Warned))
    for title, (name, cost, cure, weight) in FAULTS.items():
        found = [message.partition(": ")[2] for message in messages if message.startswith(f"{title}: ")]
        if found:
            evidence = [Evidence(each) for each in found]
            yield quality_finding(
                name, title, evidence, cost, [Cure(cure)], weight=weight, confidence=Confidence.CERTAIN
            )


def fewer_batches(learning: Learning) -> Iterator[Finding]:
    """Later epochs of a script have fewer batches than the first: a generator has ended.

    Keras then trains on the two batches that it has kept (keras-team/keras#23360).
    """
    if learning.recorded.info.kind != "script":
        return
    first = max(learning.first, learning.recorded.history.resumed_at)
    ends = [each for each in learning.epochs if each.step > first or each.metrics]
    lengths = np.diff([first, *(each.step for each in ends)])
    if len(lengths) < 2 or max(lengths[1:]) >= FEWER * lengths[0]:
        return
    if len(lengths) == 2 and lengths[1] > KEPT:  # a callback may have ended it
        return
    fewest, most = int(min(lengths[1:])), int(max(lengths[1:]))
    later = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
    yield quality_finding(
        "fewer-batches",
        "Later epochs have fewer batches than the first",
        [Evidence(f"the first epoch has {int(lengths[0]):,} batches, the {len(lengths) - 1:,} after it have {later}")],
        "the model learns from a part of the data: a generator that has ended gives its last batches again, or none",
        [Cure("make a new generator for each epoch: fit in a loop, a keras.utils.PyDataset, or a tf.data dataset")],
        weight=0.8,
    )
