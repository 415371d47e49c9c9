"""The losses and metrics that the form offers for a task can be made and updated; the others are refused."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine.data.dataset import Dataset, Split
from accel_engine.errors import PlanError
from accel_engine.plan import Plan
from accel_engine.plan.task_choices import LOSSES_OF, METRICS, METRICS_OF
from accel_engine.training.core.recipe.loss import choose_loss
from accel_engine.training.core.recipe.metrics import plan_metrics
from accel_engine.training.core.task import find_task
from accel_tui.plan import form

from ...conftest import Gym

CLASSES = 7


def data(inputs: tuple[int, ...], targets: Any, *, kind: str = "arrays", classes: int = 0, task: str) -> Dataset:
    names = tuple(map(str, range(classes)))
    return Dataset("made", Split(np.zeros((2, *inputs), np.float32), targets), class_names=names, kind=kind, task=task)


DATA = {
    "classification": (data((6,), np.array([1, 3]), classes=CLASSES, task="classification"), (CLASSES,)),
    "sequence": (data((5,), np.ones((2, 5), np.int32), classes=CLASSES, task="sequence"), (5, CLASSES)),
    "segmentation": (
        data((4, 4, 3), np.ones((2, 4, 4), np.int32), kind="images", classes=CLASSES, task="segmentation"),
        (4, 4, CLASSES),
    ),
    "multi-label": (data((6,), np.ones((2, 5), np.float32), task="multi-label"), (5,)),
    "regression": (data((6,), np.ones((2, 3), np.float32), task="regression"), (3,)),
    "reconstruction": (data((4, 4, 3), None, kind="images", task="reconstruction"), (4, 4, 3)),
}
"""Data of each task, and the shape of an output."""


@pytest.mark.parametrize("task", DATA)
def test_what_the_form_offers_for_a_task_fits_it(task: str) -> None:
    dataset, shape = DATA[task]
    outputs = keras.KerasTensor((None, *shape))
    values = tf.fill((2, *shape), 1 / shape[-1])
    filled = form.resolve_form({"task": task})
    offered = {name: [choice.value for choice in form.choices(name, filled)] for name in ("loss", "metrics")}
    assert (offered["loss"][0], {*offered["loss"][1:]}) == ("auto", {*LOSSES_OF[task]})
    assert {*offered["metrics"]} == {*METRICS_OF[task]}
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(1)])
    for name in offered["loss"]:
        loss = choose_loss(outputs, dataset, Plan(loss=name), logits=False)
        model.compile("sgd", loss)
        found = find_task(model, outputs, dataset, "auto")
        assert found.name == task, name
        inputs = dataset.train.inputs[:]
        targets = None if dataset.train.targets is None else dataset.train.targets[:]
        assert np.isfinite(float(loss(found.encode(targets, inputs), values))), name
    for name in METRICS:
        plan, measured = Plan(metrics=(name,)), found.metrics(model)
        if name not in offered["metrics"]:
            with pytest.raises(PlanError, match=f"{name} cannot be measured for the task {task}: use "):
                plan_metrics(plan, found, outputs, dataset, measured)
            continue
        made = (*plan_metrics(plan, found, outputs, dataset, measured), *measured)
        metric = next(each for each in made if each.name == name)
        metric.update_state(found.encode(targets, inputs), values)
        assert np.isfinite(float(metric.result())), name


@pytest.mark.parametrize("name", ["categorical_crossentropy", "categorical_focal_crossentropy", "categorical_hinge"])
def test_a_loss_of_several_outputs_is_refused_for_a_single_one(name: str) -> None:
    labels = data((6,), np.array([0, 1]), classes=2, task="classification")
    with pytest.raises(PlanError, match=f"{name} needs an output for each class"):
        choose_loss(keras.KerasTensor((None, 1)), labels, Plan(loss=name), logits=False)


def test_a_loss_is_refused_once_a_function_has_told_the_task(gym: Gym, tmp_path: Path) -> None:
    source = tmp_path / "source.py"
    source.write_text(
        "import numpy as np\n"
        "def load():\n"
        "    x = np.random.default_rng(0).normal(size=(16, 5)).astype('float32')\n"
        "    return x, (x[:, 0] > 0).astype('int32')\n"
    )
    plan = Plan(model="mlp", data=f"{source}:load", loss="huber", epochs=1, batch_size=4, validation="off")

    refused = gym.train(plan.replace(task="classification"))
    assert "loss = 'huber': not a loss of classification; those are " in refused.ended.reason
