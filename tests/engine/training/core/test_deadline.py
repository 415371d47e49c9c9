import pytest

from accel_engine.training.core.deadline import Deadline


def test_a_deadline_is_missed_after_its_limit() -> None:
    deadline = Deadline()
    assert deadline.missed == ""
    with deadline.within(1000.0, lambda: "too late"):
        assert deadline.missed == ""
    with deadline.within(-1.0, lambda: "too late"):
        assert deadline.missed == "too late"
    assert deadline.missed == ""


def test_a_deadline_ends_with_an_error_in_time() -> None:
    deadline = Deadline()
    with pytest.raises(RuntimeError), deadline.within(-1.0, lambda: "too late"):
        raise RuntimeError
    assert deadline.missed == ""
