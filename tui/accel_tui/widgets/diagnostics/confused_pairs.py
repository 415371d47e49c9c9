"""The confusion matrix of a report, and the most confused pairs of classes."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accel_engine.run.diagnostics import ClassificationReport, OutputReport, SegmentationReport, SequenceReport


@dataclass(frozen=True, slots=True, eq=False)
class Confusion:
    """A confusion matrix.

    Attributes:
        names: Class names.
        counts: True classes as rows and predicted ones as columns, int64 ``[classes, classes]``.
        noun: What is counted where it is not an example, ``pixel`` or ``token``.
    """

    names: tuple[str, ...]
    counts: npt.NDArray[np.int64]
    noun: str = ""


def confusion_of(report: OutputReport | None) -> Confusion | None:
    """The confusion matrix of a report; ``None`` if it has none."""
    if not isinstance(report, ClassificationReport | SegmentationReport | SequenceReport) or report.counts is None:
        return None
    classes = len(report.counts)
    names = (*report.names[:classes], *map(str, range(len(report.names), classes)))
    noun = {SegmentationReport: "pixel", SequenceReport: "token"}.get(type(report), "")
    return Confusion(names, report.counts, noun)


def pair_name(confusion: Confusion, pair: tuple[int, int, int, float]) -> str:
    """A pair of classes: true as predicted."""
    return f"{confusion.names[pair[0]]} as {confusion.names[pair[1]]}"


def confused(confusion: Confusion, limit: int = 1) -> list[tuple[int, int, int, float]]:
    """The most confused pairs: true class, predicted class, count, and share of the true class."""
    if limit < 1:
        return []
    wrong: npt.NDArray[np.int64] = confusion.counts.copy()
    np.fill_diagonal(wrong, 0)
    totals = confusion.counts.sum(axis=1)
    rows, columns = np.nonzero(wrong)
    found = wrong[rows, columns]
    share = found / totals[rows]
    best = np.lexsort((columns, rows, -share, -found))[:limit]
    return [(int(rows[i]), int(columns[i]), int(found[i]), float(share[i])) for i in best]
