"""Reports of validations, compared with NumPy's results on the predictions of the saved model."""

import textwrap
from pathlib import Path

import keras
import numpy as np
import pytest

from accel_engine import data
from accel_engine.data.dataset import Split
from accel_engine.plan import Plan
from accel_engine.run.diagnostics import ClassificationReport, CustomReport, OutputReport, RegressionReport, read
from accel_engine.run.diagnostics.reports import MAX_WORST
from accel_engine.run.diagnostics.views import Image, Row
from accel_engine.training.evaluation.reports import classification

from ..conftest import Gym, Trained

PLAN = Plan(model="mlp", epochs=1, batch_size=100, last_batch="drop", optimizer="sgd", learning_rate=0.05)


def report_of(trained: Trained) -> OutputReport:
    kept = read(trained.directory)
    assert kept.validation is not None
    assert kept.steps["validation"] == trained.ended.steps
    (report,) = kept.validation.outputs
    return report


def classified(trained: Trained) -> ClassificationReport:
    report = report_of(trained)
    assert isinstance(report, ClassificationReport)
    return report


@pytest.mark.parametrize(
    "more",
    [
        {},
        pytest.param({"strategy": "mirrored", "virtual_cpus": 2}, marks=pytest.mark.campaign),
        {"strategy": "mirrored", "virtual_cpus": 2, "data": "synthetic:6x6x3:4:700"},
        pytest.param(
            {"strategy": "mirrored", "virtual_cpus": 3, "data": "synthetic:6x6x3:4:700"}, marks=pytest.mark.campaign
        ),
        pytest.param({"data": "synthetic:6x6x1:2:170"}, marks=pytest.mark.campaign),
    ],
)
def test_the_report_matches_the_saved_model(gym: Gym, more: dict[str, object]) -> None:
    trained = gym.train(PLAN.replace(**more))
    found = classified(trained)
    plan = PLAN.replace(**more)
    split = data.load(plan.data, plan.data_options).validation
    assert isinstance(split, Split)
    x, y = split.inputs, split.targets
    said = keras.models.load_model(trained.directory / "model.keras").predict(x / 255, verbose=0)

    expected = np.zeros((said.shape[1], said.shape[1]), np.int64)
    np.add.at(expected, (y, said.argmax(axis=1)), 1)
    np.testing.assert_array_equal(found.counts, expected)
    assert (found.examples, len(found.names), found.reason) == (len(y), said.shape[1], "")

    chance = said[np.arange(len(y)), y]
    assert {judged.row for judged in found.worst} == set(np.argsort(chance)[:MAX_WORST].tolist())
    losses = [judged.loss for judged in found.worst]
    assert losses == sorted(losses, reverse=True)
    for judged in found.worst:
        assert (judged.label, judged.predicted) == (y[judged.row], said[judged.row].argmax())
        assert judged.loss == pytest.approx(-np.log(chance[judged.row]), abs=1e-3)
        assert judged.confidence == pytest.approx(said[judged.row].max(), abs=1e-4)
        assert judged.true_class_probability == pytest.approx(chance[judged.row], abs=1e-4)
        assert isinstance(judged.input, Image)
        np.testing.assert_array_equal(judged.input.pixels, x[judged.row])


def test_each_validation_replaces_the_previous_report(gym: Gym) -> None:
    trained = gym.train(PLAN)
    assert read(trained.directory).steps == {
        "input_spec": 0,
        "data": 0,
        "layers": 0,
        "format": 0,
        "profile": 0,
        "validation": 14,
    }
    gym.train(PLAN.replace(epochs=2), run=trained.directory)
    assert read(trained.directory).steps == {
        "input_spec": 14,
        "data": 0,
        "layers": 14,
        "format": 14,
        "profile": 0,
        "validation": 28,
    }


def test_reports_of_other_data_have_no_images(gym: Gym) -> None:
    found = classified(gym.train(PLAN.replace(data="synthetic:20:3:500")))
    assert found.counts is not None
    assert all(isinstance(judged.input, Row) for judged in found.worst)


def test_no_confusion_matrix_for_too_many_classes(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classification, "MAX_CLASSES", 9)
    found = classified(gym.train(PLAN))
    assert found.counts is None
    assert isinstance(found.worst[0].input, Image)
    assert "10 classes" in found.reason


def test_a_custom_train_step_has_no_report_but_a_reason(gym: Gym, tmp_path: Path) -> None:
    source = tmp_path / "own.py"
    source.write_text(
        textwrap.dedent("""
        import keras

        class Own(keras.Sequential):
            def train_step(self, data):
                return super().train_step(data)

        def build(input_shape, classes):
            layers = [keras.Input(input_shape), keras.layers.Flatten(), keras.layers.Dense(classes, "softmax")]
            model = Own(layers)
            model.compile("sgd", "sparse_categorical_crossentropy")
            return model
        """)
    )
    found = report_of(gym.train(PLAN.replace(model=f"{source}:build")))
    assert isinstance(found, CustomReport)
    assert "custom train_step" in found.reason


@pytest.mark.parametrize("loss", ["logits", "binary"])
def test_confidence_is_a_probability_for_any_outputs(gym: Gym, tmp_path: Path, loss: str) -> None:
    source = tmp_path / "compiled.py"
    last, compiled = {
        "logits": ("classes", "keras.losses.SparseCategoricalCrossentropy(from_logits=True)"),
        "binary": ("1", "keras.losses.BinaryCrossentropy(from_logits=True)"),
    }[loss]
    source.write_text(
        textwrap.dedent(f"""
        import keras

        def build(input_shape, classes):
            layers = [keras.Input(input_shape), keras.layers.Flatten(), keras.layers.Dense({last})]
            model = keras.Sequential(layers)
            model.compile("sgd", {compiled})
            return model
        """)
    )
    found = classified(gym.train(PLAN.replace(model=f"{source}:build", data="synthetic:6x6x1:2:900")))
    assert found.counts is not None
    assert found.counts.sum() == 90
    for judged in found.worst:
        assert 0.5 <= judged.confidence <= 1
        assert judged.true_class_probability == pytest.approx(
            judged.confidence if judged.is_correct else 1 - judged.confidence, abs=1e-5
        )


SEVERAL = """
import keras
import numpy as np

def data():
    numbers = np.random.default_rng(0)
    def part(count):
        x = numbers.normal(size=(count, 4)).astype(np.float32)
        return x, {"kind": (x[:, 0] > 0).astype(np.int32), "price": x[:, :1] * 3, "again": x}
    return part(100), part(37)

def build():
    x = keras.Input((4,))
    outputs = {
        "kind": keras.layers.Dense(2, "softmax")(x),
        "price": keras.layers.Dense(1)(x),
        "again": keras.layers.Dense(4)(keras.layers.Dense(2)(x)),
    }
    model = keras.Model(x, outputs)
    model.compile("sgd", {"kind": "sparse_categorical_crossentropy", "price": "mae", "again": "mse"})
    return model
"""


def test_replicas_give_the_reports_of_one_device(gym: Gym, tmp_path: Path) -> None:
    source = tmp_path / "several.py"
    source.write_text(SEVERAL)
    plan = Plan(model=f"{source}:build", data=f"{source}:data", epochs=1, batch_size=20)
    found = []
    for more in ({}, {"strategy": "mirrored", "virtual_cpus": 2}):
        report = read(gym.train(plan.replace(**more)).directory).validation
        assert report is not None
        found.append(report.outputs)
    for one, two in zip(*found, strict=True):
        assert (one.output, one.examples) == (two.output, 37)
        assert [each.row for each in one.worst] == [each.row for each in two.worst]
        assert [each.loss for each in one.worst] == pytest.approx([each.loss for each in two.worst], rel=1e-3)
    again, kind, price = found[1]
    assert isinstance(kind, ClassificationReport)
    assert kind.counts is not None
    assert kind.counts.sum() == 37
    assert isinstance(again, RegressionReport)
    assert isinstance(price, RegressionReport)
    assert price.worst[0].loss == pytest.approx(np.abs(np.diff(price.points[0])).max(), rel=1e-4)
