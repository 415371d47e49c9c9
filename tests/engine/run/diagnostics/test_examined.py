"""Reports as older programs wrote them."""

import math
from typing import Any

import pytest

from accel_engine.run.diagnostics.examined import unpack_examined
from accel_engine.run.diagnostics.reports import MAX_CLASSES, ClassificationReport

HEAD = {"examples": 1, "reason": "", "names": [], "cells": 0, "pictures": None, "worst": []}


def unpacked(**changes: Any) -> ClassificationReport:
    (report,) = unpack_examined(HEAD | changes, b"").outputs
    assert isinstance(report, ClassificationReport)
    return report


@pytest.mark.parametrize("classes", [1, MAX_CLASSES])
def test_as_many_classes_as_there_may_be(classes: int) -> None:
    counts = unpacked(classes=classes).counts
    assert counts is not None
    assert counts.shape == (classes, classes)


@pytest.mark.parametrize("classes", [0, MAX_CLASSES + 1, -1])
def test_more_or_fewer_are_damage(classes: int) -> None:
    with pytest.raises(ValueError, match=r"classes|no whole number"):
        unpacked(classes=classes)


def test_the_loss_of_an_impossible_class_is_finite() -> None:
    worst = {"row": 0, "label": 1, "said": 0, "confidence": 1.0, "chance": 0.0}
    assert unpacked(classes=None, worst=[worst]).worst[0].loss == pytest.approx(-math.log(1e-7))
