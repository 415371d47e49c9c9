"""Which learning rates are usual for an optimizer."""

from typing import NamedTuple

from accel_engine.advice.quality.learning import Learning
from accel_engine.run.store.series_names import LEARNING_RATE


class RateRange(NamedTuple):
    """Learning rates between which most models train."""

    low: float
    """Below it, training from random weights is slow."""
    usual: float
    """A good first choice: Keras' default, or the rate of the optimizer's paper."""
    high: float
    """Above it, many models do not train at all."""


_ADAPTIVE = RateRange(5e-5, 1e-3, 2e-2)
"""Adam and similar optimizers divide each gradient by its size, so that a weight changes by about the learning rate.
Kingma and Ba, Adam, 2015, recommend 0.001, Keras' default."""

_RANGES = {
    "SGD": RateRange(1e-3, 1e-2, 1.0),  # Bengio, Practical recommendations for gradient-based training, 2012
    "Adagrad": RateRange(1e-4, 1e-2, 0.5),
    "Adadelta": RateRange(5e-2, 1.0, 10.0),  # Zeiler's paper has no rate, as if it were 1; Keras' 0.001 is slow
    "Lion": RateRange(5e-6, 1e-4, 3e-3),  # Chen et al., 2023: 3 to 10 times smaller than for Adam
    "Ftrl": RateRange(1e-4, 1e-2, 1.0),
    "Adafactor": RateRange(1e-5, 1e-3, 5e-2),
    "Muon": RateRange(5e-5, 1e-3, 5e-2),
} | dict.fromkeys(("Adam", "AdamW", "Adamax", "Nadam", "RMSprop", "Lamb"), _ADAPTIVE)


def rates_of(learning: Learning) -> RateRange | None:
    """The usual rates of a run's optimizer; ``None`` if it is unknown."""
    built = learning.built
    return _RANGES.get(built.optimizer) if built else None


def is_warming_up(learning: Learning) -> bool:
    """Whether the learning rate is still rising."""
    rates = learning.of(LEARNING_RATE).mean
    return len(rates) > 1 and bool(rates[-1] > 1.02 * rates[-max(2, len(rates) // 10)])


def is_rate_low(learning: Learning) -> bool:
    """Whether the highest learning rate is known to be below the usual ones."""
    rate, usual = learning.highest_rate, rates_of(learning)
    return bool(rate and usual and rate < usual.low * _without_momentum(learning))


def is_rate_high(learning: Learning) -> bool:
    """Whether the highest learning rate is known to be above the usual ones."""
    rate, usual = learning.highest_rate, rates_of(learning)
    return bool(rate and usual and rate > usual.high * _without_momentum(learning))


def _without_momentum(learning: Learning) -> float:
    """``1 - m`` for a momentum ``m``, with which the steps of equal gradients become ``1 / (1 - m)`` times as large."""
    return 1.0 - float(learning.settings.get("momentum") or 0.0)
