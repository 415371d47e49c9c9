"""Evaluations of runs and files give Keras' metrics, on the examples that were asked for."""

import wave
from dataclasses import astuple
from itertools import product
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from accel_engine import data
from accel_engine.errors import AccelError, ModelError
from accel_engine.events import Validated
from accel_engine.plan import Plan
from accel_engine.requests.evaluate import Evaluation, EvaluationOptions, EvaluationRequest
from accel_engine.requests.protocol.model_reference import ModelReference
from accel_engine.run import diagnostics
from accel_engine.run.directory.run_paths import trained_model
from accel_engine.trained.evaluation.evaluate import evaluate
from accel_engine.trained.evaluation.example_states import ClassLabels, ExampleStates, class_scores
from accel_engine.trained.evaluation.file_outputs import join_windows
from accel_engine.trained.evaluation.resampling import share_interval
from accel_engine.training.core.task import Task

from ...training.conftest import Gym

PLAN = Plan(model="mlp", epochs=1, batch_size=100, last_batch="drop")


def evaluated(*models: Path | Plan, **changes: Any) -> Evaluation:
    options = EvaluationOptions(**{"resamples": 100, **changes})
    return evaluate(EvaluationRequest(tuple(map(ModelReference.of, models)), options))


def values(found: Evaluation, index: int = 0) -> dict[str, float | None]:
    return {name: each.value for name, each in found.models[index].metrics.items()}


def of_keras(directory: Path, split: str = "validation") -> tuple[Any, Any, Any]:
    """A run's model as Keras loads it, and the examples of a split: inputs as it takes them, and labels."""
    scale = diagnostics.read(directory).input_spec.scale  # type: ignore[union-attr]
    examples = getattr(data.load("digits", data.DataOptions()), split)
    assert isinstance(examples, data.dataset.Split)
    return keras.saving.load_model(trained_model(directory)), examples.inputs * scale, examples.targets


def test_the_metrics_are_those_of_keras(gym: Gym) -> None:
    directory = gym.train_once(PLAN).directory
    found = evaluated(directory)
    assert (found.split, found.examples) == ("validation", 360)
    model, inputs, labels = of_keras(directory)
    model.compile(loss=model.loss, metrics=["accuracy"])
    expected = model.evaluate(inputs, labels, verbose=0, return_dict=True)
    assert values(found) == pytest.approx(expected, rel=1e-4)
    for metric in found.models[0].metrics.values():
        assert metric.low < metric.value < metric.high


RECIPE = {
    "optimizer": "sgd",
    "momentum": 0.9,
    "nesterov": "on",
    "schedule": "one-cycle",
    "warmup": 0.05,
    "final_rate": 0.01,
    "freeze": ("dense",),
    "last_batch": "drop",
    "steps_per_epoch": 3,
    "augmentation": ("mixup",),
}


def test_what_only_training_needs_does_not_matter(gym: Gym) -> None:
    directory = gym.train_once(PLAN.replace(**RECIPE)).directory
    model, inputs, labels = of_keras(directory)
    model.compile(loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    expected = model.evaluate(inputs, labels, verbose=0, return_dict=True)
    assert values(evaluated(directory)) == pytest.approx(expected, rel=1e-4)


def test_classes_have_the_figures_of_the_predictions(gym: Gym) -> None:
    found = evaluated(gym.train_once(PLAN).directory)
    classes = found.models[0].classes
    assert sum(each.examples for each in classes) == 360
    right = sum(each.examples * each.recall.value for each in classes)
    assert right / 360 == pytest.approx(values(found)["accuracy"])
    for each in classes:
        figures = each.precision, each.recall, each.f1
        assert all(each.low is None or each.low <= each.value <= each.high for each in figures)


def test_the_training_split_can_be_evaluated(gym: Gym) -> None:
    found = evaluated(gym.train_once(PLAN).directory, split="training")
    assert (found.split, found.examples) == ("training", 1437)


def test_class_weights_are_for_training_only(gym: Gym) -> None:
    directory = gym.train(PLAN.replace(class_weight=("1=10",))).directory
    model, inputs, labels = of_keras(directory, "train")
    model.compile(loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    expected = model.evaluate(inputs, labels, verbose=0, return_dict=True)
    found = evaluated(directory, split="training")
    assert values(found) == pytest.approx(expected, rel=1e-4)
    assert not any("have changed" in note for note in found.models[0].notes)


def test_a_split_that_is_not_there_is_an_error(gym: Gym) -> None:
    with pytest.raises(AccelError, match="digits has no test examples"):
        evaluated(gym.train_once(PLAN).directory, split="test")


def test_a_model_is_no_better_than_itself_and_better_than_an_untrained_one(gym: Gym) -> None:
    directory = gym.train_once(PLAN).directory
    same, worse = (
        evaluated(directory, directory),
        evaluated(gym.train(PLAN.replace(learning_rate=1e-7)).directory, directory),
    )
    for metric in same.differences[0].metrics.values():
        assert (metric.measured.value, metric.p, metric.is_better) == (0.0, 1.0, None)
    accuracy = worse.differences[0].metrics["accuracy"]
    assert accuracy.is_better is True
    assert accuracy.p == pytest.approx(1 / 101)
    assert accuracy.measured.low > 0


def test_a_file_is_evaluated_on_the_given_data(gym: Gym) -> None:
    directory = gym.train_once(PLAN).directory
    file = Plan(model=str(trained_model(directory)), data="digits")
    assert values(evaluated(file)) == pytest.approx(values(evaluated(directory)), rel=1e-5)


def test_a_file_and_a_run_have_all_rows_of_other_data(gym: Gym, tmp_path: Path) -> None:
    points = np.random.default_rng(5).normal(size=(60, 4)).astype(np.float32)
    np.savez(tmp_path / "points.npz", x=points, y=(points.sum(1) > 0).astype(np.int32))
    other = str(tmp_path / "points.npz")
    directory = gym.train(Plan(model="mlp", data=other, epochs=1, batch_size=20)).directory
    file = Plan(model=str(trained_model(directory)), data=other)
    found = evaluated(directory, file, data=other)
    assert (found.split, found.examples) == ("points.npz", 60)
    assert [each.measured.value for each in found.differences[0].metrics.values()] == pytest.approx([0, 0], abs=1e-6)
    assert evaluated(file, split="validation").examples == 6


@pytest.mark.parametrize("has_targets", [True, False])
def test_other_inputs_are_other_examples(gym: Gym, tmp_path: Path, has_targets: bool) -> None:
    numbers, files = np.random.default_rng(5), [tmp_path / f"{name}.npz" for name in "ab"]
    targets = {"y": np.arange(60, dtype=np.int32) % 2} if has_targets else {}
    for file in files:
        np.savez(file, x=numbers.normal(size=(60, 4)).astype(np.float32), **targets)
    (tmp_path / "models.py").write_text(CODER)
    model = "mlp" if has_targets else f"{tmp_path}/models.py:coder"
    runs = [gym.train(Plan(model=model, data=str(file), epochs=1, batch_size=20)).directory for file in files]
    with pytest.raises(AccelError, match="have other validation examples"):
        evaluated(*runs)
    assert evaluated(*runs, data=str(files[0])).examples == 60


CODER = """
import keras

def coder(input_shape):
    model = keras.Sequential([keras.Input(input_shape), keras.layers.Dense(2), keras.layers.Dense(4)])
    model.compile("adam", "mse")
    return model
"""


ENDLESS = """
import numpy as np
import tensorflow as tf

def load():
    every = tf.data.Dataset.from_tensor_slices((np.ones((20, 4), np.float32), np.arange(20) % 2)).batch(10)
    return {"train": every.repeat(), "validation": every, "class_names": ["no", "yes"]}
"""


def test_of_a_stream_without_end_an_epoch_is_evaluated(gym: Gym, tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS)
    directory = gym.train(Plan(model="mlp", data=f"{tmp_path}/endless.py:load", epochs=1, steps_per_epoch=5)).directory
    found = evaluated(directory, split="training")
    assert (found.split, found.examples) == ("training", 50)
    assert "the number of training batches is unknown: 5 are read at most" in found.models[0].notes


TABLE = "area,city,price\n" + "".join(f"{40 + row},{('Bonn', 'Trier')[row % 2]},{100.5 + row}\n" for row in range(60))


@pytest.fixture
def houses(tmp_path: Path) -> Path:
    path = tmp_path / "houses.csv"
    path.write_text(TABLE)
    return path


def test_other_rows_are_preprocessed_as_the_runs_own(gym: Gym, houses: Path, tmp_path: Path) -> None:
    plan = Plan(data=str(houses), target=("price",), epochs=1, batch_size=12, metrics=("r2_score",), test_split=0.2)
    directory = gym.train(plan).directory
    assert evaluated(directory).split == "test"
    others = tmp_path / "others.csv"
    others.write_text("\n".join(TABLE.splitlines()[:11]) + "\n")
    found = evaluated(directory, data=str(others))
    assert (found.split, found.examples) == ("others.csv", 10)
    assert {"loss", "r2_score"} <= set(values(found))
    assert not any("training data" in note for note in found.models[0].notes)
    others.write_text(others.read_text().replace("Bonn", "Ulm", 1))
    unseen = "1 value of column city not in the training data, such as 'Ulm'"
    assert any(unseen in note for note in evaluated(directory, data=str(others)).models[0].notes)
    for split in ("test", "validation"):
        with pytest.raises(AccelError, match=f"as a whole, not its {split} split: leave --split out"):
            evaluated(directory, data=str(others), split=split)
    with pytest.raises(AccelError, match="have other test examples, or scale their targets differently"):
        evaluated(directory, gym.train(plan.replace(seed=1)).directory)


def test_other_data_with_other_columns_is_an_error(gym: Gym, houses: Path, tmp_path: Path) -> None:
    directory = gym.train(Plan(data=str(houses), target=("price",), epochs=1, batch_size=12)).directory
    others = tmp_path / "others.csv"
    others.write_text("town,price\nBonn,3\n")
    with pytest.raises(AccelError, match="area"):
        evaluated(directory, data=str(others))
    others.write_text(TABLE.splitlines()[0] + "\n,,\n" + "\n".join(TABLE.splitlines()[1:]) + "\n")
    for model in (directory, Plan(model=str(trained_model(directory)), data=str(others), target=("price",))):
        with pytest.raises(AccelError, match=r"row 1 has no value in the target, the column price$"):
            evaluated(model, data=str(others))  # without an option of training


def test_a_run_with_its_own_validation_file_is_evaluated_on_another(gym: Gym, houses: Path, tmp_path: Path) -> None:
    for name in ("own.csv", "others.csv"):
        (tmp_path / name).write_text("\n".join(TABLE.splitlines()[:11]) + "\n")
    plan = Plan(data=str(houses), target=("price",), epochs=1, batch_size=12, validation_data=str(tmp_path / "own.csv"))
    directory = gym.train(plan).directory
    found = evaluated(directory, data=str(tmp_path / "others.csv"))
    assert values(found) == values(evaluated(directory))
    assert not any("training data" in note for note in found.models[0].notes)


def test_images_that_would_be_read_in_another_size_are_refused(gym: Gym, tmp_path: Path) -> None:
    for name, side, count in (("own", 24, 8), ("large", 32, 12)):
        for label, number in product(("a", "b"), range(count)):
            path = tmp_path / name / label / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            keras.utils.save_img(path, np.zeros((side, side, 1)))
    large = str(tmp_path / "large")
    plan = Plan(model="cnn", data=str(tmp_path / "own"), epochs=1, batch_size=8, validation_data=large)
    with pytest.raises(AccelError, match="trained on uint8 32x32x1, but its data is read as uint8 24x24x1 now"):
        evaluated(gym.train(plan).directory, data=large)
    found = evaluated(gym.train(plan.replace(validation_data="")).directory, data=large)
    assert (found.split, found.examples) == ("large", 24)


def test_a_checkpoint_can_be_chosen(gym: Gym) -> None:
    directory = gym.train(PLAN.replace(checkpoint_every="5 steps")).directory
    first, last = evaluated(directory, checkpoint="5"), evaluated(directory, checkpoint="last")
    assert (first.models[0].step, last.models[0].step) == (5, 14)
    assert values(first)["loss"] > values(last)["loss"]
    with pytest.raises(AccelError, match="no checkpoint of step 7, only of"):
        evaluated(directory, checkpoint="7")


CONFIDENT = """
import keras
import tensorflow as tf

def build(input_shape, classes, activation="softmax", loss="sparse_categorical_crossentropy"):
    model = keras.Sequential([
        keras.Input(input_shape), keras.layers.Flatten(), keras.layers.Dense(classes),
        keras.layers.Rescaling(40.0), keras.layers.Activation(activation),
    ])
    model.compile("sgd", loss, metrics=[loss])
    return model

def of_tensorflow(input_shape, classes):
    return build(input_shape, classes, Softmax())

def binary(input_shape):
    return build(input_shape, 1, "sigmoid", "binary_crossentropy")

@keras.saving.register_keras_serializable("tests")
class Softmax(keras.layers.Layer):
    def call(self, x):
        return tf.nn.softmax(x)
"""
"""Models whose losses Keras would clip at 16.1 an example, if it did not take their logits."""


@pytest.mark.parametrize("function", ["build", pytest.param("of_tensorflow", marks=pytest.mark.campaign)])
def test_the_loss_of_a_confident_model_is_that_of_keras_and_of_its_validation(
    gym: Gym, tmp_path: Path, function: str
) -> None:
    (tmp_path / "confident.py").write_text(CONFIDENT)
    trained = gym.train(PLAN.replace(model=f"{tmp_path}/confident.py:{function}", learning_rate=1e-9))
    found = evaluated(trained.directory, trained.directory)
    validated = trained.all(Validated)[-1].metrics
    assert validated["loss"] > 10
    expected = {"loss": validated["loss"], "sparse_categorical_crossentropy": validated["loss"]}
    assert {name: values(found)[name] for name in expected} == pytest.approx(expected, rel=1e-5)
    name, loss = next(iter(found.models[0].metrics.items()))
    assert loss.low < loss.value < loss.high
    assert (found.models[0].notes, found.differences[0].metrics[name].p) == ((), 1.0)
    if function == "build":
        model, inputs, labels = of_keras(trained.directory)
        assert values(found)["loss"] == pytest.approx(model.evaluate(inputs, labels, verbose=0)[0], rel=1e-4)


COUPLED = """
import keras

def build(input_shape, classes):
    model = keras.Sequential([keras.Input(input_shape), keras.layers.Flatten(), keras.layers.Dense(classes, "softmax")])
    model.compile("adam", loss, metrics=[rmse])
    return model

@keras.saving.register_keras_serializable("tests")
def rmse(y_true, y_pred):
    return keras.ops.sqrt(keras.ops.mean((keras.ops.one_hot(y_true, 10) - y_pred) ** 2))


@keras.saving.register_keras_serializable("tests")
def loss(y_true, y_pred):
    ones = keras.ops.ones_like(y_pred[:, 0])
    return ones * (1 + keras.ops.max(y_pred) - keras.ops.min(y_pred[:, 0]))
"""


def test_a_loss_that_is_no_mean_over_examples_is_said(gym: Gym, tmp_path: Path) -> None:
    """Its value is Keras' of batches of the plan's size, of which single examples say nothing."""
    (tmp_path / "coupled.py").write_text(COUPLED)
    directory = gym.train(PLAN.replace(model=f"{tmp_path}/coupled.py:build")).directory
    found = evaluated(directory, directory)
    (note,) = found.models[0].notes
    assert note.startswith("loss, rmse: computed of batches of 100 examples as Keras does")
    metrics = found.models[0].metrics
    tested = {name: each.p for name, each in found.differences[0].metrics.items()}
    for name in ("loss", "rmse"):
        assert (metrics[name].low, metrics[name].high, tested[name]) == (None, None, None)
    assert metrics["accuracy"].low < metrics["accuracy"].value
    assert tested["accuracy"] == 1.0
    assert evaluated(gym.train_once(PLAN).directory).models[0].notes == ()
    model, inputs, labels = of_keras(directory)
    expected = model.evaluate(inputs, labels, batch_size=100, verbose=0, return_dict=True)
    assert {name: metrics[name].value for name in ("loss", "rmse")} == pytest.approx(
        {name: expected[name] for name in ("loss", "rmse")}, rel=1e-4
    )


def test_where_all_are_right_the_interval_still_begins_below(gym: Gym, tmp_path: Path) -> None:
    rows = np.arange(200) % 2
    np.savez(tmp_path / "easy.npz", x=np.stack([rows, -rows], axis=1).astype("float32"), y=rows)
    plan = Plan(data=str(tmp_path / "easy.npz"), epochs=20, batch_size=20, learning_rate=0.05, metrics=("precision",))
    (model,) = evaluated(gym.train(plan).directory).models
    assert "precision: of the class 1, the second of two" in model.notes
    name, accuracy = list(model.metrics.items())[1]
    assert (name, accuracy.value, accuracy.high) == ("accuracy", 1.0, 1.0)
    assert accuracy.low == pytest.approx(0.839, abs=0.001)  # Wilson's, of 20


def test_intervals_of_classes_are_by_one_method() -> None:
    """Wilson's, by hand: one example more that is right raises both ends, also of the last one."""
    pairs = np.array([[0, 0]] * 18 + [[0, 1]] * 2 + [[1, 1]] * 20, np.int32)
    before, after = (
        class_scores(ClassLabels(Task("classification"), ("no", "yes", "none"), each), 0.95)
        for each in (pairs, np.where(pairs[:, :1] == 0, 0, pairs).astype(np.int32))
    )
    assert astuple(before[0].recall) == pytest.approx([0.9, 0.6990, 0.9721], abs=1e-4)
    assert astuple(before[0].f1) == pytest.approx([36 / 38, 0.8229, 0.9859], abs=1e-4)  # 2 J / (1 + J) of 18 of 20
    assert astuple(after[0].f1) == pytest.approx([1.0, 0.9124, 1.0], abs=1e-4)  # of 20 of 20: J is above 0.8389
    assert astuple(before[2].f1) == (None, None, None)


SOUNDS = """
import keras

def build(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), keras.layers.Flatten(), keras.layers.Dense(classes)])
"""


def test_a_long_sound_counts_once_by_the_mean_of_its_windows(gym: Gym, tmp_path: Path) -> None:
    (tmp_path / "sounds.py").write_text(SOUNDS)
    rng, sounds, labels = np.random.default_rng(0), [], []
    for split, number, label in product(("train", "val"), range(20), (0, 1)):
        sound = rng.normal(400 * label, 1500, 80 * (1 + number % 4)).astype("<i2")
        path = tmp_path / "tones" / split / f"class {label}" / f"{number:02}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        with wave.open(str(path), "wb") as file:
            file.setparams((1, 2, 2000, len(sound), "NONE", ""))
            file.writeframes(sound.tobytes())
        if split == "val":
            sounds.append((sound / 32768).astype(np.float32).reshape(-1, 80, 1))
            labels.append(label)
    plan = Plan(model=f"{tmp_path / 'sounds.py'}:build", data=str(tmp_path / "tones"), window=80, epochs=3)
    directory = gym.train(plan.replace(batch_size=16, learning_rate=0.1, validation="end")).directory
    found, model = evaluated(directory), keras.saving.load_model(trained_model(directory))
    chances = np.array([keras.ops.softmax(model(sound)).numpy().mean(0) for sound in sounds])[range(40), labels]
    right, loss = int((chances > 0.5).sum()), float(-np.log(chances).mean())
    assert found.examples == 40
    assert 20 < right < 40
    assert values(found) == pytest.approx({"loss": loss, "accuracy": right / 40}, rel=1e-4)
    accuracy = found.models[0].metrics["accuracy"]
    assert (accuracy.low, accuracy.high) == pytest.approx(share_interval(right, 40, 0.95))
    assert sum(each.examples for each in found.models[0].classes) == 40
    assert "100 windows of 40 sounds: each sound counts once" in "\n".join(found.models[0].notes)
    finer = gym.train(plan.replace(window=40, epochs=1, batch_size=16, validation="end")).directory
    both = evaluated(directory, finer)
    assert (both.examples, values(both)) == (40, pytest.approx(values(found)))
    assert "200 windows of 40 sounds" in "\n".join(both.models[1].notes)


def test_outputs_of_windows_are_joined_as_what_they_are() -> None:
    first, halves = np.array([0, 2], np.int32), np.array([[0.2, 0.8], [0.6, 0.4], [0.1, 0.9]])
    joined = join_windows(halves, first, Task("classification"))
    assert joined == pytest.approx(np.array([[0.4, 0.6], [0.1, 0.9]]))
    logits = join_windows(np.log(halves) + 7, first, Task("classification", logits=True))
    assert logits == pytest.approx(np.log([[0.4, 0.6], [0.1, 0.9]]) + 7)
    sure = np.array([[800.0], [-800.0], [3.0]])
    binary = join_windows(sure, first, Task("classification", logits=True, binary=True))
    assert binary == pytest.approx(np.array([[0.0], [3.0]]))
    assert join_windows(halves[:, 1:], first, Task("classification", binary=True))[0] == pytest.approx(0.6)


LENGTHS = """
import keras
import numpy as np
import tensorflow as tf

def load():
    def batches():
        for length in (3, 5, 4, 7, 6, 9):
            yield np.ones((8, length, 2), "float32"), np.arange(8) % 2
    spec = (tf.TensorSpec((None, None, 2), tf.float32), tf.TensorSpec((None,), tf.int64))
    dataset = tf.data.Dataset.from_generator(batches, output_signature=spec)
    return {"train": dataset, "validation": dataset, "class_names": ["even", "odd"]}

def build(input_shape, classes):
    layers = keras.layers
    return keras.Sequential(
        [keras.Input((None, 2)), layers.GlobalAveragePooling1D(), layers.Dense(classes, activation="softmax")]
    )
"""


def test_batches_of_many_lengths_have_one_graph(gym: Gym, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lengths.py").write_text(LENGTHS)
    file = tmp_path / "lengths.py"
    directory = gym.train(Plan(model=f"{file}:build", data=f"{file}:load", epochs=1)).directory
    traced, measure = list[object](), ExampleStates.measure

    def note(states: ExampleStates, *arguments: Any) -> Any:
        traced.append(states)
        return measure(states, *arguments)

    monkeypatch.setattr(ExampleStates, "measure", note)
    assert evaluated(directory).examples == 48
    assert len(traced) == 2  # the first length, then any


def test_what_keras_computes_wrongly_in_silence_is_refused_or_said(tmp_path: Path) -> None:
    tokens = np.ones((12, 12), np.int32)  # as many examples as steps, or Keras would raise an error
    np.savez(tmp_path / "tokens.npz", x_test=tokens, y_test=tokens[:, :3], x_train=tokens, y_train=tokens[:, :3])
    labels = (np.random.default_rng(0).normal(size=(12, 4)) > 0).astype(np.float32)
    np.savez(tmp_path / "labels.npz", x_test=labels, y_test=labels, x_train=labels, y_train=labels)
    masked = keras.Sequential(
        [
            keras.Input((12,), dtype="int32"),
            keras.layers.Embedding(10, 4, mask_zero=True),
            keras.layers.LSTM(4, return_sequences=True),
            keras.layers.Dense(5),
        ]
    )
    masked.compile("sgd", keras.losses.CTC())
    masked.save(tmp_path / "masked.keras")
    uneven = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4, activation="sigmoid")])
    uneven.compile("sgd", keras.losses.Tversky(alpha=0.3, beta=0.7))
    uneven.save(tmp_path / "uneven.keras")

    with pytest.raises(ModelError, match="CTC takes no mask"):
        evaluated(Plan(model=str(tmp_path / "masked.keras"), data=str(tmp_path / "tokens.npz")))
    found = evaluated(Plan(model=str(tmp_path / "uneven.keras"), data=str(tmp_path / "labels.npz")))
    assert any("exchange alpha=0.3 and beta=0.7" in note for note in found.models[0].notes)
