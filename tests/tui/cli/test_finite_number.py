import click
import pytest

from accel_tui.cli.options import FiniteNumber


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999"])
def test_what_is_not_finite_is_wrong_usage(value):
    with pytest.raises(click.BadParameter, match="is not a finite number"):
        FiniteNumber()(value)


def test_a_number_is_within_its_range():
    assert FiniteNumber(0, 10)("2.5") == 2.5
    with pytest.raises(click.BadParameter, match="not in the range"):
        FiniteNumber(0, 10)("11")
