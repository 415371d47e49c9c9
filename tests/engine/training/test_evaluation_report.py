"""What a validation says of each example, against what NumPy finds in the predictions of the model that was saved."""

import textwrap
from pathlib import Path

import keras
import numpy as np
import pytest

from accel_engine import data
from accel_engine.plan import Plan
from accel_engine.run.diagnostics import EvaluationReport, InputSpec, read
from accel_engine.training import evaluation_report
from accel_engine.training.evaluation_report import preview

from .conftest import Gym, Trained

PLAN = Plan(model="mlp", epochs=2, batch_size=100)


def examined(trained: Trained) -> EvaluationReport:
    kept = read(trained.directory)
    assert kept.examined is not None
    assert kept.steps["examined"] == trained.ended.steps
    return kept.examined


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"strategy": "mirrored", "virtual_cpus": 2},
        {"strategy": "mirrored", "virtual_cpus": 3, "data": "synthetic:6x6x3:4:700"},
        {"data": "synthetic:6x6x1:2:170"},
    ],
)
def test_what_is_kept_is_what_the_saved_model_says(gym: Gym, more: dict[str, object]) -> None:
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
        : evaluation_report.SAMPLES_KEPT
    ]
    assert {judged.row for judged in found.worst} == set(order)
    ranks = [(judged.right, judged.chance) for judged in found.worst]
    assert ranks == sorted(ranks)
    for judged in found.worst:
        assert (judged.label, judged.said) == (y[judged.row], said[judged.row].argmax())
        assert judged.confidence == pytest.approx(said[judged.row].max(), abs=1e-4)
        assert judged.chance == pytest.approx(chance[judged.row], abs=1e-4)
    np.testing.assert_array_equal(found.pictures, x[[judged.row for judged in found.worst]])


def test_each_validation_takes_the_place_of_the_one_before(gym: Gym) -> None:
    trained = gym.train(PLAN.replace(epochs=1))
    assert read(trained.directory).steps == {"intake": 0, "layers": 0, "examined": 14}
    gym.train(PLAN.replace(epochs=2), run=trained.directory)
    assert read(trained.directory).steps == {"intake": 14, "layers": 14, "examined": 28}


def test_data_that_is_no_images_is_judged_without_pictures(gym: Gym) -> None:
    found = examined(gym.train(PLAN.replace(data="synthetic:20:3:500")))
    assert found.counts is not None
    assert found.pictures is None
    assert found.worst
    assert found.reason == "no images: examples of 20 are not images (20 numbers)"


def test_of_too_many_classes_only_the_worst_are_kept(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation_report, "MAXIMUM_CLASSES", 9)
    found = examined(gym.train(PLAN))
    assert found.counts is None
    assert found.pictures is not None
    assert "of 10 classes" in found.reason


def test_a_model_with_its_own_train_step_keeps_nothing_and_says_why(gym: Gym, tmp_path: Path) -> None:
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
def test_confidence_is_a_probability_whatever_the_outputs_are(gym: Gym, tmp_path: Path, loss: str) -> None:
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
        assert judged.chance == pytest.approx(judged.confidence if judged.right else 1 - judged.confidence, abs=1e-5)


def test_large_pictures_are_made_small_by_means_of_their_pixels() -> None:
    intake = InputSpec((128, 96, 1), ("a", "b"), 1.0, -1.0, 1.0, integers=False)
    x = np.zeros((1, 128, 96, 1), np.float32)
    x[:, ::2] = 1.0
    small = preview(x, intake)
    assert small.shape == (1, 64, 48, 1)
    assert set(small.reshape(-1).tolist()) == {191}
