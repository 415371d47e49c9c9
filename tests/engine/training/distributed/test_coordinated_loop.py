"""Checks of a coordinator before its first step, without a real cluster."""

import json
from pathlib import Path

import pytest
import tensorflow as tf

from accel_engine.errors import ModelError
from accel_engine.events import TensorFlowDevice
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.training.core import device_visibility
from accel_engine.training.core.assembly import assemble
from accel_engine.training.distributed import strategy_builders

PLAN = Plan(model="mlp", strategy="parameter-server", rate_scaling="linear", learning_rate=0.01)


@pytest.fixture(autouse=True)
def coordinator(monkeypatch: pytest.MonkeyPatch) -> None:
    """The description of a cluster of two workers."""
    cluster = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}}))
    monkeypatch.setattr(strategy_builders, "parameter_server", lambda *_: tf.distribute.get_strategy())


def test_each_worker_uses_the_whole_batch_and_the_unscaled_rate() -> None:
    assembly = assemble(resolve(PLAN), ("CPU:0",), None)

    assert (assembly.replicas, assembly.step_counts.global_batch) == (1, PLAN.batch_size)
    assert assembly.simultaneous_steps == 2
    assert assembly.learning_rate == pytest.approx(0.01)
    assert any("2 workers run steps of 64 examples asynchronously" in note for note in assembly.notes)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_devices_are_those_of_the_workers(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    workers = (TensorFlowDevice("worker 0", kind), TensorFlowDevice("worker 1", kind))
    monkeypatch.setattr(device_visibility, "describe_worker_devices", lambda: workers)

    assembly = assemble(resolve(PLAN), ("CPU:0",), None)

    assert assembly.devices == (f"{kind.upper()}:0",)
    assert assembly.on_cpu == (kind == "cpu")
    assert assembly.feed.kind == "resident"


def test_a_custom_train_step_is_rejected(tmp_path: Path) -> None:
    model = tmp_path / "own.py"
    model.write_text(
        "import keras\n"
        "class Own(keras.Sequential):\n"
        "    def train_step(self, data):\n"
        "        return super().train_step(data)\n"
        "def build(input_shape, classes):\n"
        "    return Own([keras.Input(input_shape), keras.layers.Flatten(), keras.layers.Dense(classes)])\n"
    )
    with pytest.raises(ModelError, match=r"custom train_step.*choose another strategy than parameter-server"):
        assemble(resolve(PLAN.replace(model=f"{model}:build")), ("CPU:0",), None)
