"""Rules on mistakes in scripts that Keras does not report as errors."""

from collections.abc import Iterator, Sequence

from accel_engine import events
from accel_engine.advice.finding import Confidence, Cure, Evidence, Finding
from accel_engine.advice.quality.findings import quality_finding
from accel_engine.advice.quality.learning import Learning
from accel_engine.advice.recorded import Recorded

FAULTS = {
    events.CLASS_WEIGHT_IGNORED: (
        "class-weight-ignored",
        "examples of these classes weigh as much as without them",
        "class_weight={0: 1.0, 1: 5.0}, with the integers of the targets as keys",
        0.7,
    ),
    events.EMPTY_BATCH: (
        "empty-batch-counted",
        "losses and metrics are lower than they are, by one batch of all; the optimizer takes a step more",
        "dataset.apply(tf.data.experimental.assert_cardinality(batches)), or batches without a fixed size",
        0.5,
    ),
    events.ARGUMENT_LOST: (
        "argument-lost",
        "the model is another one once it is saved and loaded, and nothing says so",
        'add each argument of __init__ in get_config, as in {**super().get_config(), "factor": self.factor}',
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
    messages = dict.fromkeys(each.message for each in learning.recorded.events if isinstance(each, events.Warned))
    for title, (name, cost, cure, weight) in FAULTS.items():
        found = [message.partition(": ")[2] for message in messages if message.startswith(f"{title}: ")]
        if found:
            evidence = [Evidence(each) for each in found]
            yield quality_finding(
                name, title, evidence, cost, [Cure(cure)], weight=weight, confidence=Confidence.CERTAIN
            )


def fewer_batches(learning: Learning) -> Iterator[Finding]:
    """Later epochs of a part of a script have fewer batches than its first: a generator has ended.

    Keras then trains on the two batches that it has kept (keras-team/keras#23360).
    """
    recorded = learning.recorded
    if recorded.info.kind != "script":
        return
    found = [(name, lengths) for name, lengths in _epoch_lengths(recorded) if _has_ended(lengths)]
    if not found:
        return
    several = len(recorded.all(events.PartStarted)) > 1
    evidence = [Evidence(f"{f'{name}: ' if several else ''}{_lengths_in_words(lengths)}") for name, lengths in found]
    yield quality_finding(
        "fewer-batches",
        "Later epochs have fewer batches than the first",
        evidence,
        "the model learns from a part of the data: a generator that has ended gives its last batches again, or none",
        [Cure("make a new generator for each epoch: fit in a loop, a keras.utils.PyDataset, or a tf.data dataset")],
        weight=0.8,
    )


def _epoch_lengths(recorded: Recorded) -> Iterator[tuple[str, list[int]]]:
    """The batches of each epoch, for each part of a script, and anew where a recording was continued."""
    name, start, last, lengths = "", 0, 0, list[int]()
    for event in recorded.events:
        match event:
            case events.RunStarted(first_step=first) | events.PartStarted(step=first):
                yield name, lengths
                start, last, lengths = first, first, []
                name = f"part {event.part} ({event.name})" if isinstance(event, events.PartStarted) else name
            case events.EpochEnded(step=step, metrics=metrics) if step > start or metrics:
                lengths.append(step - last)
                last = step
    yield name, lengths


def _has_ended(lengths: Sequence[int]) -> bool:
    """Whether the data of epochs has ended after the first one."""
    if len(lengths) < 2 or max(lengths[1:]) >= FEWER * lengths[0]:
        return False
    return len(lengths) > 2 or lengths[1] <= KEPT  # a callback may have ended the second


def _lengths_in_words(lengths: Sequence[int]) -> str:
    fewest, most = min(lengths[1:]), max(lengths[1:])
    later = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
    return f"the first epoch has {lengths[0]:,} batches, the {len(lengths) - 1:,} after it have {later}"
