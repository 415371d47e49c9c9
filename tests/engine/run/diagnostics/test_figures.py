"""Figures of confusion matrices and histograms, compared with their definitions on the examples."""

import numpy as np
import pytest

from accel_engine.run.diagnostics.figures import calibration, class_figures, curves


def histograms(chances: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
    bins = np.linspace(0, 1, 201)
    return [np.histogram(chances[labels == label], bins)[0] for label in (1, 0)]


def test_figures_of_classes_with_absent_ones() -> None:
    figures = class_figures(np.array([[8, 2, 0, 0], [1, 4, 0, 0], [3, 0, 0, 0], [0, 0, 0, 0]]))
    nan = np.nan
    np.testing.assert_allclose(figures.precision, [8 / 12, 4 / 6, nan, nan])
    np.testing.assert_allclose(figures.recall, [8 / 10, 4 / 5, 0, nan])
    np.testing.assert_allclose(figures.f1, [16 / 22, 8 / 11, 0, nan])
    np.testing.assert_allclose(figures.support, [10, 5, 3, 0])
    np.testing.assert_allclose(figures.iou, [8 / 14, 4 / 7, 0, nan])


def test_figures_of_labels_are_those_of_having_them() -> None:
    figures = class_figures(np.array([[[5, 1], [2, 4]], [[9, 0], [0, 0]]]))
    np.testing.assert_allclose(figures.precision, [4 / 5, np.nan])
    np.testing.assert_allclose(figures.recall, [4 / 6, np.nan])
    np.testing.assert_allclose(figures.support, [6, 0])


def test_the_area_under_the_curve_is_the_chance_of_a_right_order() -> None:
    numbers = np.random.default_rng(1)
    labels = (numbers.random(400) < 0.3).astype(int)
    # In the middle of bins, so that no order is lost.
    chances = (np.clip(numbers.normal(0.4 + 0.2 * labels, 0.2), 0, 0.999) * 200).astype(int) / 200 + 0.0025
    found = curves(*histograms(chances, labels))
    pairs = chances[labels == 1][:, np.newaxis] - chances[labels == 0]
    assert found.roc_auc == pytest.approx((pairs > 0).mean() + (pairs == 0).mean() / 2)
    threshold = 0.5
    index = int(np.argmin(np.abs(found.thresholds - threshold)))
    said = chances >= threshold
    assert found.true_positive_rate[index] == pytest.approx(said[labels == 1].mean())
    assert found.false_positive_rate[index] == pytest.approx(said[labels == 0].mean())
    assert found.precision[index] == pytest.approx(labels[said].mean())
    steps = sorted(set(chances), reverse=True)
    average, before = 0.0, 0.0
    for step in steps:
        recall = (chances[labels == 1] >= step).mean()
        average += (recall - before) * labels[chances >= step].mean()
        before = recall
    assert found.average_precision == pytest.approx(average)


def test_curves_without_positives_have_no_area() -> None:
    found = curves(np.zeros(200, np.int64), np.ones(200, np.int64))
    assert np.isnan(found.roc_auc)
    assert np.isnan(found.true_positive_rate).all()
    assert found.false_positive_rate[-1] == 1


def test_calibration() -> None:
    numbers = np.random.default_rng(1)
    chances = numbers.random(20_000)
    labels = (numbers.random(20_000) < chances).astype(int)
    right = calibration(*histograms(chances, labels))
    assert right.error < 0.02
    np.testing.assert_allclose(right.probability, np.arange(0.05, 1, 0.1), atol=0.01)
    assert right.examples.sum() == 20_000
    wrong = calibration(*histograms(np.full(100, 0.9025), np.arange(100) % 2))
    assert wrong.error == pytest.approx(0.4025)
    assert np.isnan(wrong.frequency[0])
