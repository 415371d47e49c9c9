"""The most confused pairs of classes."""

import numpy as np
import numpy.typing as npt

from accel_engine.run.diagnostics import EvaluationReport


def pair_name(report: EvaluationReport, pair: tuple[int, int, int, float]) -> str:
    """A pair of classes: true as predicted."""
    return f"{report.names[pair[0]]} as {report.names[pair[1]]}"


def confused(report: EvaluationReport, limit: int = 1) -> list[tuple[int, int, int, float]]:
    """The most confused pairs: true class, predicted class, count, and share of the true class."""
    if report.counts is None or limit < 1:
        return []
    wrong: npt.NDArray[np.int64] = report.counts.copy()
    np.fill_diagonal(wrong, 0)
    totals = report.counts.sum(axis=1)
    rows, columns = np.nonzero(wrong)
    found = wrong[rows, columns]
    share = found / totals[rows]
    best = np.lexsort((columns, rows, -share, -found))[:limit]
    return [(int(rows[i]), int(columns[i]), int(found[i]), float(share[i])) for i in best]
