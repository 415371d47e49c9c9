"""Recording the metrics of custom models."""

from pathlib import Path

import keras
import pytest

from accel_engine import data
from accel_engine.events import ModelBuilt, Outcome, Validated, Warned
from accel_engine.plan import Plan
from accel_engine.run.store.series_names import MAX_ELEMENTS

from .conftest import Gym

PLAN = Plan(epochs=1, batch_size=256)
"""Six steps, of which the last has 157 examples."""

MODELS = """
import keras
from keras import layers, metrics

def compiled(input_shape, outputs, loss, measured):
    model = keras.Sequential([keras.Input(input_shape), layers.Flatten(),
                              layers.Dense(outputs, activation="softmax" if outputs > 1 else "sigmoid")])
    model.compile("adam", loss, metrics=measured)
    return model

def one_output(input_shape):
    return compiled(input_shape, 1, "binary_crossentropy", [metrics.F1Score(threshold=0.5)])

def uncompiled(input_shape):
    return keras.Sequential([keras.Input(input_shape), layers.Flatten(), layers.Dense(1, activation="sigmoid")])

def five_outputs(input_shape):
    return compiled(input_shape, 5, "sparse_categorical_crossentropy", None)

def areas(input_shape):
    model = compiled(input_shape, 1, "binary_crossentropy", None)
    model.compile("adam", "binary_crossentropy", metrics=[metrics.AUC(name="auc"), metrics.Recall(name="recall")],
                  weighted_metrics=[metrics.AUC(name="weighted_auc")])
    return model

def many_classes(input_shape, classes):
    measured = [metrics.F1Score(name="F1-score"), metrics.TopKCategoricalAccuracy(5, name="top5-acc")]
    return compiled(input_shape, classes, "categorical_crossentropy", measured)

def alike(input_shape, classes):
    measured = [metrics.TopKCategoricalAccuracy(k, name=name) for k, name in ((1, "top@1"), (5, "Top-1"), (9, "top_1"))]
    return compiled(input_shape, classes, "categorical_crossentropy", measured)

def accuracy(y, p):
    return 7.0 + 0.0 * p[:, 0]

def foreign_accuracy(input_shape, classes):
    return compiled(input_shape, classes, "categorical_crossentropy", [accuracy])

def keras_accuracy(input_shape, classes):
    return compiled(input_shape, classes, "sparse_categorical_crossentropy", ["accuracy"])

class Own(keras.Model):
    def train_step(self, data):
        super().train_step(data)
        return {"loss": keras.ops.ones((1, 1)), "parts": keras.ops.arange(3.0), "D_loss": keras.ops.ones(()),
                "d_loss": 2.0, "nested": {"x": 3.0}, "many": keras.ops.zeros(1000)}

def own(input_shape, classes):
    inputs = keras.Input(input_shape)
    model = Own(inputs, layers.Dense(classes, activation="softmax")(layers.Flatten()(inputs)))
    model.compile("adam", "sparse_categorical_crossentropy",
                  metrics=[keras.metrics.SparseCategoricalAccuracy(name="Acc@1")])
    return model
"""


@pytest.fixture
def models(tmp_path: Path) -> str:
    path = tmp_path / "models.py"
    path.write_text(MODELS)
    return str(path)


def test_an_f1_score_of_one_output_is_a_scalar(gym: Gym, models: str) -> None:
    plan = PLAN.replace(model=f"{models}:one_output", data="synthetic:6x6x1:2:700")
    trained = gym.train(plan)

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    dataset = data.load(plan.data, plan.data_options)
    model = keras.models.load_model(trained.directory / "model.keras")
    (expected,) = model.evaluate(
        dataset.validation.inputs / 255, dataset.validation.targets[:, None], verbose=0, return_dict=True
    )["f1_score"]
    assert trained.only(Validated).metrics["f1_score"] == pytest.approx(float(expected), abs=1e-6)
    assert not trained.all(Warned)


@pytest.mark.parametrize("outputs", [1, 2, pytest.param(5, marks=pytest.mark.campaign)])
def test_metrics_of_two_classes_are_those_of_the_second(gym: Gym, models: str, outputs: int) -> None:
    names = ("precision", "recall", "auc", "f1_score")
    model = {1: f"{models}:uncompiled", 2: "mlp", 5: f"{models}:five_outputs"}[outputs]
    plan = PLAN.replace(model=model, data="synthetic:6x6x1:2:700", metrics=names, epochs=2)
    trained = gym.train(plan)

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    dataset = data.load(plan.data, plan.data_options)
    held_out, labels = dataset.validation.inputs / 255, dataset.validation.targets[:, None]
    positive = keras.models.load_model(trained.directory / "model.keras").predict(held_out, verbose=0)
    positive = positive[:, 1:2] if outputs > 1 else positive
    expected = (
        keras.metrics.Precision(),
        keras.metrics.Recall(),
        keras.metrics.AUC(),
        keras.metrics.F1Score("macro", threshold=0.5),
    )
    found = trained.all(Validated)[-1].metrics
    for name, metric in zip(names, expected, strict=True):
        metric.update_state(labels.astype("float32"), positive)
        assert found[name] == pytest.approx(float(metric.result()), abs=1e-5), name
    note = f"precision, recall, auc, f1_score: of the class {dataset.class_names[1]}, the second of two"
    assert note in [event.message for event in trained.all(Warned)]


def test_a_metric_per_class_is_a_series_per_class(gym: Gym, models: str) -> None:
    trained = gym.train(PLAN.replace(model=f"{models}:many_classes"))

    metrics = trained.only(Validated).metrics
    assert set(metrics) == {"loss", "accuracy", "top5_acc", *(f"f1_score_{place}" for place in range(10))}
    assert metrics["accuracy"] <= metrics["top5_acc"] <= 1
    assert trained.ended.metrics["validation_top5_acc"] == metrics["top5_acc"]


def test_metrics_with_the_same_name_are_renamed_with_a_warning(gym: Gym, models: str) -> None:
    trained = gym.train(PLAN.replace(model=f"{models}:alike"))

    metrics = trained.only(Validated).metrics
    assert metrics["top_1_2"] <= metrics["top_1_3"] <= metrics["top_1"]
    assert metrics["top_1_2"] == pytest.approx(metrics["accuracy"])
    messages = [event.message for event in trained.all(Warned)]
    assert messages == [
        "the metric top@1 is recorded as top_1_2: the name top_1 is taken",
        "the metric Top-1 is recorded as top_1_3: the name top_1 is taken",
    ]


def test_a_models_own_metric_named_accuracy_is_the_accuracy(gym: Gym, models: str) -> None:
    trained = gym.train(PLAN.replace(model=f"{models}:foreign_accuracy"))

    assert set(trained.series["accuracy"]) == {7.0}
    assert trained.only(Validated).metrics["accuracy"] == 7.0
    assert set(trained.series) == {"loss", "accuracy", "learning_rate"}
    assert not trained.all(Warned)


def test_keras_accuracy_is_the_accuracy(gym: Gym, models: str) -> None:
    trained = gym.train(PLAN.replace(model=f"{models}:keras_accuracy"))

    assert set(trained.only(Validated).metrics) == {"loss", "accuracy"}
    assert 0 < trained.series["accuracy"][-1] < 1
    assert not trained.all(Warned)


@pytest.mark.parametrize("replicas", [2, pytest.param(1, marks=pytest.mark.campaign)])
def test_a_metric_with_a_large_state_is_not_recorded_of_single_steps(gym: Gym, models: str, replicas: int) -> None:
    strategy = "mirrored" if replicas == 2 else "default"
    plan = PLAN.replace(model=f"{models}:areas", data="synthetic:6x6x1:2:700", strategy=strategy)
    trained = gym.train(plan.replace(virtual_cpus=replicas))

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    assert set(trained.series) == {"loss", "accuracy", "recall", "learning_rate"}
    assert trained.only(ModelBuilt).series == ("loss", "recall", "accuracy", "learning_rate")
    (message,) = [event.message for event in trained.all(Warned)]
    assert message == "measured of epochs and validations, not of single steps: auc, weighted_auc"
    dataset = data.load(plan.data, plan.data_options)
    model = keras.models.load_model(trained.directory / "model.keras")
    expected = model.evaluate(
        dataset.validation.inputs / 255, dataset.validation.targets[:, None], verbose=0, return_dict=True
    )
    found = trained.only(Validated).metrics
    assert found.keys() == {*expected, "accuracy"}
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-5), name


@pytest.mark.parametrize("replicas", [2, pytest.param(1, marks=pytest.mark.campaign)])
def test_values_of_a_train_step_that_are_not_recorded_cause_a_warning(gym: Gym, models: str, replicas: int) -> None:
    strategy = "mirrored" if replicas == 2 else "default"
    trained = gym.train(PLAN.replace(model=f"{models}:own", strategy=strategy, virtual_cpus=replicas))

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    series = {name: values[0] for name, values in trained.series.items() if not name.startswith("many_")}
    rate = series.pop("learning_rate")
    assert rate == pytest.approx(0.001)
    assert series == {
        "loss": 1,
        "parts_0": 0,
        "parts_1": 1,
        "parts_2": 2,
        "d_loss_2": 1,
        "d_loss": 2,
        "nested_x": 3,
    }
    assert sum(name.startswith("many_") for name in trained.series) == MAX_ELEMENTS
    messages = [event.message for event in trained.all(Warned)]
    assert f"the metric many has 1,000 values: the first {MAX_ELEMENTS} are recorded" in messages
    assert "the metric D_loss is recorded as d_loss_2: the name d_loss is taken" in messages
    assert set(trained.only(Validated).metrics) == {"loss", "acc_1"}
    assert trained.only(ModelBuilt).series == ("loss", "learning_rate")
