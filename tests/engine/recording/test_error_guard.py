"""Errors of a recorder stay out of the script, whatever its warnings do."""

import warnings

import pytest

from accel_engine.recording import error_guard
from accel_engine.recording.error_guard import guarded, value_or_none, warn


class Guarded:
    def __init__(self, *, fails: bool = False) -> None:
        self.errors: list[Exception] = []
        self.fails = fails

    def _on_error(self, error: Exception) -> None:
        self.errors.append(error)
        if self.fails:
            raise LookupError

    @guarded
    def call(self, error: BaseException | None, *, result: int = 3) -> int:
        """Raise or return."""
        if error:
            raise error
        return result


@pytest.mark.parametrize("fails", [False, True])
def test_an_error_is_given_up_on_and_not_raised(fails: bool) -> None:
    guard, error = Guarded(fails=fails), ValueError("fault")

    assert guard.call(None, result=7) == 7
    assert not guard.errors
    assert guard.call(error) is None
    assert guard.errors == [error]
    assert Guarded.call.__doc__ == "Raise or return."


@pytest.mark.parametrize("exits", [KeyboardInterrupt, SystemExit])
def test_what_comes_from_the_user_is_raised(exits: type[BaseException]) -> None:
    guard = Guarded()

    with pytest.raises(exits):
        guard.call(exits())
    assert not guard.errors


def test_a_warning_is_of_the_line_that_warns(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(RuntimeWarning, match="oh no") as caught:
        warn("oh no")

    assert caught[0].filename == __file__
    assert not capsys.readouterr().err


def test_a_warning_that_is_an_error_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn("oh no")

    assert capsys.readouterr().err == "warning: oh no\n"


def test_without_a_standard_error_a_warning_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn("oh no")


def test_a_warning_that_the_supervisor_has_taken_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    monkeypatch.setattr(error_guard.run_link, "report_to_run", lambda message: taken.append(message) is None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn("oh no")

    assert taken == ["oh no"]


def test_a_value_that_cannot_be_read_is_none() -> None:
    assert value_or_none(int, "3") == 3
    assert value_or_none(int, "three") is None
