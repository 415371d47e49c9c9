import pytest

from accel_engine.errors import UsageError
from accel_engine.training.core import operation_threads
from accel_engine.training.core.operation_threads import VARIABLE, threads_in_use, threads_of_user


@pytest.mark.parametrize(("text", "count"), [("", None), ("3", 3), ("0", 2), ("many", 2)])
def test_the_variable_is_read_as_tensorflow_does(monkeypatch: pytest.MonkeyPatch, text: str, count: int | None) -> None:
    monkeypatch.setattr(operation_threads, "processors", lambda: 2)
    monkeypatch.setenv(VARIABLE, text)

    assert threads_of_user() == count
    assert threads_in_use() == (count or 2), "these tests set no number in TensorFlow"


def test_a_negative_number_with_which_tensorflow_aborts_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "-1")

    with pytest.raises(UsageError, match=r"TF_NUM_INTRAOP_THREADS = -1 in the environment: must be at least 1"):
        threads_of_user()
