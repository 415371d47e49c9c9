"""Whether targets have to do with inputs: does the nearest neighbour of an example have the same target?

The error of the nearest neighbour is at most twice that of the best classifier, with many examples (Cover and Hart,
Nearest neighbor pattern classification, 1967): where neighbours agree, there is something to learn. Of hard data, such
as photographs, it says little.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

MAX_EXAMPLES = 1000
"""Examples that are compared with each other."""

MAX_FEATURES = 2048
"""Features that are compared: evenly spaced ones if there are more."""

MIN_EXAMPLES = 50
"""Examples below which nothing is measured."""


class Agreement(NamedTuple):
    """How often neighbours agree; see :class:`accel_engine.run.diagnostics.DataProfile`."""

    neighbours: float | None = None
    chance: float | None = None
    examples: int = 0


def agreement(
    values: npt.NDArray[np.float32],
    labels: npt.NDArray[np.int64] | None,
    numbers: npt.NDArray[np.float64] | None,
    *,
    standardize: bool,
) -> Agreement:
    """Measure it.

    Args:
        values: ``[examples, features]``.
        labels: The class of each, ``[examples]``; ``None`` if they have none.
        numbers: Or the number to predict.
        standardize: Whether to divide each feature by its standard deviation, as features of a table differ.
    """
    targets = labels if labels is not None else numbers
    if targets is None or len(values) < MIN_EXAMPLES or not np.isfinite(values).all():
        return Agreement()
    values, targets = _distinct(values[:MAX_EXAMPLES], targets[:MAX_EXAMPLES])
    if len(values) < MIN_EXAMPLES or not np.isfinite(targets).all() or np.ptp(targets) == 0:
        return Agreement()
    nearest = _nearest(values[:, :: -(-values.shape[1] // MAX_FEATURES)], standardize=standardize)
    if labels is None:
        return Agreement(_correlation(targets, targets[nearest]), 0.0, len(values))
    shares = np.unique(targets, return_counts=True)[1] / len(targets)
    return Agreement(float(np.mean(targets == targets[nearest])), float(np.sum(shares**2)), len(values))


def _distinct(
    values: npt.NDArray[np.float32], targets: npt.NDArray[np.generic]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    """The first of equal examples only: each of them would be the other's neighbour."""
    _, rows = np.unique(values @ np.random.default_rng(0).random(values.shape[1]), return_index=True)
    rows.sort()
    return values[rows], targets[rows].astype(np.float64)


def _nearest(values: npt.NDArray[np.float32], *, standardize: bool) -> npt.NDArray[np.intp]:
    centred = values - values.mean(axis=0)
    if standardize:
        spread = centred.std(axis=0)
        centred = centred[:, spread > 0] / spread[spread > 0]
    squares = np.einsum("ij,ij->i", centred, centred)
    distances = squares[:, np.newaxis] + squares - 2 * (centred @ centred.T)
    np.fill_diagonal(distances, np.inf)
    nearest: npt.NDArray[np.intp] = np.argmin(distances, axis=1)
    return nearest


def _correlation(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> float | None:
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])
