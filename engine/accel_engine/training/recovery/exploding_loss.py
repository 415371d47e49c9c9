"""Finds out from the losses of a run's steps that training diverges, although they are still finite.

A loss explodes if :data:`SUSTAINED` steps in a row are all far above everything before: above :data:`FACTOR` times the
highest level so far, and above the median of the recent steps by :data:`FACTOR` times their spread. The level is the
median of the absolute losses of :data:`BLOCK` steps, so that single steps do not count. The last :data:`LAG` steps are
compared with those before them: otherwise a loss that grows by some percent at each step would take the level with it.

All of this is relative, so that the scale of the loss does not matter, nor whether it may be negative. A false alarm
would cost a healthy run its learning rate, so that the limits are wide: a loss that only rises to a plateau, as a
crossentropy of clipped probabilities does, does not explode; nor does one that falls again. While examples come in an
order that may change all of a sudden, such as that of two data sets one after the other, the loss has to grow on.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FACTOR = 100.0
"""How far the loss has to be above its level, as a multiple."""

CUSTOM_FACTOR = 10_000.0
"""The same for a custom ``train_step``, whose losses may be a game of two models, such as those of a GAN."""

BLOCK = 20
"""Steps whose median is a level."""

SUSTAINED = 20
"""Steps in a row that have to be that far above."""

LAG = 100
"""The last steps, which are not part of what they are compared with."""

RECENT = 200
"""Steps before those whose median and spread count."""

FIRST = 100
"""Steps before the first comparison, besides the last ones."""

FALLS, GROWS = 0.5, 2.0
"""The median of the later half of these steps, as a multiple of that of the earlier half: a loss that recovers, and one
that grows by 7% at each step."""

Losses = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Explosion:
    """A loss that explodes.

    Attributes:
        step: The first step, counted from 0, from which on the loss has been above its recent range.
        level: The highest level of the loss before.
        loss: The loss of the last step.
    """

    step: int
    level: float
    loss: float


class ExplodingLoss:
    """Follows the losses of a run.

    Args:
        step: The number of the first step that will be added.
        factor: How far the loss has to be above its level.
        in_order: How many of the next steps may have other examples than those before them, as the data is not
            shuffled: all steps of a pass over it; ``math.inf`` for a stream, whose order is unknown.
    """

    def __init__(self, step: int, factor: float = FACTOR, in_order: float = 0) -> None:
        self._next = step
        self._factor = factor
        self._must_grow_until = step + in_order
        self._recent: Losses = np.zeros(0)
        self._block: Losses = np.zeros(0)
        self._count = 0
        self._level = 0.0

    def add(self, losses: npt.NDArray[np.float32]) -> Explosion | None:
        """Add the losses of some steps, ``[n]``; returns the explosion if there is one.

        Those that are not finite are no part of it.
        """
        for start in range(0, len(losses), SUSTAINED):  # as often as it may be decided, whatever the size of a chunk
            if explosion := self._add(np.asarray(losses[start : start + SUSTAINED], np.float64)):
                return explosion
        return None

    @property
    def grew_from(self) -> int | None:
        """The step from which on the losses grew to far above what they had been; ``None`` if the last one is usual.

        Unlike :meth:`add`, this looks at the last loss only, after which losses are not finite.
        """
        sizes = np.abs(self._recent)
        if not len(sizes) or sizes[-1] <= FACTOR * np.median(sizes):
            return None
        return self._began(10 * float(np.quantile(sizes, 0.1)))

    def _add(self, losses: Losses) -> Explosion | None:
        self._next += len(losses)
        every = np.concatenate([self._recent, self._filled(losses)])
        self._recent = every[-(RECENT + LAG) :]
        self._add_to_level(every[-(len(losses) + LAG) : -LAG])
        reference, last = self._recent[:-LAG], self._recent[-SUSTAINED:]
        limit = self._factor * self._level
        if self._count < FIRST or not limit or last.min() <= limit:
            return None
        lowest, middle, highest = np.quantile(reference, [0.1, 0.5, 0.9])
        if last.min() <= middle + self._factor * (highest - lowest) or self._recovers(last):
            return None
        return Explosion(self._began(highest), self._level, float(last[-1]))

    def _recovers(self, last: Losses) -> bool:
        """Whether the last losses fall; or, while they may be of other examples, whether they grow no more."""
        half = len(last) // 2
        growth = float(np.median(last[half:]) / np.median(last[:half]))
        return growth <= (GROWS if self._next <= self._must_grow_until else FALLS)

    def _filled(self, losses: Losses) -> Losses:
        """Losses with a usual one in place of each that is not finite."""
        is_finite = np.isfinite(losses)
        if is_finite.all():
            return losses
        usual = losses[is_finite] if is_finite.any() else self._recent[-1:]
        return np.where(is_finite, losses, np.median(usual) if len(usual) else 0.0)

    def _add_to_level(self, losses: Losses) -> None:
        """Take losses into account that are no longer among the last ones."""
        self._count += len(losses)
        self._block = np.concatenate([self._block, losses])
        while len(self._block) >= BLOCK:
            self._level = max(self._level, float(np.median(np.abs(self._block[:BLOCK]))))
            self._block = self._block[BLOCK:]

    def _began(self, usual: float) -> int:
        """The step after the last one whose loss was usual or lower."""
        (before,) = np.nonzero(self._recent <= usual)
        return self._next - len(self._recent) + (int(before[-1]) + 1 if len(before) else 0)
