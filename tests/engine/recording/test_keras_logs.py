"""The names and numbers of what Keras tells."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine import RunRecorder
from accel_engine.events import EpochEnded, ModelBuilt, RunEnded, Validated, Warned
from accel_engine.recording import fit_session as fitting
from accel_engine.recording.keras_logs import columns, numbers, training_metrics, validation_metrics
from accel_engine.run.store.series_names import SeriesNames

from .conftest import Read, examples, tiny


def test_every_number_has_the_name_of_its_series() -> None:
    logs = {
        "loss": 1.0,
        "top5-acc": 0.5,
        "count": 3,
        "one": np.array([0.25]),
        "f1": np.array([0.1, 0.2]),
        "confusion": np.array([[1, 2], [3, 4]]),
        "words": "none",
        "nothing": np.array([]),
    }
    names = SeriesNames()

    assert numbers(logs, names) == {
        "loss": 1.0,
        "top5_acc": 0.5,
        "metric_count": 3.0,
        "one": 0.25,
        "f1_0": 0.1,
        "f1_1": 0.2,
        "confusion_0_0": 1.0,
        "confusion_0_1": 2.0,
        "confusion_1_0": 3.0,
        "confusion_1_1": 4.0,
    }
    assert names.take_notes() == [
        "the metric words is not recorded: it is not a number",
        "the metric nothing is not recorded: it has no value",
    ]


def test_the_numbers_of_several_logs_are_as_many_whether_they_are_arrays_or_not() -> None:
    plain = [{"a-b": 1.0}, {}, {"a-b": 3.0}]
    mixed = [{"a-b": 1.0, "c": np.array([1.0, 2.0])}, {}, {"a-b": 3.0, "c": np.array([5.0, 6.0]), "words": "none"}]

    for logs in (plain, mixed):
        np.testing.assert_array_equal(columns(logs, SeriesNames())["a_b"], [1.0, np.nan, 3.0])
    found = columns(mixed, SeriesNames())
    assert list(found) == ["a_b", "c_0", "c_1"]
    np.testing.assert_array_equal(found["c_1"], [2.0, np.nan, 6.0])
    np.testing.assert_array_equal(columns([{"a": np.ones(2)}, {"a": 1.0}], SeriesNames())["a"], [np.nan, 1.0])


@pytest.mark.parametrize("more", [{}, {"c": np.array([1.0, 2.0])}], ids=["numbers", "arrays"])
def test_two_names_that_would_be_one_series_are_the_same_two_everywhere(more: dict[str, Any]) -> None:
    names = SeriesNames()
    logs = {"top5-acc": 1.0, "top5_acc": 2.0, **more}

    found = columns([logs], names)

    assert (found["top5_acc_2"][0], found["top5_acc"][0]) == (1.0, 2.0)
    assert training_metrics({"top5-acc": 1.0}, names) == {"top5_acc_2": 1.0}
    assert validation_metrics({"val_top5-acc": 1.0}, names) == {"top5_acc_2": 1.0}
    assert names.take_notes() == ["the metric top5-acc is recorded as top5_acc_2: the name top5_acc is taken"]


def test_validation_has_the_names_of_training() -> None:
    logs = {"loss": 1.0, "val_loss": 2.0, "Top5-Acc": 3.0, "val_Top5-Acc": 4.0, "learning_rate": 0.1}

    assert training_metrics(logs, SeriesNames()) == {"loss": 1.0, "top5_acc": 3.0}
    assert validation_metrics(logs, SeriesNames()) == {"loss": 2.0, "top5_acc": 4.0}


class Tells(keras.Model):
    """Has a custom step, which tells what names cannot be recorded as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = keras.layers.Dense(3)
        self.d_optimizer = keras.optimizers.SGD(0.1)

    def train_step(self, data: Any) -> dict[str, Any]:
        with tf.GradientTape() as tape:
            loss = keras.ops.mean(self.dense(data[0]))
        variables = self.dense.trainable_variables
        self.d_optimizer.apply(tape.gradient(loss, variables), variables)
        names = ("loss", "top5-acc", "top5_acc", "learning_rate", "d_learning_rate")
        return {**{name: loss + place for place, name in enumerate(names)}, "scores": keras.ops.arange(40.0)}


def test_the_run_says_once_what_is_renamed_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "UPDATE_SECONDS", 0.0)
    recorder, model = RunRecorder(), Tells()
    model.compile()

    for _ in range(2):  # the second goes on with the run
        model.fit(*examples(), batch_size=8, epochs=2, verbose=0, callbacks=[recorder])

    read = Read(recorder.directory)
    renamed = {"top5_acc": 2, "top5_acc_2": 1, "learning_rate_2": 3, "d_learning_rate_2": 4}
    assert read.names == {"loss", "d_learning_rate", *renamed, *(f"scores_{place}" for place in range(32))}
    np.testing.assert_array_equal(read.series("d_learning_rate"), np.float32(0.1))
    for name, more in renamed.items():
        np.testing.assert_allclose(read.series(name), read.series("loss") + more, rtol=1e-5)
    assert sorted(warned.message for warned in read.all(Warned)) == [
        "the metric d_learning_rate is recorded as d_learning_rate_2: the name d_learning_rate is taken",
        "the metric learning_rate is recorded as learning_rate_2: the name learning_rate is taken",
        "the metric scores has 40 values: the first 32 are recorded",
        "the metric top5-acc is recorded as top5_acc_2: the name top5_acc is taken",
    ]


def test_a_metric_has_one_name_in_steps_epochs_and_validation() -> None:
    metric = keras.metrics.SparseTopKCategoricalAccuracy(2, name="top2-acc")
    recorder = RunRecorder()

    tiny(metrics=[metric]).fit(*examples(), verbose=0, validation_data=examples(), callbacks=[recorder])

    read = Read(recorder.directory)
    names = {"loss", "top2_acc"}
    assert set(read.all(ModelBuilt)[0].series) == read.names == names
    assert set(read.all(EpochEnded)[0].metrics) == set(read.all(Validated)[0].metrics) == names
    assert set(read.all(RunEnded)[0].metrics) == names | {f"validation_{name}" for name in names}


@pytest.mark.parametrize("outputs", [1, 3])
def test_an_array_of_a_metric_is_told_element_by_element(outputs: int) -> None:
    keras.utils.set_random_seed(0)
    x, y = examples()
    labels = np.eye(3, dtype=np.float32)[y][:, :outputs]
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(outputs, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy", metrics=[keras.metrics.F1Score(average=None, threshold=0.5)])
    recorder, told = RunRecorder(), []  # type: tuple[RunRecorder, list[Any]]
    listen = keras.callbacks.LambdaCallback(on_train_batch_end=lambda _, logs: told.append(logs["f1_score"]))

    # Keras gives an array of one to float(), which NumPy will refuse one day.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONWARNINGS", "default")
        history = model.fit(x, labels, batch_size=8, verbose=0, shuffle=False, callbacks=[recorder, listen]).history

    read = Read(recorder.directory)
    expected = np.array([np.ravel(each) for each in told], dtype=np.float32)
    names = ["running_f1_score"] if outputs == 1 else [f"running_f1_score_{place}" for place in range(3)]
    for place, name in enumerate(names):
        np.testing.assert_array_equal(read.series(name), expected[:, place])
        value = np.ravel(history["f1_score"][0])[place]
        assert read.all(EpochEnded)[0].metrics[name.removeprefix("running_")] == value


def test_a_series_has_one_name_from_first_to_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "UPDATE_SECONDS", 60.0)
    x, y = examples()
    weight = np.ones(len(x), np.float32)
    weight[60:] = np.random.default_rng(0).uniform(0.1, 2.0, len(x) - 60)  # alike at first
    recorder = RunRecorder()

    tiny(metrics=[], weighted_metrics=["accuracy"]).fit(
        x,
        y,
        sample_weight=weight,
        batch_size=8,
        epochs=2,
        verbose=0,
        shuffle=False,
        callbacks=[Halfway(recorder), recorder],
    )

    read = Read(recorder.directory)
    assert read.names == {"loss", "accuracy"}
    assert np.isfinite(read.series("accuracy"))[:4].all()
    assert np.isnan(read.series("accuracy")[-1])


class Halfway(keras.callbacks.Callback):  # type: ignore[misc]
    """Has the recorder look after four batches."""

    def __init__(self, recorder: RunRecorder) -> None:
        super().__init__()
        self.recorder = recorder

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if batch == 3:
            self.recorder._fit.due = 0.0  # type: ignore[union-attr]
