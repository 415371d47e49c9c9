"""Evaluation reports, compared with NumPy's results on the predictions of the saved model."""

import textwrap
from pathlib import Path

import keras
import numpy as np
import pytest

from accel_engine import data
from accel_engine.plan import Plan
from accel_engine.run.diagnostics import EvaluationReport, InputSpec, read
from accel_engine.training.evaluation import evaluation_report
from accel_engine.training.evaluation.evaluation_report import preview

from ..conftest import Gym, Trained

PLAN = Plan(model="mlp", epochs=2, batch_size=100)


def examined(trained: Trained) -> EvaluationReport:
    kept = read(trained.directory)
    assert kept.evaluation is not None
    assert kept.steps["evaluation"] == trained.ended.steps
    return kept.evaluation


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"strategy": "mirrored", "virtual_cpus": 2},
        {"strategy": "mirrored", "virtual_cpus": 3, "data": "synthetic:6x6x3:4:700"},
        {"data": "synthetic:6x6x1:2:170"},
    ],
)
def test_the_report_matches_the_saved_model(gym: Gym, more: dict[str, object]) -> None:
    trained = gym.train(PLAN.replace(**more))
    found = examined(trained)
    plan = PLAN.replace(**more)
    dataset = data.load(plan.data, image_size=None, seed=plan.seed)
    assert dataset.validation is not None
    x, y = dataset.validation.x, dataset.validation.y
    said = keras.models.load_model(trained.directory / "model.keras").predict(x / 255, verbose=0)

    expected = np.zeros((dataset.classes, dataset.classes), np.int64)
    np.add.at(expected, (y, said.argmax(axis=1)), 1)
    assert found.counts is not None
    np.testing.assert_array_equal(found.counts, expected)
    assert (found.examples, found.names, found.reason) == (len(y), dataset.class_names, "")

    chance = said[np.arange(len(y)), y]
    order = sorted(range(len(y)), key=lambda row: (said[row].argmax() == y[row], chance[row]))[
        : evaluation_report.SAVED_SAMPLES
    ]
    assert {judged.row for judged in found.worst} == set(order)
    ranks = [(judged.correct, judged.true_class_probability) for judged in found.worst]
    assert ranks == sorted(ranks)
    for judged in found.worst:
        assert (judged.label, judged.predicted) == (y[judged.row], said[judged.row].argmax())
        assert judged.confidence == pytest.approx(said[judged.row].max(), abs=1e-4)
        assert judged.true_class_probability == pytest.approx(chance[judged.row], abs=1e-4)
    np.testing.assert_array_equal(found.pictures, x[[judged.row for judged in found.worst]])


def test_each_validation_replaces_the_previous_report(gym: Gym) -> None:
    trained = gym.train(PLAN.replace(epochs=1))
    assert read(trained.directory).steps == {"input_spec": 0, "layers": 0, "evaluation": 14}
    gym.train(PLAN.replace(epochs=2), run=trained.directory)
    assert read(trained.directory).steps == {"input_spec": 14, "layers": 14, "evaluation": 28}


def test_reports_of_other_data_have_no_images(gym: Gym) -> None:
    found = examined(gym.train(PLAN.replace(data="synthetic:20:3:500")))
    assert found.counts is not None
    assert found.pictures is None
    assert found.worst
    assert found.reason == "no images: examples of 20 are not images (20 numbers)"


def test_no_confusion_matrix_for_too_many_classes(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation_report, "MAX_CLASSES", 9)
    found = examined(gym.train(PLAN))
    assert found.counts is None
    assert found.pictures is not None
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
    found = examined(gym.train(PLAN.replace(model=f"{source}:build")))
    assert (found.counts, found.worst, found.pictures) == (None, (), None)
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
    found = examined(gym.train(PLAN.replace(model=f"{source}:build", data="synthetic:6x6x1:2:900")))
    assert found.counts is not None
    assert found.counts.sum() == 90
    for judged in found.worst:
        assert 0.5 <= judged.confidence <= 1
        assert judged.true_class_probability == pytest.approx(
            judged.confidence if judged.correct else 1 - judged.confidence, abs=1e-5
        )


def test_large_images_are_downsampled_by_averaging() -> None:
    intake = InputSpec((128, 96, 1), ("a", "b"), 1.0, -1.0, 1.0, integers=False)
    x = np.zeros((1, 128, 96, 1), np.float32)
    x[:, ::2] = 1.0
    small = preview(x, intake)
    assert small.shape == (1, 64, 48, 1)
    assert set(small.reshape(-1).tolist()) == {191}
