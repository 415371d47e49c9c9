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


def test_the_limit_of_an_outer_block_counts_within_and_after_an_inner_one() -> None:
    deadline = Deadline()
    with deadline.within(-1.0, lambda: "outer"):
        with deadline.within(1000.0, lambda: "inner"):
            assert deadline.missed == "outer"
        assert deadline.missed == "outer"
    with deadline.within(1000.0, lambda: "outer"):
        with deadline.within(-1.0, lambda: "inner"):
            assert deadline.missed == "inner"
        assert deadline.missed == ""
