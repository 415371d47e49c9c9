"""A stored report has the shapes that its screen expects."""

from typing import Any

import numpy as np
import pytest

from accel_engine.run.diagnostics.report_shapes import check_shapes
from accel_engine.run.diagnostics.reports import ClassificationReport, Example
from accel_engine.run.diagnostics.views import Image, Parts, Row


def image(*shape: int) -> Image:
    return Image(np.zeros(shape, np.uint8))


def report(view: Any) -> ClassificationReport:
    return ClassificationReport(worst=(Example(row=0, loss=0.0, input=view),))


@pytest.mark.parametrize(
    ("view", "problem"),
    [
        (image(2, 3), r"pixels has the shape \[2, 3\]"),
        (image(2, 3, 2), "an image has no 2 channels"),
        (Row(("a", "b"), ("1",), 2), r"values has the shape \[1\]"),
        (Parts(("one",), (image(2),)), r"pixels has the shape \[2\]"),
    ],
)
def test_what_an_example_shows_is_checked(view: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        check_shapes((report(view),))


def test_whole_ones_pass() -> None:
    check_shapes((report(image(2, 3, 1)), report(Parts(("one",), (Row(("a",), ("1",), 1),)))))
