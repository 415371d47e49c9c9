import pytest

from accel_engine.training.deadline import Deadline


def test_a_deadline_is_missed_once_its_time_is_over() -> None:
    deadline = Deadline()
    assert deadline.missed == ""
    with deadline.within(1000.0, lambda: "too late"):
        assert deadline.missed == ""
    with deadline.within(-1.0, lambda: "too late"):
        assert deadline.missed == "too late"
    assert deadline.missed == ""


def test_what_fails_in_time_is_no_longer_waited_for() -> None:
    deadline = Deadline()
    with pytest.raises(RuntimeError), deadline.within(-1.0, lambda: "too late"):
        raise RuntimeError
    assert deadline.missed == ""
