from dataclasses import replace

import numpy as np
import pytest

from accel_engine.run.diagnostics import Scores
from accel_tui.widgets.diagnostics.score_plots import ScoredLabel, ScorePlots, best_threshold, figures_at
from tui.example_reports import histograms, rows_of_classes
from tui.stand_ins import BareApp, shows

LABEL = ScoredLabel("spam", np.array([1, 0, 2, 7]), np.array([30, 8, 2, 0]))


def test_figures_at_a_threshold() -> None:
    found = figures_at(LABEL, 0.5)
    assert (found.positives, found.negatives, found.predicted, found.examples) == (10, 40, 11, 50)
    assert found.precision == pytest.approx(9 / 11)
    assert found.recall == pytest.approx(9 / 10)
    assert found.f1 == pytest.approx(2 * 9 / (10 + 11))
    assert found.false_positive_rate == pytest.approx(2 / 40)
    assert found.accuracy == pytest.approx((9 + 38) / 50)


def test_nothing_is_divided_by_nothing() -> None:
    found = figures_at(LABEL, 1.0)
    assert np.isnan(found.precision)
    assert (found.recall, found.f1) == (0, 0)
    empty = figures_at(ScoredLabel("none", np.zeros(4, int), np.zeros(4, int)), 0.5)
    assert np.isnan([empty.precision, empty.recall, empty.f1, empty.accuracy]).all()


def test_the_best_threshold_has_the_highest_f1() -> None:
    assert best_threshold(LABEL) == 0.5
    assert best_threshold(ScoredLabel("all", np.array([0, 0, 0, 5]), np.array([5, 0, 0, 0]))) == 0.5
    assert best_threshold(ScoredLabel("low", np.array([0, 5, 0, 0]), np.array([5, 0, 0, 0]))) == 0.25


async def test_of_classes_whose_probabilities_are_all_nan_nothing_is_plotted() -> None:
    none = 0 * histograms().positives
    async with BareApp().run_test() as pilot:
        await pilot.app.screen.mount(page := ScorePlots())
        page.report = replace(rows_of_classes(), confidence=Scores(none, none))
        await shows(pilot, "correct predictions: 0 of 0 examples", "none of 0 predictions")


async def test_a_report_whose_examples_are_the_same_is_another_one() -> None:
    async with BareApp().run_test() as pilot:
        await pilot.app.screen.mount(page := ScorePlots())
        for correct in (333, 100):
            page.report = replace(rows_of_classes(), confidence=histograms(examples=3 * correct))
            await shows(pilot, f"correct predictions: {correct} of {3 * correct}")
