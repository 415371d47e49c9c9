"""The order in which examples come."""

import math
from collections.abc import Iterator

import numpy as np

from accel_engine.advice.finding import Confidence, Evidence, Finding
from accel_engine.advice.quality.findings import of_loss, quality_finding, set_field
from accel_engine.advice.quality.learning import Learning
from accel_engine.run.store.series_names import LEARNING_RATE
from accel_engine.words.numbers import percent

SORTED_SHARE = 0.5
"""From which share of equal neighbours examples are sorted by class: 0 is the share by chance, 1 is all."""

REPEATED = 0.5
"""Share of the variance of the loss within epochs that repeats in each of them."""

PATTERN_SIZE = 0.05
"""Standard deviation of what repeats, over the mean loss."""

SMOOTH = 0.3
"""Correlation of neighbours in what repeats, from which it is smooth; 1.7 / √steps more, as it varies by chance."""

MIN_STEPS = 12
"""Steps of an epoch in which a pattern can be seen."""


def not_shuffled(learning: Learning) -> Iterator[Finding]:
    """Examples come sorted by class, or the loss repeats the same pattern in each epoch."""
    profile, is_off = learning.profile, learning.settings.get("shuffle") == "off"
    evidence = list[Evidence]()
    if is_off and profile is not None and profile.class_runs is not None:
        counts = np.array(profile.classes, float)
        chance = float(np.sum((counts / counts.sum()) ** 2)) if counts.sum() else 1.0
        # where nearly all are of one class, neighbours are equal in any order
        if profile.class_runs > chance + SORTED_SHARE * (1 - chance) and chance < 0.9:
            evidence.append(
                Evidence(
                    f"the plan does not shuffle, and {percent(profile.class_runs, 1)} of the training examples have "
                    f"the class of the one before; {percent(chance, 1)} would by chance"
                )
            )
    if is_off or profile is None:
        evidence += [each for each in (_repeating_pattern(learning),) if each]
    if not evidence:
        return
    yield quality_finding(
        "not-shuffled",
        "Training examples are not shuffled",
        evidence,
        "a batch has few classes, so that each update forgets the others",
        [
            set_field(
                "Shuffle the training examples: --shuffle on",
                "fit(shuffle=True); dataset.shuffle(number of examples) before batch",
                shuffle="on",
            )
        ],
        weight=0.7,
        confidence=Confidence.CERTAIN if is_off else Confidence.LIKELY,
    )


def _repeating_pattern(learning: Learning) -> Evidence | None:
    """The loss rises and falls at the same steps of each epoch, smoothly, as where classes come one after the other."""
    loss, name = learning.loss, learning.loss_name
    ends = [each.step for each in learning.epochs]
    lengths = np.diff([learning.first, *ends])
    # a mean loss begins anew in each epoch, and so repeats
    if len(ends) < 3 or len(set(lengths.tolist())) != 1 or name != "loss":
        return None
    steps = int(lengths[0])
    rates = learning.recorded.of(LEARNING_RATE).between(ends[0], ends[1])
    if len(rates) and (np.diff(rates.mean) > 0).any():
        return None  # where the rate rises within an epoch, the loss may follow it
    if loss.width > 1 or steps < MIN_STEPS or len(loss) < 3 * steps or int(loss.first[0]) != learning.first:
        return None
    count = len(loss) // steps
    table = loss.mean[: count * steps].reshape(count, steps)
    if not (np.diff(loss.first[: count * steps]) == 1).all():
        return None
    table = table - table.mean(axis=1, keepdims=True)
    slope = np.linspace(-1, 1, steps)
    table -= (table @ slope / (slope @ slope))[:, np.newaxis] * slope
    pattern = table.mean(axis=0)
    repeated = float(pattern.var() / max(table.var(), 1e-30)) - 1 / count
    size = float(pattern.std()) / max(abs(float(loss.mean.mean())), 1e-30)
    neighbours = float(np.corrcoef(pattern[1:], pattern[:-1])[0, 1]) if pattern.std() > 0 else 0.0
    # In a fixed order of random batches, too, the pattern repeats, but neighbours are unlike: that does no harm.
    if repeated < REPEATED or size < PATTERN_SIZE or not neighbours > SMOOTH + 1.7 / math.sqrt(steps):
        return None
    worst = int(np.argmax(pattern))
    return of_loss(
        learning,
        f"{percent(repeated, 0)} of the variation of the loss within an epoch recurs in each of {count} epochs; the "
        f"loss is highest about step {worst:,} of {steps:,}",
    )
