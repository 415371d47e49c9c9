"""What a recorder writes of a real ``fit``."""

import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine import RunRecorder
from accel_engine.errors import RunError
from accel_engine.events import (
    CommandAnswered,
    EpochEnded,
    LearningRateChanged,
    ModelBuilt,
    Outcome,
    Phase,
    PhaseChanged,
    RunEnded,
    RunStarted,
    Validated,
    Warned,
)
from accel_engine.recording import fit_session as fitting
from accel_engine.recording import model_description, running_means, supervisor_address
from accel_engine.recording.every_fit.added_recorder import _FitRecorder
from accel_engine.recording.fit_session import FitSession
from accel_engine.recording.recorder_thread import RecorderThread
from accel_engine.run import RunWriter, Status, send_command
from accel_engine.run.engine.commands import read_answer
from accel_engine.run.runs.worker_runs import run_to_continue
from garbage import freed

from .conftest import Read, examples, tiny


def train(model: keras.Model, recorder: RunRecorder, **options: Any) -> Any:
    x, y = examples()
    settings = {"batch_size": 8, "shuffle": False, "verbose": 0, "callbacks": [recorder]}
    return model.fit(x, y, **{**settings, **options})


@pytest.mark.parametrize(
    ("look_seconds", "batch"),
    [(0.0, 16), (60.0, 8), *(pytest.param(*other, marks=pytest.mark.campaign) for other in [(0.0, 8), (60.0, 16)])],
)
def test_every_step_has_the_loss_of_its_batch(
    true_losses: Callable[..., list[float]], monkeypatch: pytest.MonkeyPatch, look_seconds: float, batch: int
) -> None:
    monkeypatch.setattr(fitting, "UPDATE_SECONDS", look_seconds)
    recorder = RunRecorder()

    train(tiny(), recorder, batch_size=batch, epochs=3)

    read = Read(recorder.directory)
    assert read.names == {"loss", "accuracy"}
    np.testing.assert_allclose(read.series("loss"), true_losses(batch, epochs=3), rtol=2e-5)
    right = read.series("accuracy") * batch
    np.testing.assert_allclose(right[:6], right[:6].round(), atol=1e-4)
    (built,) = read.all(ModelBuilt)
    assert (built.series, built.global_batch, built.steps_per_epoch) == (("loss", "accuracy"), batch, -(-104 // batch))
    assert (built.parameters, built.epochs, built.optimizer, built.feed) == (15, 3, "SGD", "own")
    assert not read.all(Warned)


def test_a_smaller_last_batch_is_told_though_a_look_by_chance_takes_it_with_others(
    true_losses: Callable[..., list[float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitting, "UPDATE_SECONDS", 60.0)
    recorder = RunRecorder()

    class Look(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if batch in (3, 6):
                recorder._fit.due = 0.0

    train(tiny(), recorder, batch_size=16, epochs=2, callbacks=[Look(), recorder])

    read = Read(recorder.directory)
    assert read.names == {"loss", "accuracy"}
    np.testing.assert_allclose(read.series("loss"), true_losses(16, epochs=2), rtol=2e-5)


def test_epochs_and_validations_are_as_keras_tells_them() -> None:
    recorder = RunRecorder("first try")

    history = train(tiny(), recorder, epochs=2, validation_data=examples()).history

    read = Read(recorder.directory)
    assert [event.metrics["loss"] for event in read.all(EpochEnded)] == history["loss"]
    assert [event.metrics["loss"] for event in read.all(Validated)] == history["val_loss"]
    assert [(event.epoch, event.step) for event in read.all(Validated)] == [(1, 13), (2, 26)]
    (ended,) = read.all(RunEnded)
    assert (ended.outcome, ended.steps, ended.epochs) == (Outcome.FINISHED, 26, 2)
    assert ended.metrics["validation_accuracy"] == history["val_accuracy"][-1]
    assert read.info.status is Status.FINISHED
    assert (read.info.name, read.info.plan) == ("first try", None)
    assert read.info.script


@pytest.mark.parametrize("jit", [False, True])
def test_with_several_steps_an_execution_their_mean_is_recorded_under_its_own_name(
    true_losses: Callable[..., list[float]], jit: bool
) -> None:
    recorder = RunRecorder()

    train(tiny(steps_per_execution=4, jit_compile=jit), recorder, epochs=2)

    read = Read(recorder.directory)
    assert read.names == {"mean_loss", "mean_accuracy"}
    losses = np.array(true_losses(8, epochs=2)).reshape(2, 13)
    means = [np.repeat(part.mean(), len(part)) for epoch in losses for part in np.split(epoch, [4, 8, 12])]
    np.testing.assert_allclose(read.series("mean_loss"), np.concatenate(means), rtol=2e-5)


def test_metrics_that_are_no_means_and_weights_that_differ_are_told_as_running_means(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fitting, "UPDATE_SECONDS", 60.0)
    recorder = RunRecorder()
    told: list[dict[str, float]] = []
    listen = keras.callbacks.LambdaCallback(on_train_batch_end=lambda _, logs: told.append(logs))
    x, y = examples()
    weight = np.random.default_rng(0).uniform(0.5, 1.5, len(x))
    model = tiny(
        loss="mse",
        metrics=[keras.metrics.RootMeanSquaredError(name="rmse")],
        weighted_metrics=[keras.metrics.MeanAbsoluteError(name="mae")],
    )

    model.fit(
        x, np.eye(3)[y], sample_weight=weight, batch_size=8, verbose=0, shuffle=False, callbacks=[recorder, listen]
    )

    read = Read(recorder.directory)
    assert read.names == {"loss", "running_mae", "running_rmse"}
    assert np.isfinite(read.series("loss")).all()
    for name in ("mae", "rmse"):
        np.testing.assert_allclose(read.series(f"running_{name}"), [logs[name] for logs in told], rtol=1e-6)
    assert {warned.message.partition(",")[0] for warned in read.all(Warned)} == {
        "mae is recorded as running_mae",
        "rmse is recorded as running_rmse",
    }


def test_of_a_long_epoch_the_running_mean_is_recorded_from_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accel_engine.recording.batch_series.PRECISE_BATCHES", 5)
    monkeypatch.setattr(fitting, "UPDATE_SECONDS", 0.0)
    assert running_means.PRECISE_BATCHES == 1 << 16
    recorder = RunRecorder()

    train(tiny(), recorder)

    read = Read(recorder.directory)
    assert read.names == {"running_loss", "running_accuracy"}
    assert np.isfinite(read.series("running_loss")).all()


def test_late_in_an_epoch_of_unknown_length_values_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accel_engine.recording.batch_series.PRECISE_BATCHES", 5)
    monkeypatch.setattr(fitting, "UPDATE_SECONDS", 0.0)
    unknown = tf.data.Dataset.from_tensor_slices(examples()).batch(8).filter(lambda *_: True)
    recorder = RunRecorder()

    with pytest.warns(UserWarning, match="ran out of data"):
        tiny().fit(unknown, verbose=0, shuffle=False, callbacks=[recorder])

    read = Read(recorder.directory)
    assert read.names == {"loss", "accuracy"}
    assert np.isfinite(read.series("loss")).tolist() == [True] * 5 + [False] * 8
    assert {warned.message.split()[0] for warned in read.all(Warned)} == {"loss", "accuracy"}


class Own(keras.Model):
    """Its own step, which tells a loss that no metric keeps, or that is kept as the mean of batches."""

    def __init__(self, *, kept: bool = False) -> None:
        super().__init__()
        self.dense = keras.layers.Dense(3, activation="softmax")
        self.mean = keras.metrics.Mean(name="loss") if kept else None

    def call(self, x: Any) -> Any:
        return self.dense(x)

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(y, self(x, training=True)))
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        if self.mean:
            self.mean.update_state(loss)
            return {"loss": self.mean.result()}
        return {"loss": loss, "doubled": 2 * loss}


def test_what_a_train_step_of_the_users_tells_is_taken_as_it_is() -> None:
    keras.utils.set_random_seed(0)
    model = Own()
    model.compile("sgd")
    recorder = RunRecorder()
    told: list[dict[str, float]] = []
    listen = keras.callbacks.LambdaCallback(on_train_batch_end=lambda _, logs: told.append(logs))

    train(model, recorder, callbacks=[recorder, listen])

    read = Read(recorder.directory)
    assert read.names == {"loss", "doubled"}
    np.testing.assert_allclose(read.series("loss"), [logs["loss"] for logs in told], rtol=1e-6)


def test_a_train_step_of_the_users_that_counts_batches_does_not_tell_their_size() -> None:
    keras.utils.set_random_seed(0)
    model = Own(kept=True)
    model.compile("sgd")
    recorder = RunRecorder()

    train(model, recorder)

    read = Read(recorder.directory)
    assert np.isfinite(read.series("loss")).all()
    assert [(built.global_batch, built.per_replica_batch) for built in read.all(ModelBuilt)] == [(None, None)]


def test_another_fit_goes_on_with_the_run_and_epochs_of_unknown_length_are_counted() -> None:
    recorder, model = RunRecorder(), tiny()
    unknown = tf.data.Dataset.from_tensor_slices(examples()).batch(8).filter(lambda *_: True)

    with pytest.warns(UserWarning, match="ran out of data"):  # Keras learns the number of steps that way
        model.fit(unknown, verbose=0, shuffle=False, callbacks=[recorder])
    train(model, recorder, epochs=5, initial_epoch=3)

    read = Read(recorder.directory)
    assert [event.first_step for event in read.all(RunStarted)] == [0, 13]
    assert [event.steps_per_epoch for event in read.all(ModelBuilt)] == [None, 13, 13]
    assert [event.epochs for event in read.all(ModelBuilt)] == [1, 1, 3]
    assert [(event.epoch, event.step) for event in read.all(EpochEnded)] == [(1, 13), (2, 26), (3, 39)]
    assert len(read.series("loss")) == 39


class Raise(keras.callbacks.Callback):
    """Raises at a batch, as a user's code may."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if batch == 4:
            self.now()

    def now(self, *_: Any, **__: Any) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "outcome"), [(ValueError("oh no"), Status.FAILED), (KeyboardInterrupt(), Status.STOPPED)]
)
def test_a_run_ends_where_an_exception_ends_fit(
    wait_until: Callable[..., None], error: BaseException, outcome: Status
) -> None:
    recorder = RunRecorder()

    try:
        train(tiny(), recorder, callbacks=[recorder, Raise(error)])
    except type(error):  # while it is handled, it can be seen
        try:
            raise LookupError
        except LookupError:  # also behind another
            wait_until(lambda: not Read(recorder.directory).info.status.live, "the end")

    read = Read(recorder.directory)
    assert read.info.status is outcome
    (ended,) = read.all(RunEnded)
    assert ended.steps == 5
    assert ("oh no" in ended.reason) == (outcome is Status.FAILED)


def test_a_fit_after_one_that_failed_goes_on_with_the_run() -> None:
    recorder, model = RunRecorder(), tiny()

    with pytest.raises(ValueError, match="oh no"):
        train(model, recorder, callbacks=[recorder, Raise(ValueError("oh no"))])
    train(model, recorder)

    read = Read(recorder.directory)
    assert [event.outcome for event in read.all(RunEnded)] == [Outcome.FAILED, Outcome.FINISHED]
    assert len(read.series("loss")) == 5 + 13


def test_steps_that_were_told_before_an_interrupt_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "UPDATE_SECONDS", 0.0)
    recorder, model = RunRecorder(), tiny()

    with monkeypatch.context() as patch:
        patch.setattr(model_description, "model_built", Raise(KeyboardInterrupt()).now)
        with pytest.raises(KeyboardInterrupt):
            train(model, recorder)
    train(model, recorder)

    read = Read(recorder.directory)
    assert [event.first_step for event in read.all(RunStarted)] == [0, 2]
    assert [event.steps for event in read.all(RunEnded)] == [2, 2 + 13]
    assert len(read.series("loss")) == 2 + 13


@pytest.mark.parametrize(
    ("cls", "method", "at", "steps"),
    [
        (FitSession, "begin", "after", 0),
        (RecorderThread, "begin", "before", 0),
        (FitSession, "end_epoch", "before", 13),
        (RecorderThread, "finish", "before", 13),
        (RecorderThread, "finish", "after", 13),
    ],
)
def test_an_interrupt_leaves_no_run_that_does_not_end(
    monkeypatch: pytest.MonkeyPatch, cls: type, method: str, at: str, steps: int
) -> None:
    recorder, model, whole = RunRecorder(), tiny(), getattr(cls, method)

    def interrupted(*arguments: Any) -> None:
        if at == "after":
            whole(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(cls, method, interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(model, recorder)
    train(model, recorder)

    read = Read(recorder.directory)
    words = [event for event in read.update.events if isinstance(event, RunStarted | RunEnded)]
    assert [type(event) for event in words] == [RunStarted, RunEnded] * 2
    assert [event.steps for event in read.all(RunEnded)] == [steps, steps + 13]
    assert len(read.series("loss")) == steps + 13


def test_commands_are_obeyed_between_batches(wait_until: Callable[..., None]) -> None:
    recorder, model = RunRecorder(), tiny()
    answers: dict[str, tuple[bool, str]] = {}

    def ask() -> None:
        wait_until(lambda: recorder.directory and Read(recorder.directory).update.chunks, "steps")
        assert recorder.directory
        for name, argument in [
            ("checkpoint", None),
            ("pause", None),
            ("learning_rate", 0.5),
            ("resume", None),
            ("stop", None),
        ]:
            number = send_command(recorder.directory, name, argument)
            wait_until(lambda number=number: read_answer(recorder.directory, number), name)
            answers[name] = read_answer(recorder.directory, number) or (False, "")

    asking = threading.Thread(target=ask)
    asking.start()
    train(model, recorder, epochs=10**6)
    asking.join()

    read = Read(recorder.directory)
    assert {name: obeyed for name, (obeyed, _) in answers.items()} == {
        "checkpoint": False,
        "pause": True,
        "learning_rate": True,
        "resume": True,
        "stop": True,
    }
    assert "script" in answers["checkpoint"][1]
    assert [event.learning_rate for event in read.all(LearningRateChanged)] == [0.1, 0.5]
    assert float(model.optimizer.learning_rate.numpy()) == 0.5
    assert read.info.status is Status.STOPPED
    paused, resumed = (event.step for event in read.all(CommandAnswered) if event.command in ("pause", "resume"))
    assert paused == resumed
    with pytest.raises(RunError, match="script"):
        run_to_continue(read.info.directory)


def test_training_goes_on_from_a_pause_where_the_run_can_be_written_no_more(
    wait_until: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder, model, broken = RunRecorder(), tiny(), threading.Event()

    def stop(*_: Any) -> None:
        model.stop_training = broken.is_set()

    def refuse(*_: Any) -> None:
        raise RunError("another process has taken over the run")

    def is_paused(read: Read) -> bool:
        return any(event.phase is Phase.PAUSED for event in read.all(PhaseChanged))

    def ask() -> None:
        wait_until(lambda: recorder.directory and Read(recorder.directory).update.chunks, "steps")
        assert recorder.directory
        send_command(recorder.directory, "pause")
        wait_until(lambda: is_paused(Read(recorder.directory)), "the pause")
        broken.set()
        monkeypatch.setattr(RunWriter, "heartbeat", refuse)

    asking = threading.Thread(target=ask)
    asking.start()
    with pytest.warns(
        RuntimeWarning, match="recording stopped, training continues: another process has taken over the run"
    ):
        train(model, recorder, epochs=10**6, callbacks=[recorder, keras.callbacks.LambdaCallback(on_epoch_end=stop)])
    asking.join()


def test_what_is_done_with_is_not_kept() -> None:
    def work() -> list[weakref.ref[Any]]:
        recorder, model = RunRecorder(), tiny()
        train(model, recorder)
        return [weakref.ref(recorder), weakref.ref(model)]

    with freed():
        left = work()
    assert [reference() for reference in left] == [None, None]


def test_evaluating_by_itself_records_nothing() -> None:
    recorder = RunRecorder()

    tiny().evaluate(*examples(), verbose=0, callbacks=[recorder])

    assert recorder.directory is None


def test_readings_of_devices_are_in_the_run(wait_until: Callable[..., None]) -> None:
    began = time.time()
    recorder = RunRecorder()
    wait = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda *_: wait_until(lambda: Read(recorder.directory).update.samples, "a sample")
    )

    train(tiny(), recorder, callbacks=[recorder, wait])

    assert any(sample.device == "cpu:0" for sample in Read(recorder.directory).update.samples)
    assert began - 60 < Read(recorder.directory).update.samples[-1].time < time.time() + 60


def test_a_fit_that_cannot_reach_the_supervisor_of_its_run_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor_address, "given_address", "/nowhere/run")

    with pytest.warns(RuntimeWarning, match="this fit is not recorded: the supervisor of the run does not answer"):
        train(tiny(), _FitRecorder())


def test_a_loop_that_calls_callbacks_itself_is_recorded_as_one_epoch() -> None:
    recorder = RunRecorder()
    recorder.set_model(tiny())
    recorder.on_train_begin()
    recorder.on_epoch_begin(0)
    recorder.on_train_batch_begin(0)
    recorder.on_train_batch_end(0, {"loss": 0.5})
    recorder.on_epoch_end(0, {"loss": 0.5})
    recorder.on_train_end()

    read = Read(recorder.directory)
    assert read.info.status is Status.FINISHED
    assert read.info.plan_values["epochs"] == 1
    assert [event.metrics for event in read.all(EpochEnded)] == [{"loss": 0.5}]
