"""The most confused pairs of classes."""

import numpy as np
import numpy.typing as npt

from accel_engine.run.diagnostics import EvaluationReport


def pair_name(examined: EvaluationReport, pair: tuple[int, int, int, float]) -> str:
    """A pair of classes: true as predicted."""
    return f"{examined.names[pair[0]]} as {examined.names[pair[1]]}"


def confused(examined: EvaluationReport, most: int = 1) -> list[tuple[int, int, int, float]]:
    """The most confused pairs: true class, predicted class, count, and share of the true class."""
    if examined.counts is None or most < 1:
        return []
    wrong: npt.NDArray[np.int64] = examined.counts.copy()
    np.fill_diagonal(wrong, 0)
    totals = examined.counts.sum(axis=1)
    rows, columns = np.nonzero(wrong)
    found = wrong[rows, columns]
    share = found / totals[rows]
    best = np.lexsort((columns, rows, -share, -found))[:most]
    return [(int(rows[i]), int(columns[i]), int(found[i]), float(share[i])) for i in best]
