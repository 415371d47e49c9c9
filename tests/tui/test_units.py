import pytest

from accel_tui import units


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0B"),
        (80, "80B"),
        (1024, "1.0K"),
        (1000, "1.0K"),
        (3.1 * 2**30, "3.1G"),
        (512 * 2**20, "512M"),
        (2**50, "1024T"),
    ],
)
def test_bytes(count: float, text: str) -> None:
    assert units.size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1, "now"), (4, "now"), (42, "42s ago"), (61, "1m ago"), (7300, "2h ago"), (2e5, "2d ago")]
)
def test_ages(seconds: float, text: str) -> None:
    assert units.ago(seconds) == text


def test_shapes_and_counts() -> None:
    assert units.shape((28, 28, 1)) == "28x28x1"
    assert units.shape(()) == "a single number"
    assert units.count(1437) == "1,437"
