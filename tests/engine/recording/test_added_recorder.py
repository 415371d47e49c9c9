"""The recorder that each fit of a script gets under ``accel-tui run``."""

import inspect
from typing import Any

import keras
import pytest

from accel_engine import RunRecorder
from accel_engine.recording.every_fit import added_recorder
from accel_engine.recording.every_fit.added_recorder import recorder_added
from accel_engine.recording.fit_session import FitSession
from accel_engine.run import Status, list_runs

from .conftest import examples, tiny

SIGNATURE = inspect.signature(keras.Model.fit)


def callbacks_of(*arguments: Any, **named: Any) -> Any:
    args, kwargs = recorder_added(SIGNATURE, ((None, *arguments), named))
    return SIGNATURE.bind(*args, **kwargs).arguments["callbacks"]


@pytest.mark.parametrize("given", [None, [], (), [keras.callbacks.History()], keras.callbacks.History()])
def test_a_recorder_comes_after_the_users_callbacks_which_stay_as_they_are(given: Any) -> None:
    before = list(given) if isinstance(given, list | tuple) else given
    found = callbacks_of([1], callbacks=given)

    assert isinstance(found[-1], RunRecorder)
    assert found[:-1] == ([] if given is None else [given] if not isinstance(given, list | tuple) else [*given])
    assert before == (list(given) if isinstance(given, list | tuple) else given)


def test_a_recorder_of_the_users_own_is_enough() -> None:
    own = RunRecorder("mine")

    assert callbacks_of([1], callbacks=[own]) == [own]


def test_a_callback_list_of_the_users_own_gets_one_recorder_that_knows_the_model() -> None:
    model = tiny()
    given = keras.callbacks.CallbackList([], add_history=True, model=model)
    callbacks_of([1], epochs=3, callbacks=given)
    found = callbacks_of([1], epochs=3, callbacks=given)

    (recorder,) = [each for each in given.callbacks if isinstance(each, RunRecorder)]
    assert found is given
    assert recorder.model is model
    assert recorder.params["epochs"] == 3
    (other,) = callbacks_of([1], callbacks=keras.callbacks.CallbackList([], model=model)).callbacks[-1:]
    assert other.params["epochs"] == 1  # as Keras' fit has


def test_a_fit_with_a_callback_list_is_recorded(home: Any) -> None:
    x, y = examples()
    model = tiny()
    given = keras.callbacks.CallbackList([], add_history=True, model=model)
    args, kwargs = recorder_added(SIGNATURE, ((model, x, y), {"callbacks": given, "verbose": 0}))
    keras.Model.fit(*args, **kwargs)

    (recorder,) = [each for each in given.callbacks if isinstance(each, RunRecorder)]
    assert recorder.directory


def test_arguments_that_do_not_fit_are_left_to_keras() -> None:
    wrong = ((None, [1]), {"no_such_argument": 1})

    assert recorder_added(SIGNATURE, wrong) is wrong


def test_a_fault_leaves_the_users_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise LookupError("a fault")

    monkeypatch.setattr(added_recorder, "_with_recorder", fail)
    arguments = ((None, [1]), {})

    with pytest.warns(RuntimeWarning, match="this fit is not recorded: LookupError: a fault"):
        assert recorder_added(SIGNATURE, arguments) is arguments


def test_a_fit_whose_recording_fails_is_over_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise LookupError("a fault")

    monkeypatch.setattr(FitSession, "begin_epoch", fail)
    x, y = examples()
    args, kwargs = recorder_added(SIGNATURE, ((tiny(), x, y), {"verbose": 0}))
    with pytest.warns(RuntimeWarning, match="this fit is not recorded any more: LookupError: a fault"):
        keras.Model.fit(*args, **kwargs)

    (summary,) = list_runs()
    assert summary.status is Status.FAILED
