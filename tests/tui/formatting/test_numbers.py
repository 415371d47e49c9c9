"""Durations, rates and metrics for people."""

import math

import pytest

from accel_tui.formatting.numbers import compact, duration, metric


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0:00"), (7.9, "0:08"), (59.6, "1:00"), (754, "12:34"), (3 * 3600 + 309, "3:05:09"), (52 * 3600, "2d 04h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.00"),
        (0, "0"),
        (44, "44"),
        (7.25, "7.25"),
        (99.96, "100"),
        (648, "648"),
        (999.6, "1.00k"),
        (62_345, "62.3k"),
        (1e16, "10.0P"),
        (1e22, "10000E"),
    ],
)
def test_rates(number: float, text: str) -> None:
    assert compact(number) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.2867, "0.2867"), (0.0, "0.0000"), (12.345, "12.35"), (3.2e-5, "3.2e-5"), (-1.0, "-1.0000"), (math.nan, "nan")],
)
def test_metrics(value: float, text: str) -> None:
    assert metric(value) == text
