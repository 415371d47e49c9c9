import pytest

from accel_engine.doctor.versions import release_numbers, satisfies


@pytest.mark.parametrize(
    ("version", "expected"),
    [("2.20.0", (2, 20, 0)), ("2.20.0rc1", (2, 20, 0)), ("0.0.31.dev20260101+nightly", (0, 0, 31)), ("", ())],
)
def test_numbers(version, expected) -> None:
    assert release_numbers(version) == expected


@pytest.mark.parametrize(
    ("version", "ranges", "expected"),
    [
        ("12.5.82", "<13.0,>=12.5.82", True),
        ("13.0", "<13.0,>=12.5.82", False),
        ("12.5.40", ">=12.5.82,<13.0", False),
        ("12.5.3.2", "==12.5.3.2", True),
        ("12.5.3", "==12.5.3.2", False),
        ("9.3", "==9.3.0", True),
        ("9.3.1", "==9.3.*", True),
        ("9.4", "==9.3.*", False),
        ("1.5", "!=1.5,>1.0", False),
        ("1.6", "!=1.5, > 1.0, <= 1.6", True),
        ("2.4.9", "~=2.4.1", True),
        ("2.5.0", "~=2.4.1", False),
        ("1.0", "", True),
    ],
)
def test_ranges(version, ranges, expected) -> None:
    assert satisfies(version, ranges) is expected
