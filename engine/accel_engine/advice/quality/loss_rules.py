"""Losses that diverge, jump, or stay where they began."""

import math
from collections.abc import Iterator

import numpy as np

from accel_engine.advice.finding import Confidence, Evidence, Finding
from accel_engine.advice.quality.findings import clip_cures, of_loss, quality_finding, rate_cure, set_field, text_cure
from accel_engine.advice.quality.learning import Learning, block_means, start_and_end
from accel_engine.advice.quality.usual_rates import is_rate_low, is_warming_up
from accel_engine.words.numbers import metric

HELD = 0.05
"""How much worse than its best an accuracy may be, or the share of itself that another metric may, to be as good."""

DIVERGED = 2.0
"""The last losses over the lowest ones, above which a run diverged."""

SPIKE = 4.0
"""A spike over the level around it."""

SPIKE_STEPS = 3
"""Neighbouring values that are above half of it: after a bad update the loss takes some steps to fall, after an unusual
batch it does not."""

SPIKE_EXAMPLES = 64
"""Examples of these: fewer may all be unusual."""

MIN_SPIKES = 3

FLAT_STEPS = 100
"""Steps after which a loss that has not fallen is flat."""


def diverging(learning: Learning) -> Iterator[Finding]:
    """The loss fell and then rose far above its lowest level."""
    means = block_means(learning.loss, 20)
    if len(means) < 10 or means.min() <= 0:
        return
    lowest = int(np.argmin(means[:-2])) if len(means) > 2 else 0
    last, best = float(np.median(means[-3:])), float(means[lowest])
    rise = last - best
    if last < DIVERGED * best or lowest > len(means) - 4 or rise < 0.2 * abs(float(means[0])):
        return
    if float(means[-2:].mean()) < 0.7 * float(means[lowest + 1 :].max()) or _metric_holds(learning):
        return  # it falls again, or has a term that grows by design
    step = int(learning.loss.first[min(len(learning.loss) - 1, int(lowest * len(learning.loss) / len(means)))])
    is_known = learning.has_known_loss  # another one may have a term that grows by design
    rate = learning.highest_rate
    cures = [rate_cure(rate / 10, "a loss that keeps falling", "updates in proportion to the rate")] if rate else []
    yield quality_finding(
        "diverging",
        "The loss diverges",
        [
            of_loss(
                learning,
                f"the loss was {metric(best)} about step {step:,}, and is {metric(last)} now",
                (step, learning.stop),
            )
        ],
        "what was learned is lost",
        [
            *cures,
            *clip_cures(learning),
            set_field(
                "Warm the rate up: --schedule cosine --warmup 5%",
                "CosineDecay(0.0, steps, warmup_target=..., warmup_steps=...)",
                schedule="cosine",
                warmup=0.05,
            ),
        ],
        weight=0.95 if is_known else 0.6,
        confidence=Confidence.LIKELY if is_known else Confidence.POSSIBLE,
    )


def _metric_holds(learning: Learning) -> bool:
    """Whether the accuracy, or else the metric that counts, is about as good as its best."""
    accuracy = learning.of(learning.accuracy_name)
    means = block_means(accuracy, 20)
    if len(means) >= 10:
        return bool(means[-3:].mean() > means.max() - HELD)
    for name, lower in learning.monitored():
        values = learning.validation(name)[1]
        if name != "loss" and len(values) >= 3:
            signed = -values if lower else values
            return bool(np.median(signed[-2:]) > signed.max() - HELD * max(1.0, abs(float(signed.max()))))
    return False


def spikes(learning: Learning) -> Iterator[Finding]:
    """The loss jumps several times, and takes some steps each time to fall again."""
    loss = learning.loss
    if len(loss) < 100 or loss.mean.min() <= 0:
        return
    values, found = loss.mean, list[int]()
    level = _running_median(values, 51)
    limit = np.maximum(SPIKE * level, level + 0.25 * float(np.median(values[:5])))
    built = learning.built
    batch = (built.global_batch if built else None) or SPIKE_EXAMPLES
    length = max(SPIKE_STEPS, -(-SPIKE_EXAMPLES // (batch * loss.width)))
    index = 10
    while index < len(values) - length:
        high = values[index : index + length]
        if values[index] > limit[index] and (high > level[index] + (values[index] - level[index]) / 4).all():
            found.append(index)
            index += 20
        index += 1
    if len(found) < MIN_SPIKES:
        return
    steps = [int(loss.first[index]) for index in found]
    highest = max(float(values[index] / level[index]) for index in found)
    yield quality_finding(
        "loss-spikes",
        "The loss jumps again and again",
        [
            of_loss(
                learning,
                f"{len(found)} times, first at step {steps[0]:,}, it rose to up to {highest:.1f} times its level for "
                "some steps",
                (steps[0], steps[-1] + length * loss.width),
            )
        ],
        "each time, some steps only make good for it",
        [
            *clip_cures(learning),
            text_cure("Use a smaller learning rate: --learning-rate", "optimizer.learning_rate = ..."),
        ],
        weight=0.4,
    )


def _running_median(values: np.ndarray, width: int) -> np.ndarray:
    padded = np.pad(values, width // 2, mode="edge")
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, width), axis=1)


def constant_output(learning: Learning) -> Iterator[Finding]:
    """The model gives the same output for all examples: dead units, or saturated ones."""
    if len(learning.loss) < 30 or not _is_at_chance(learning):
        return
    report, regression = learning.classification, learning.regression
    if report is not None and report.counts is not None and report.confidence is not None:
        predicted = report.counts.sum(axis=0)
        bins = (report.confidence.positives + report.confidence.negatives).sum(axis=0)
        total = max(int(predicted.sum()), 1)
        same = predicted.max() / total > 0.995 and _neighbours(bins) > 0.99
        name = report.names[int(predicted.argmax())]
        text = f"all of {total:,} validation examples get class {name}, as sure as each other"
    elif regression is not None and regression.points.size:
        true, given = regression.points[0].std(axis=0)
        same, total = bool(given < 0.01 * true), regression.points.shape[1]
        spread = f"deviate by {metric(given)}, their targets by {metric(true)}"
        text = f"predictions of {total:,} validation examples {spread}"
    else:
        return
    if not same or total < 20:
        return
    yield quality_finding(
        "constant-output",
        "The model gives the same output for every example",
        [
            Evidence(text, f"validation_{learning.accuracy_name or 'loss'}"),
            of_loss(learning, _at_chance_text(learning)),
        ],
        "nothing is learned from the inputs: units are dead (a ReLU that never is above 0) or saturated",
        [
            text_cure(
                "Use the default initializers, a smaller learning rate, LeakyReLU or batch normalization",
                "Dense(units, 'leaky_relu'); look at the outputs of each layer: keras.Model(model.inputs, "
                "layer.output)",
            ),
            set_field("Record the gradients by layer: --gradient-norm layers", "", gradient_norm="layers"),
        ],
        weight=0.95,
    )


def _neighbours(bins: np.ndarray) -> float:
    """The share in the fullest bin and its neighbours."""
    total = bins.sum()
    return float(np.convolve(bins, np.ones(3), "same").max() / total) if total else 0.0


def _is_at_chance(learning: Learning) -> bool:
    """Whether the last losses are as by chance, and the accuracy of training, too."""
    chance, recorded = learning.chance_loss, learning.recorded
    if chance is None or not len(learning.loss):
        return False
    end = learning.last_loss
    name, guess = learning.accuracy_name, learning.chance_accuracy
    if end < 0.95 * chance:
        return False
    accuracy = recorded.of(name)
    return guess is None or not len(accuracy) or start_and_end(accuracy)[1] < guess + 0.05


def _at_chance_text(learning: Learning) -> str:
    """The last loss beside the loss by chance."""
    start, end = start_and_end(learning.loss)
    chance = learning.chance_loss or math.nan
    fell = f"the loss began at {metric(start)} and is {metric(end)}"
    return f"{fell}; knowing only how often each target occurs gives {metric(chance)}"


def loss_flat(learning: Learning) -> Iterator[Finding]:
    """The loss has not fallen below chance, and nothing else says why."""
    if not learning.is_fresh or learning.recorded.steps - learning.first < FLAT_STEPS or not _is_at_chance(learning):
        return
    if is_warming_up(learning) or (len(learning.epochs) < 3 and learning.recorded.steps < 10 * FLAT_STEPS):
        return
    means = block_means(learning.loss, 10)
    if means[0] - means[-1] > 0.2 * means[0] or (
        means[-2:].min() < 0.95 * means.max() and means[-1] < means[-3] * 0.99
    ):
        return  # it falls, from far above
    low = is_rate_low(learning)
    yield quality_finding(
        "loss-flat",
        "The loss stays where chance has it",
        [of_loss(learning, _at_chance_text(learning))],
        "the model has learned nothing yet",
        [
            text_cure(
                "Check, in this order: that inputs and targets belong together; that inputs are scaled; a learning "
                f"rate {'10 to 100 times larger' if low else '10 times larger and smaller'}; the last activation and "
                "the loss",
                "Try to learn 20 examples by heart: a model that cannot is faulty itself",
            )
        ],
        weight=0.9,
    )
