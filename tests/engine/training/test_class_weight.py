"""Every step with class weights equals plain Keras' with ``class_weight``."""

from functools import cache
from pathlib import Path

import keras
import numpy as np
import pytest

from accel_engine.events import Validated, Warned
from accel_engine.plan import Plan

from . import task_models
from .conftest import Gym, Trained

FILE = Path(__file__).with_name("task_models.py")

STREAMS = """

def _stream(task):
    return tf.data.Dataset.from_tensor_slices(globals()[task + "_data"]()["train"]).batch(32)

def classification_stream():
    return {"train": _stream("classification")}

def one_hot_stream():
    return {"train": _stream("one_hot"), "class_names": ["a", "b", "c"]}

def weighted_stream():
    return {"train": _stream("weighted")}

def binary_stream():
    return {"train": _stream("binary")}
"""

PLAN = Plan(
    model="mlp",
    precision="float32",
    batch_size=32,
    epochs=3,
    shuffle="off",
    split="none",
    validation="off",
)
"""Three epochs of eleven steps, of which the last has ten examples."""

GIVEN = {0: 0.5, 1: 3.0, 2: 1.0}
BALANCED: dict[int, float] = {}


def plain(task: str, weights: dict[int, float]) -> tuple[float, ...]:
    """The loss of each batch, as ``train_on_batch`` of Keras has it; cached between tests."""
    return _plain(task, None if weights is BALANCED else tuple(weights.items()))


@cache
def _plain(task: str, given: tuple[tuple[int, float], ...] | None) -> tuple[float, ...]:
    keras.utils.set_random_seed(PLAN.seed)
    model = getattr(task_models, f"{task}_model")()
    x, y, *own = getattr(task_models, f"{task}_data")()["train"]
    labels = y if y.ndim == 1 else y.argmax(-1)
    weights = dict(given or ())
    if given is None:
        counts = np.bincount(labels)
        weights = {index: len(labels) / (len(counts) * count) for index, count in enumerate(counts)}
    losses = []
    for _ in range(PLAN.epochs):
        for first in range(0, len(x), PLAN.batch_size):
            rows = slice(first, first + PLAN.batch_size)
            model.reset_metrics()
            if own:  # Keras takes either
                each = own[0][rows] * np.array([weights.get(int(label), 1.0) for label in labels[rows]], "float32")
                losses.append(model.train_on_batch(x[rows], y[rows], sample_weight=each, return_dict=True)["loss"])
            else:
                losses.append(model.train_on_batch(x[rows], y[rows], class_weight=weights, return_dict=True)["loss"])
    return tuple(float(loss) for loss in losses)


def train(gym: Gym, folder: Path, source: str, task: str, *class_weight: str, **changes: object) -> Trained:
    file = folder / "streams.py"
    file.write_text(FILE.read_text() + STREAMS)
    gym.steps = 11
    plan = PLAN.replace(model=f"{FILE}:{task}_model", data=f"{file}:{source}", class_weight=class_weight, **changes)
    trained = gym.train(plan)
    assert not trained.ended.reason
    return trained


@pytest.mark.share(5)
@pytest.mark.parametrize("form", ["data", "stream"])
@pytest.mark.parametrize("task", ["classification", "one_hot", "weighted", "binary"])
def test_steps_equal_those_of_keras(gym: Gym, tmp_path: Path, task: str, form: str) -> None:
    given = {index: weight for index, weight in GIVEN.items() if task != "binary" or index < 2}
    texts = [f"{index}={weight}" for index, weight in given.items()]
    trained = train(gym, tmp_path, f"{task}_{form}", task, *texts)
    expected = plain(task, GIVEN)
    assert len(expected) == 33
    np.testing.assert_allclose(trained.series["loss"], expected, atol=1e-5)
    assert not np.allclose(expected, plain(task, {}), atol=1e-2)
    notes = [event.message for event in trained.all(Warned)]
    names = "abc" if (task, form) == ("one_hot", "stream") else "012"
    shown = ", ".join(f"{names[index]} {weight:g}" for index, weight in given.items())
    assert f"class weights of training examples: {shown}" in notes


@pytest.mark.share(5)
@pytest.mark.parametrize(
    ("task", "replicas"),
    [
        ("binary", 1),
        ("weighted", 2),
        ("one_hot", 2),
        ("classification", 1),
        ("one_hot", 1),
        ("weighted", 1),
    ],
)
def test_balanced_steps_equal_those_of_keras(gym: Gym, tmp_path: Path, task: str, replicas: int) -> None:
    more = {"strategy": "mirrored", "virtual_cpus": 2} if replicas > 1 else {}
    trained = train(gym, tmp_path, f"{task}_data", task, "balanced", **more)
    np.testing.assert_allclose(trained.series["loss"], plain(task, BALANCED), atol=1e-5)


def test_validation_is_not_weighted(gym: Gym, tmp_path: Path) -> None:
    """With a learning rate of almost 0, weights do not change the model."""
    more = {"split": "auto", "validation": "epoch", "epochs": 1, "learning_rate": 1e-12}
    weighted = train(gym, tmp_path, "classification_data", "classification", "0=9", **more)
    usual = train(gym, tmp_path, "classification_data", "classification", **more)
    assert not np.allclose(weighted.series["loss"], usual.series["loss"], atol=0.1)
    assert weighted.only(Validated).metrics == pytest.approx(usual.only(Validated).metrics, abs=1e-6)
