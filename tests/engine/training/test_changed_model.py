"""Continuing a run whose model has changed: other layers may have the same weights."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from accel_engine.errors import RunError
from accel_engine.events import Outcome, Warned
from accel_engine.plan import Plan
from accel_engine.requests.revalidate import RevalidationRequest
from accel_engine.run.store.database import RunDatabase
from accel_engine.trained.diagnose import revalidate
from accel_engine.trained.open_trained import open_trained

from .conftest import Gym

PLAN = Plan(model="cnn", epochs=1, batch_size=200, validation="off")

SOURCE = """
import keras
from keras import layers

def build(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), layers.Conv2D(4, 3), layers.{pooling}(), layers.Dense(classes)])
"""


def test_a_run_with_another_model_version_is_rejected(gym: Gym, tmp_path: Path) -> None:
    directory = gym.train(PLAN).directory
    with closing(RunDatabase(directory)) as connection:
        (head,) = connection.execute("SELECT head FROM diagnostics WHERE name = 'layers'").fetchone()
        table = json.loads(head)
        (pooling,) = (layer for layer in table["layers"] if layer["kind"] == "GlobalMaxPooling2D")
        pooling["kind"] = "AttentionPooling"
        connection.execute("UPDATE main.diagnostics SET head = ? WHERE name = 'layers'", (json.dumps(table),))
    change = "layer AttentionPooling is now GlobalMaxPooling2D"
    ended = gym.train(PLAN.replace(epochs=2), run=directory).ended
    assert ended.outcome is Outcome.FAILED
    assert ended.reason == f"the run was trained with another version of model cnn: {change}; start a new run"
    for ask in (lambda: open_trained(directory, data=None), lambda: revalidate(RevalidationRequest(directory))):
        with pytest.raises(RunError, match=change):
            ask()


def test_a_changed_custom_model_causes_a_warning(gym: Gym, tmp_path: Path) -> None:
    source = tmp_path / "mine.py"
    source.write_text(SOURCE.format(pooling="GlobalAveragePooling2D"))
    plan = PLAN.replace(model=f"{source}:build")
    directory = gym.train(plan).directory
    change = "layer GlobalAveragePooling2D is now GlobalMaxPooling2D"
    for pooling, warned in (("GlobalAveragePooling2D", False), ("GlobalMaxPooling2D", True)):
        source.write_text(SOURCE.format(pooling=pooling))
        plan = plan.replace(epochs=plan.epochs + 1)
        more = gym.train(plan, run=directory)
        assert more.ended.outcome is Outcome.FINISHED
        assert any(change in said.message for said in more.all(Warned)) == warned
