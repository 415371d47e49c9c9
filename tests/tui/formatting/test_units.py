import pytest

from accel_tui.formatting import units


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
    unit = text[-1] if text[-1] == "B" else f"{text[-1]}iB"
    assert units.long_size(count) == f"{text[:-1]} {unit}"


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1, "now"), (4, "now"), (42, "42s ago"), (61, "1m ago"), (7300, "2h ago"), (2e5, "2d ago")]
)
def test_ages(seconds: float, text: str) -> None:
    assert units.ago(seconds) == text


def test_shapes_and_counts() -> None:
    assert [units.counted(number, "step") for number in (0, 1, 1437)] == ["0 steps", "1 step", "1,437 steps"]
    assert units.shape((28, 28, 1)) == "28x28x1"
    assert units.shape(()) == "a single number"
    assert units.count(1437) == "1,437"


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0.00 FLOP"), (950, "950 FLOP"), (7.7575e9, "7.76 GFLOP"), (989.4e12, "989 TFLOP"), (7.9152e15, "7.92 PFLOP")],
)
def test_operations(number: float, text: str) -> None:
    assert units.flops(number) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(1.2, "120%"), (0.41, "41%"), (0.0996, "10%"), (0.0321, "3.2%"), (0.0005, "0.05%"), (1e-9, "under 0.01%")],
)
def test_shares(share: float, text: str) -> None:
    assert units.percent(share) == text


def test_a_speed_says_no_more_than_is_known() -> None:
    assert units.speed(12.34e9, 0.41) == "12.3 GFLOP/s, MFU 41%"
    assert units.speed(12.34e9, None) == "12.3 GFLOP/s"
    assert units.speed(None, None) == ""
