"""Learning rates that are far too low or too high, by how the loss behaves."""

from collections.abc import Iterator

import numpy as np

from accel_engine.advice.finding import Confidence, Evidence, Finding
from accel_engine.advice.quality.findings import of_loss, quality_finding, rate_cure, set_field, text_cure
from accel_engine.advice.quality.fit_rules import is_underfit
from accel_engine.advice.quality.learning import Learning, block_means, curve_noise, start_and_end
from accel_engine.advice.quality.usual_rates import is_rate_high, is_rate_low, is_warming_up, rates_of
from accel_engine.run.store.series_names import LEARNING_RATE
from accel_engine.run.store.steps import TIME
from accel_engine.words.numbers import metric, span

MIN_STEPS = 20
"""Steps from which a trend of the loss is judged."""

LITTLE_LEARNED = 0.1
"""Share of the first loss by which it has fallen at most where the rate is too low."""

STEADY_LEARNED = 0.35
"""The same where the loss falls as fast at the end as at the beginning."""

EXPLODED = 3.0
"""The highest of the early losses over the first one, above which the first updates made it worse."""

RISEN = 1.5
"""The early losses over the first one, or over chance, from which updates at an unusual rate overshoot."""

EARLY = 0.2
"""Share of the steps that are early."""

UNRECOVERED = 0.4
"""The last loss over the first one, or over chance, above which the model has not recovered."""


def rate_low(learning: Learning) -> Iterator[Finding]:
    """The rate is below the usual ones, and the loss falls slowly and steadily from where chance has it."""
    chance, loss = learning.chance_loss, learning.loss
    rate, usual = learning.highest_rate, rates_of(learning)
    if not learning.is_fresh or len(loss) < MIN_STEPS or not is_rate_low(learning) or rate is None or usual is None:
        return
    if is_warming_up(learning):
        return
    start, end = start_and_end(loss)
    if chance is None or start < 0.8 * chance or start <= 0:
        return
    fallen = (start - end) / start
    if not (fallen < LITTLE_LEARNED or (fallen < STEADY_LEARNED and _falls_steadily(loss.mean))):
        return
    wanted = usual.usual
    yield quality_finding(
        "learning-rate-low",
        "The learning rate is too low",
        [
            of_loss(
                learning,
                f"the loss was {metric(start)} and is {metric(end)}; chance gives {metric(chance)}",
            ),
            Evidence(
                f"the learning rate is {rate:.3g} at its highest; usual for this optimizer is about {wanted:g}",
                "learning_rate",
            ),
        ],
        f"at this pace, learning takes {wanted / rate:,.0f} times as many steps",
        [
            rate_cure(
                wanted, f"up to {wanted / rate:,.0f} times as much learned per step", "the ratio of the learning rates"
            )
        ],
        weight=0.9,
        confidence=Confidence.LIKELY,
    )


PLATEAU_SECONDS = 600.0
"""Seconds without a lower loss, from which a plateau matters; pauses count."""

PLATEAU_RATES = 0.5
"""The last learning rate over the highest one, from which no schedule lowers it."""


def plateau(learning: Learning) -> Iterator[Finding]:
    """The loss has been the same for half of a long run, and nothing lowers the learning rate."""
    recorded, means = learning.recorded, block_means(learning.loss, 20)
    if len(means) < 20 or len(learning.loss) < 200 or learning.settings.get("patience"):
        return
    half, end = means[10:15], means[15:]
    noise = curve_noise(means[10:])
    gained, whole = float(half.mean() - end.mean()), float(means[0] - means.min())
    if whole <= 0 or gained > 0.01 * whole or abs(gained) > 2 * noise + 0.01 * whole:
        return
    middle = int(learning.loss.first[len(learning.loss) // 2])
    times = recorded.of(TIME).between(middle, learning.stop).mean
    rates = learning.of(LEARNING_RATE).mean
    seconds = recorded.seconds_worked(float(times[0]), float(times[-1])) if len(times) > 1 else 0.0
    if seconds < PLATEAU_SECONDS or (len(rates) and rates[-1] < PLATEAU_RATES * rates.max()):
        return
    yield quality_finding(
        "plateau",
        "The loss has stopped falling",
        [
            of_loss(
                learning,
                f"since step {middle:,}, for {span(seconds)}, the loss is about {metric(end.mean())}; "
                f"it began at {metric(means[0])}",
                (middle, learning.stop),
            )
        ],
        "half of the time taught nothing that the loss shows",
        [
            set_field(
                "Lower the learning rate during training: --schedule cosine",
                "keras.callbacks.ReduceLROnPlateau(), or a CosineDecay",
                "often a lower loss: a constant rate keeps weights moving about their best values",
                "the constant learning rate",
                schedule="cosine",
            ),
            text_cure("Or stop, or use a larger model", "EarlyStopping(monitor='loss')"),
        ],
        weight=0.3,
        confidence=Confidence.POSSIBLE,
    )


def _falls_steadily(values: np.ndarray) -> bool:
    """Whether the second half falls at least 0.6 times as fast as the first one."""
    thirds = [part.mean() for part in np.array_split(values, 3)]
    first, second = thirds[0] - thirds[1], thirds[1] - thirds[2]
    return bool(first > 0 and second > 0.6 * first)


def rate_high(learning: Learning) -> Iterator[Finding]:
    """The rate is above the usual ones, or the first updates made the loss far larger; and it shows.

    It shows in a loss that has not fallen, in an accuracy far below nearest neighbours', or, where the rate is
    above the usual ones, in first updates that made the loss larger: the model may recover from these, and the finding
    is then only possible.
    """
    loss, chance, rate = learning.loss, learning.chance_loss, learning.highest_rate
    if len(loss) < MIN_STEPS or learning.first_loss <= 0:
        return
    first, above = max(learning.first_loss, chance or 0.0), is_rate_high(learning)
    opening = learning.opening
    early = opening.mean[: max(5, int(EARLY * len(loss)))]
    peak, end = float(early.max()), start_and_end(loss)[1]
    usual = rates_of(learning)
    has_risen = _stays_above(early, RISEN * first)
    exploded = has_risen and peak > EXPLODED * first
    if exploded and (_has_large_start(learning) or (rate is not None and usual is not None and rate <= usual.usual)):
        return  # something else explodes
    unrecovered = end > (UNRECOVERED if chance is not None else 1.0) * first or (above and is_underfit(learning))
    if not (unrecovered and (exploded or above)) and not (above and has_risen):
        return
    wanted = min(usual.usual, rate / 10) if usual and rate else None
    evidence = [_early_rise(learning, early) if has_risen else _little_learned(learning)]
    if rate is not None and usual is not None:
        shown = f"the learning rate is {rate:.3g}; usual for this optimizer is about {usual.usual:g}"
        evidence.append(Evidence(shown, "learning_rate"))
    cure = (
        rate_cure(wanted, "a loss that falls from the first steps on", "the usual rates of this optimizer")
        if wanted
        else text_cure(
            "Use a learning rate 10 to 100 times smaller: --learning-rate", "compile(optimizer=...(learning_rate=...))"
        )
    )
    yield quality_finding(
        "learning-rate-high",
        "The learning rate is too high",
        evidence,
        "updates overshoot, and the model learns little"
        if unrecovered
        else "updates overshoot: the first steps only make good for them",
        [cure],
        weight=0.95 if unrecovered else 0.5,
        confidence=(Confidence.CERTAIN if exploded and above else Confidence.LIKELY)
        if unrecovered
        else Confidence.POSSIBLE,
    )


def _early_rise(learning: Learning, early: np.ndarray) -> Evidence:
    """The highest of the first losses, and the last one."""
    opening, worst = learning.opening, int(np.argmax(early))
    return of_loss(
        learning,
        f"the loss rose from {metric(learning.first_loss)} to {metric(early.max())} within the "
        f"first steps, and ends at {metric(learning.last_loss)}",
        (int(opening.first[0]), int(opening.first[worst]) + opening.width),
    )


def _little_learned(learning: Learning) -> Evidence:
    end = learning.last_loss
    return of_loss(learning, f"the loss is {metric(end)} at the end; it began at {metric(learning.first_loss)}")


def _stays_above(values: np.ndarray, level: float) -> bool:
    """Whether two neighbouring values are above a level: not a single unusual batch."""
    above = values > level
    return bool((above[1:] & above[:-1]).any())


def _has_large_start(learning: Learning) -> bool:
    """Whether the first loss is far above chance, as with inputs that are not scaled."""
    chance = learning.chance_loss
    return chance is not None and learning.first_loss > EXPLODED * chance
