"""Why a ``fit`` ended, when an exception ends it that the script catches."""

import inspect
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine import RunRecorder
from accel_engine.events import Outcome, RunEnded
from accel_engine.recording import fit_calls

from .conftest import Read, examples, tiny


def ended(recorder: RunRecorder, wait_until: Callable[..., None]) -> RunEnded:
    wait_until(lambda: Read(recorder.directory).all(RunEnded), "the run's end")
    (event,) = Read(recorder.directory).all(RunEnded)
    assert isinstance(event, RunEnded)
    return event


def at(hook: str, error: BaseException) -> keras.callbacks.Callback:
    """A callback that raises."""

    def now(*_: Any, **__: Any) -> None:
        raise error

    callback = keras.callbacks.Callback()
    setattr(callback, hook, now)
    return callback


@pytest.mark.parametrize(
    "hook", ["on_train_begin", "on_epoch_begin", "on_train_batch_begin", "on_test_end", "on_train_end"]
)
def test_an_exception_that_is_forgotten_at_once_is_the_reason(hook: str, wait_until: Callable[..., None]) -> None:
    recorder = RunRecorder()

    with suppress(ValueError):
        tiny().fit(
            *examples(), verbose=0, validation_data=examples(), callbacks=[at(hook, ValueError("oh\nno")), recorder]
        )
    if hook == "on_train_begin":  # the recorder comes after it
        assert recorder.directory is None
    else:
        event = ended(recorder, wait_until)
        assert (event.outcome, event.reason) == (Outcome.FAILED, "ValueError: oh no")


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (KeyboardInterrupt(), Outcome.STOPPED, "interrupted from the keyboard"),
        (SystemExit(), Outcome.STOPPED, "the script exited"),
        (SystemExit(3), Outcome.FAILED, "the script exited with status 3"),
        (StopIteration("done"), Outcome.FAILED, "StopIteration: done"),
        pytest.param(SystemExit(0), Outcome.STOPPED, "the script exited", marks=pytest.mark.campaign),
        pytest.param(SystemExit("no data"), Outcome.FAILED, "SystemExit: no data", marks=pytest.mark.campaign),
        pytest.param(MemoryError(), Outcome.FAILED, "MemoryError", marks=pytest.mark.campaign),
        (ValueError("x" * 9999), Outcome.FAILED, "ValueError: " + "x" * 500),
    ],
)
def test_each_kind_of_exception_has_its_words(
    error: BaseException, outcome: Outcome, reason: str, wait_until: Callable[..., None]
) -> None:
    recorder = RunRecorder()

    with suppress(type(error)):
        tiny().fit(*examples(), verbose=0, callbacks=[recorder, at("on_epoch_end", error)])

    event = ended(recorder, wait_until)
    assert (event.outcome, event.reason) == (outcome, reason)


@dataclass(frozen=True)
class Frozen(Exception):  # noqa: N818
    code: int


class Unsettable(Exception):  # noqa: N818
    def __setattr__(self, name: str, value: object) -> None:
        raise TypeError(f"{name} is not to be set")


@pytest.mark.parametrize("error", [Frozen(7), Unsettable()], ids=["frozen", "unsettable"])
def test_an_exception_whose_attributes_cannot_be_set_reaches_the_caller(
    error: Exception, wait_until: Callable[..., None]
) -> None:
    recorder, caught = RunRecorder(), None

    try:
        tiny().fit(*examples(), verbose=0, callbacks=[recorder, at("on_epoch_end", error)])
    except Exception as reached:  # noqa: BLE001
        caught = reached

    assert caught is error
    assert fit_calls.__file__ not in {frame.filename for frame in traceback.extract_tb(error.__traceback__)}
    assert ended(recorder, wait_until).reason.startswith(type(error).__name__)


class Failing(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.dense = keras.layers.Dense(1)

    def train_step(self, data: Any) -> dict[str, Any]:
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise RuntimeError("outer") from error


def test_an_exception_of_a_train_step_is_the_reason(wait_until: Callable[..., None]) -> None:
    recorder, model = RunRecorder(), Failing()
    model.compile("sgd", run_eagerly=True)

    with suppress(RuntimeError):
        model.fit(*examples(), verbose=0, callbacks=[recorder])

    assert ended(recorder, wait_until).reason == "RuntimeError: outer"


def test_an_exception_of_the_data_is_the_reason(wait_until: Callable[..., None]) -> None:
    def batches() -> Iterator[Any]:
        x, y = examples()
        for _ in range(3):
            yield x[:8], y[:8]
        raise OSError("the data is gone")

    recorder = RunRecorder()
    with suppress(tf.errors.OpError):
        tiny().fit(batches(), verbose=0, shuffle=False, callbacks=[recorder])

    assert "the data is gone" in ended(recorder, wait_until).reason


def test_a_fit_that_failed_is_followed_by_another_and_both_have_their_ends() -> None:
    recorder, model = RunRecorder(), tiny()

    for text in ("first", "second"):
        with suppress(ValueError):
            model.fit(*examples(), verbose=0, callbacks=[recorder, at("on_epoch_end", ValueError(text))])
    model.fit(*examples(), verbose=0, callbacks=[recorder])

    reasons = [event.reason for event in Read(recorder.directory).all(RunEnded)]
    assert reasons == ["ValueError: first", "ValueError: second", ""]


def test_an_exception_within_a_callback_that_handles_it_is_of_the_inner_fit_alone(
    wait_until: Callable[..., None],
) -> None:
    inner, outer = RunRecorder(), RunRecorder()

    class Nested(keras.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            with suppress(ValueError):
                tiny().fit(*examples(), verbose=0, callbacks=[inner, at("on_epoch_end", ValueError("inner"))])

    tiny().fit(*examples(), verbose=0, callbacks=[outer, Nested()])

    assert ended(inner, wait_until).reason == "ValueError: inner"
    assert ended(outer, wait_until).outcome is Outcome.FINISHED


def test_an_exception_that_goes_through_both_is_of_both(wait_until: Callable[..., None]) -> None:
    inner, outer = RunRecorder(), RunRecorder()

    class Nested(keras.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            tiny().fit(*examples(), verbose=0, callbacks=[inner, at("on_epoch_end", ValueError("inner"))])

    with suppress(ValueError):
        tiny().fit(*examples(), verbose=0, callbacks=[outer, Nested()])

    assert {ended(each, wait_until).reason for each in (inner, outer)} == {"ValueError: inner"}


def test_threads_have_exceptions_of_their_own(wait_until: Callable[..., None]) -> None:
    recorders = [RunRecorder(str(number)) for number in range(2)]
    models = [tiny() for _ in recorders]
    together = threading.Barrier(2)

    def work(number: int) -> None:
        wait = keras.callbacks.LambdaCallback(on_epoch_begin=lambda *_: together.wait())
        fail = at("on_epoch_end", ValueError(f"of {number}"))
        with suppress(ValueError):
            models[number].fit(*examples(), verbose=0, callbacks=[recorders[number], wait, fail])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [ended(each, wait_until).reason for each in recorders] == ["ValueError: of 0", "ValueError: of 1"]


def test_a_fit_of_the_users_class_that_calls_keras_is_observed(wait_until: Callable[..., None]) -> None:
    class Mine(keras.Sequential):  # type: ignore[misc]
        def fit(self, *arguments: Any, **options: Any) -> Any:
            return super().fit(*arguments, **options)

    recorder, model = RunRecorder(), Mine([keras.Input((4,)), keras.layers.Dense(3, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")

    with suppress(ValueError):
        model.fit(*examples(), verbose=0, callbacks=[recorder, at("on_epoch_end", ValueError("oh no"))])

    assert ended(recorder, wait_until).reason == "ValueError: oh no"


def test_where_fit_is_not_observed_its_frames_tell(
    monkeypatch: pytest.MonkeyPatch, wait_until: Callable[..., None]
) -> None:
    monkeypatch.setattr(keras.Model, "fit", inspect.unwrap(keras.Model.fit, stop=_is_keras_defined))
    recorder = RunRecorder()
    assert fit_calls.current() is None

    try:
        tiny().fit(*examples(), verbose=0, callbacks=[recorder, at("on_epoch_end", ValueError("oh no"))])
    except ValueError:
        assert ended(recorder, wait_until).reason == "ValueError: oh no"


def _is_keras_defined(function: Any) -> bool:
    return not hasattr(function, "observed_by_accel_tui")


def test_the_exception_and_its_traceback_are_as_without_the_recorder(monkeypatch: pytest.MonkeyPatch) -> None:
    error = ValueError("oh no")

    def frames() -> list[str]:
        with pytest.raises(ValueError, match="oh no") as caught:
            tiny().fit(*examples(), verbose=0, callbacks=[at("on_epoch_end", error)])
        assert caught.value is error
        found = [frame.name + frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        error.__traceback__ = None
        return found

    observed = frames()
    with monkeypatch.context() as patch:
        patch.setattr(keras.Model, "fit", inspect.unwrap(keras.Model.fit, stop=_is_keras_defined))
        assert frames() == observed


def test_fit_has_its_signature_and_is_replaced_once() -> None:
    assert "validation_data" in inspect.signature(keras.Model.fit).parameters
    before = keras.Model.fit

    fit_calls.observe()

    assert keras.Model.fit is before
    assert np.isfinite(tiny().fit(*examples(), verbose=0).history["loss"]).all()


def test_a_call_is_the_current_one_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def fit() -> None:
        call = fit_calls.current()
        assert call
        seen.append((call, call.running))

    monkeypatch.setattr(keras.Model, "fit", fit)
    monkeypatch.setattr(fit_calls, "_prepare", None)
    fit_calls.observe()
    keras.Model.fit()

    ((call, was_running),) = seen
    assert (was_running, call.running, fit_calls.current()) == (True, False, None)
