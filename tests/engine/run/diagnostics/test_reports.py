"""What a report has that says nothing of it."""

from typing import get_args

import numpy as np

from accel_engine.run.diagnostics.reports import (
    ClassificationReport,
    OutputReport,
    RegressionReport,
    Report,
    SamplePrediction,
    SegmentationReport,
)

NONE = np.zeros(0)


def test_what_was_not_counted_is_nothing() -> None:
    assert ClassificationReport().examples == 0
    assert SegmentationReport().ignored == 0
    values = dict.fromkeys(("mae", "rmse", "r2", "points", "residuals", "residual_edges"), NONE)
    assert RegressionReport(names=(), units=0, mean_mae=0.0, mean_rmse=0.0, **values).not_finite == 0


def test_an_output_has_any_of_the_reports() -> None:
    names = {each.__name__ for each in Report.__subclasses__()}
    assert {each.__name__ for each in get_args(OutputReport)} == names


def test_a_prediction_of_the_true_class_is_correct() -> None:
    right, wrong = (
        SamplePrediction(row=0, loss=0.0, label=label, predicted=1, confidence=0.5, true_class_probability=0.5)
        for label in (1, 2)
    )
    assert right.is_correct
    assert not wrong.is_correct
