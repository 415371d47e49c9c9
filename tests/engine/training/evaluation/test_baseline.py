"""What a prediction that has learned nothing reaches equals NumPy's figures, and stands beside each validation."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from accel_engine import data
from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.standardization import Standardization
from accel_engine.data.structure import Batch
from accel_engine.data_profile.picture import data_picture
from accel_engine.events import Validated
from accel_engine.plan import Plan
from accel_engine.training.core.task import Task
from accel_engine.training.evaluation.baseline import baseline_of

from ...trained.evaluation.test_evaluate import evaluated
from ..conftest import Gym

RNG = np.random.default_rng(3)


def reached(
    task: Task, dataset: Dataset, output: tuple[int | None, ...], **options: Any
) -> tuple[str, dict[str, float]]:
    """The baseline of the validation examples, in two batches of which the second is padded by 3 examples."""
    baseline = baseline_of(task, dataset, tf.TensorSpec(output), **options)
    assert baseline is not None
    held_out = dataset.validation
    assert isinstance(held_out, Split)
    sums = np.zeros(baseline.width)
    for rows, known in ((np.arange(20), 20), (np.arange(20, len(held_out)), len(held_out) - 23)):
        batch = Batch(*(each if each is None else tf.constant(each[rows]) for each in held_out.batch))
        mask = tf.cast(tf.range(len(rows)) < known, tf.float32)
        outputs = tf.zeros([len(rows), *output[1:]])
        sums += baseline.measure(batch, outputs, mask).numpy()
    found = baseline.result(sums)
    assert found is not None
    return found.name, found.metrics


def split(inputs: np.ndarray, targets: np.ndarray) -> dict[str, Split]:
    return {"train": Split(inputs[:60], targets[:60]), "validation": Split(inputs[60:], targets[60:])}


def figures(true: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """The errors of ``[examples, columns]``, R² as the mean over columns."""
    errors, spread = predicted - true, ((true - true.mean(0)) ** 2).sum(0)
    return {
        "mean_absolute_error": float(np.abs(errors).mean()),
        "root_mean_squared_error": float(np.sqrt((errors**2).mean())),
        "r2_score": float((1 - (errors**2).sum(0) / spread).mean()),
    }


@pytest.mark.parametrize("one_hot", [False, True])
def test_of_classes_it_is_the_most_frequent_one_of_training(one_hot: bool) -> None:
    labels = np.array([1] * 40 + [0] * 20 + [0] * 25 + [1] * 15)  # the most frequent one of validation is another
    targets = np.eye(3, dtype="float32")[labels] if one_hot else labels
    dataset = Dataset("classes", **split(np.zeros((100, 2)), targets), class_names=("cat", "dog", "owl"))
    task = Task("classification", classes=3)
    assert reached(task, dataset, (None, 3)) == ("most frequent class: dog", {"accuracy": pytest.approx(12 / 37)})
    name, metrics = reached(task, dataset, (None, 3), is_training_data=False)
    assert (name, metrics["accuracy"]) == ("most frequent class of the evaluated examples: cat", pytest.approx(25 / 37))


def test_a_blank_token_is_quoted() -> None:
    dataset = Dataset("text", **split(np.zeros((100, 2)), np.repeat([1, 0], [70, 30])), vocabulary=("a", " "))
    assert reached(Task("classification", classes=2), dataset, (None, 2))[0] == "most frequent class: ' '"


def test_of_numbers_it_is_the_mean_of_the_training_targets() -> None:
    targets = (1.2e8 + 300 * RNG.normal(size=(100, 2))).astype("float32")
    dataset = Dataset("numbers", **split(np.zeros((100, 2)), targets))
    name, metrics = reached(Task("regression"), dataset, (None, 2))
    true, mean = targets[60:97].astype(float), targets[:60].mean(0, dtype=float)
    assert name == "mean of the training targets"
    assert metrics == pytest.approx(figures(true, np.broadcast_to(mean, true.shape)), rel=1e-3)


@pytest.mark.parametrize("horizon", [1, 3])
def test_of_time_series_it_is_the_last_known_value_in_the_unit_of_the_targets(horizon: int) -> None:
    values = RNG.normal(size=(100, 8, 3)).astype("float32")
    targets = RNG.normal(size=(100, horizon, 2)).astype("float32")
    dataset = Dataset(
        "series",
        **split(values, targets if horizon > 1 else targets[:, 0]),
        kind="series",
        feature_names=("wind", "rain", "sun"),
        target_names=("sun", "wind"),
        target_scaling=Standardization(np.array([5.0, -3.0]), np.array([2.0, 10.0])),
    )
    output = (None, horizon, 2) if horizon > 1 else (None, 2)
    name, metrics = reached(Task("regression"), dataset, output)
    true = targets[60:97].reshape(-1, 2) * [2, 10]
    last = np.repeat(values[60:97, -1][:, [2, 0]], horizon, axis=0) * [2, 10]
    assert name == "last known value"
    assert metrics == pytest.approx(figures(true, last), rel=1e-5)


def test_each_label_has_its_more_frequent_value() -> None:
    targets = (RNG.random((100, 4)) < [0.1, 0.4, 0.7, 0.9]).astype("float32")
    _, metrics = reached(Task("multi-label"), Dataset("labels", **split(np.zeros((100, 2)), targets)), (None, 4))
    share = targets[60:97].mean(0)
    assert metrics == {"accuracy": pytest.approx(np.maximum(share, 1 - share).mean())}


def test_it_is_recorded_with_each_validation_and_evaluated_the_same(gym: Gym) -> None:
    plan = Plan(model="mlp", epochs=1, batch_size=100, last_batch="drop")
    trained = gym.train_once(plan)
    dataset = data.load("digits", plan.data_options)
    assert isinstance(dataset.train, Split)
    assert isinstance(dataset.validation, Split)
    digit = np.bincount(dataset.train.targets).argmax()
    event = trained.only(Validated)
    assert event.baseline == {"accuracy": pytest.approx((dataset.validation.targets == digit).mean())}
    assert event.baseline_name == f"most frequent class: {digit}"
    shared = gym.train(plan.replace(strategy="mirrored", virtual_cpus=2)).only(Validated)
    assert (shared.baseline, shared.baseline_name) == (event.baseline, event.baseline_name)
    found = evaluated(trained.directory).models[0]
    assert (found.baseline, found.baseline_name) == (event.baseline, event.baseline_name)


@pytest.mark.parametrize(
    ("options", "task", "width"),
    [
        ({"target": ("city",)}, Task("classification", classes=2), 2),
        ({"target": ("price",)}, Task("regression"), 1),
        ({"target": ("area", "price")}, Task("regression"), 2),
        ({"target": ("large",)}, Task("regression"), 1),
        ({"target": ("price",), "window": 3, "ignore": ("city",)}, Task("regression"), 1),
        ({"target": ("price", "area"), "window": 3, "ignore": ("city",)}, Task("regression"), 2),
    ],
)
def test_a_look_at_the_data_reaches_the_same(tmp_path: Path, options: dict[str, Any], task: Task, width: int) -> None:
    rows = [f"{50 + RNG.normal()},{'Bonn' if row % 3 else 'Ulm'},{1000 + row},{1e9 + row}" for row in range(60)]
    (tmp_path / "mine.csv").write_text("\n".join(["area,city,price,large", *rows]))
    dataset = data.load(str(tmp_path / "mine.csv"), data.DataOptions(**options, validation_split=0.5))
    held_out = dataset.validation
    assert isinstance(held_out, Split)
    padded = np.r_[np.arange(len(held_out)), [0, 0, 0]]
    name, metrics = reached(task, replace(dataset, validation=Split(*held_out.take(padded))), (None, width))
    picture = data_picture(dataset, "auto")
    assert picture is not None
    assert picture.baseline == name
    assert dict(picture.metrics) == pytest.approx({metric: metrics[metric] for metric, _ in picture.metrics}, rel=1e-4)
