"""Figures that follow from what a report stores: precision and recall, ROC, calibration, intersection over union."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64] | npt.NDArray[np.float64]


class ClassFigures(NamedTuple):
    """Figures of each class, float64 ``[classes]``; NaN where nothing can be divided."""

    precision: Floats
    """Share of the predictions of the class that are correct."""
    recall: Floats
    """Share of the examples of the class that are predicted as it."""
    f1: Floats
    """Harmonic mean of both; 0 without a correct prediction, NaN if the class neither occurs nor is predicted."""
    support: Floats
    """Number of examples of the class."""
    iou: Floats
    """Intersection over union."""


def class_figures(counts: npt.NDArray[np.int64]) -> ClassFigures:
    """Figures of a confusion matrix ``[classes, classes]``, or of one per label, ``[labels, 2, 2]``.

    True classes are rows. Of labels, the figures are of having the label.
    """
    if counts.ndim == 3:
        correct, true, predicted = counts[:, 1, 1], counts[:, 1].sum(1), counts[:, :, 1].sum(1)
    else:
        correct, true, predicted = np.diag(counts), counts.sum(1), counts.sum(0)
    return figures_of_sums(correct, true, predicted)


def figures_of_sums(correct: Counts, true: Counts, predicted: Counts) -> ClassFigures:
    """Figures of classes from counts.

    Args:
        correct: Examples of each class that are predicted as it, ``[..., classes]``.
        true: All examples of each class.
        predicted: All examples that are predicted as it.
    """
    return ClassFigures(
        _ratio(correct, predicted),
        _ratio(correct, true),
        _ratio(2 * correct, true + predicted),
        true.astype(np.float64),
        _ratio(correct, true + predicted - correct),
    )


class Curves(NamedTuple):
    """Curves of one label over the threshold, from 1 to 0; float64 ``[bins + 1]`` each."""

    thresholds: Floats
    """Examples with at least this probability are predicted to have the label."""
    true_positive_rate: Floats
    """Share of the positives that are found; also called recall."""
    false_positive_rate: Floats
    """Share of the negatives that are predicted to have the label."""
    precision: Floats
    """Share of the predicted examples that are positives; NaN without predicted examples."""
    roc_auc: float
    """Area under the ROC curve; NaN without positives or negatives. Exact up to ties within a bin, which count half."""
    average_precision: float
    """Mean of the precision over recall, in steps; NaN without positives."""


def curves(positives: npt.NDArray[np.int64], negatives: npt.NDArray[np.int64]) -> Curves:
    """The ROC and the precision-recall curve of the histograms of one label, ``[bins]`` each."""
    found, wrong = (np.concatenate([[0], np.cumsum(each[::-1])]) for each in (positives, negatives))
    recall, false_rate = _ratio(found, found[-1]), _ratio(wrong, wrong[-1])
    precision = _ratio(found, found + wrong)
    average = float(np.sum(np.diff(recall) * np.nan_to_num(precision[1:])))
    return Curves(
        np.linspace(1.0, 0.0, len(found)),
        recall,
        false_rate,
        precision,
        float(np.sum(np.diff(false_rate) * (recall[1:] + recall[:-1]) / 2)),
        average,
    )


class Calibration(NamedTuple):
    """How often predictions are right, by their probability; ``[bins]`` each."""

    probability: Floats
    """Mean probability of the predictions in the bin; NaN if there are none."""
    frequency: Floats
    """Share of them that are positives."""
    examples: npt.NDArray[np.int64]
    """Their number."""
    error: float
    """Expected calibration error: mean difference of both, weighted by the number of examples."""


def calibration(positives: npt.NDArray[np.int64], negatives: npt.NDArray[np.int64]) -> Calibration:
    """The calibration of the histograms of one label, in ten bins.

    Args:
        positives: ``[fine bins]``, a multiple of ten.
        negatives: The same.
    """
    middles = (np.arange(len(positives)) + 0.5) / len(positives)
    counts = positives + negatives
    examples, right, total = (each.reshape(10, -1).sum(1) for each in (counts, positives, counts * middles))
    probability, frequency = _ratio(total, examples), _ratio(right, examples)
    error = _ratio(np.nansum(np.abs(probability - frequency) * examples), examples.sum())
    return Calibration(probability, frequency, examples, float(error))


def _ratio(parts: npt.ArrayLike, wholes: npt.ArrayLike) -> Floats:
    """Quotients; NaN where a whole is 0."""
    wholes = np.asarray(wholes, np.float64)
    return np.asarray(parts, np.float64) / np.where(wholes == 0, np.nan, wholes)
