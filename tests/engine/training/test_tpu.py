"""Training under the TPU strategy, with two logical CPUs as TPU cores."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine import data
from accel_engine.devices.device_types import Device, Inventory
from accel_engine.events import DevicesFound, ModelBuilt, Outcome, Phase, PhaseChanged, Validated, Warned, XlaTried
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.run.diagnostics import read
from accel_engine.strategies.tpu_endpoint import TpuEndpoint
from accel_engine.training.core import device_visibility
from accel_engine.training.distributed import strategy_builders

from .conftest import Gym

PLAN = Plan(model="mlp", strategy="tpu", tpu="local", epochs=2, batch_size=512, last_batch="drop", precision="float32")
"""Four steps."""


class FakeTpu:
    """A substitute for TensorFlow's TPU functions that records its calls.

    Attributes:
        asked: By whom and for what, in order.
        problem: What starting the system raises.
        job: The job that the cores belong to.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.problem: Exception | None = None
        self.job = "localhost"

    def resolver(self, tpu: str) -> SimpleNamespace:
        self.asked.append(("resolve", tpu))
        return SimpleNamespace(tpu=tpu)

    def connect(self, resolver: SimpleNamespace) -> None:
        self.asked.append(("connect", resolver.tpu))

    def initialize(self, resolver: SimpleNamespace) -> None:
        self.asked.append(("initialize", resolver.tpu))
        if self.problem is not None:
            raise self.problem

    def strategy(self, resolver: SimpleNamespace) -> tf.distribute.Strategy:
        self.asked.append(("strategy", resolver.tpu))
        return tf.distribute.MirroredStrategy(["/CPU:0", "/CPU:1"], tf.distribute.ReductionToOneDevice())

    def devices(self, kind: str) -> list[SimpleNamespace]:
        assert kind == "TPU"
        return [SimpleNamespace(name=f"/job:{self.job}/replica:0/task:0/device:TPU:{index}") for index in range(2)]


@pytest.fixture(autouse=True)
def tpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTpu]:
    fake = FakeTpu()
    monkeypatch.setattr(tf.distribute.cluster_resolver, "TPUClusterResolver", fake.resolver)
    monkeypatch.setattr(tf.config, "experimental_connect_to_cluster", fake.connect)
    monkeypatch.setattr(tf.tpu.experimental, "initialize_tpu_system", fake.initialize)
    monkeypatch.setattr(tf.distribute, "TPUStrategy", fake.strategy)
    monkeypatch.setattr(tf.config, "list_logical_devices", fake.devices)
    monkeypatch.setattr(tf.config, "set_visible_devices", lambda *_: None)  # TensorFlow is in use here
    monkeypatch.setattr(TpuEndpoint, "connection_problem", lambda _: "")
    strategy_builders._resolver.cache_clear()
    yield fake
    strategy_builders._resolver.cache_clear()


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Ten images of each of two classes."""
    for index, name in enumerate(("cat", "dog")):
        for number in range(10):
            path = tmp_path / "photos" / name / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(tf.io.encode_png(np.full((8, 8, 3), 100 * index + number, np.uint8)).numpy())
    return tmp_path / "photos"


def test_a_tpu_trains_like_mirrored_devices(gym: Gym, tpu: FakeTpu) -> None:
    """Also in the last step of an epoch, whose 413 examples two cores cannot divide evenly."""
    plan = PLAN.replace(last_batch="keep")
    trained = gym.train(plan)
    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    mirrored = gym.train(plan.replace(strategy="mirrored", tpu="", virtual_cpus=2))
    alone = gym.train(plan.replace(strategy="default", tpu="", validation="off"))
    np.testing.assert_allclose(trained.series["loss"], alone.series["loss"], atol=1e-4)
    np.testing.assert_allclose(trained.series["loss"], mirrored.series["loss"], atol=1e-5)
    for ours, theirs in zip(trained.all(Validated), mirrored.all(Validated), strict=True):
        assert ours.metrics == pytest.approx(theirs.metrics, rel=1e-4)
    assert tpu.asked == [("resolve", "local"), ("initialize", "local"), ("strategy", "local")]


def test_the_connected_tpu_is_reported(gym: Gym, tpu: FakeTpu) -> None:
    tpu.job = "worker"
    trained = gym.train(PLAN.replace(tpu="10.0.0.2", precision="auto", validation="off"))
    address = "grpc://10.0.0.2:8470"
    assert ("connect", address) in tpu.asked
    assert PhaseChanged(
        time=trained.events[0].time, phase=Phase.BUILDING, detail=f"connecting to the TPU: {address}"
    ) in (trained.events)
    found, built = trained.only(DevicesFound), trained.only(ModelBuilt)
    assert found.address == address
    assert [device.name for device in found.devices] == ["TPU:0", "TPU:1"]
    assert [device.device for device in found.devices] == ["", ""]
    assert found.devices[1].description == "/job:worker/replica:0/task:0/device:TPU:1"
    assert (built.replicas, built.precision, built.xla, built.feed) == (2, "mixed_bfloat16", True, "streamed")
    assert trained.all(XlaTried) == []


def test_a_padded_batch_causes_advice(gym: Gym) -> None:
    trained = gym.train(PLAN.replace(batch_size=10, epochs=1, steps_per_epoch=1, validation="off"))
    assert "pads 5 examples" in trained.all(Warned)[0].message


@pytest.mark.parametrize("examples", [710, *(pytest.param(other, marks=pytest.mark.campaign) for other in (630, 20))])
def test_validation_counts_every_example_once(gym: Gym, monkeypatch: pytest.MonkeyPatch, examples: int) -> None:
    """With a tenth of the examples: a last batch of odd size, one that is nearly whole, and a single batch of two."""
    monkeypatch.setattr("accel_engine.training.evaluation.validation.MAX_BATCH", 16)
    plan = PLAN.replace(data=f"synthetic:6x6x1:3:{examples}", epochs=1, batch_size=16)
    trained = gym.train(plan)
    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    mirrored = gym.train(plan.replace(strategy="mirrored", tpu="", virtual_cpus=2))
    assert trained.only(Validated).metrics == pytest.approx(mirrored.only(Validated).metrics, rel=1e-4)
    held_out = data.load(plan.data, plan.data_options).validation
    assert held_out is not None
    assert trained.only(ModelBuilt).validation_examples == len(held_out) == examples // 10
    monkeypatch.undo()  # Keras asks for the class TPUStrategy
    model = keras.models.load_model(trained.directory / "model.keras")
    model.compile(loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    loss, accuracy = model.evaluate(held_out.inputs / 255, held_out.targets, verbose=0)
    assert trained.only(Validated).metrics == pytest.approx({"loss": loss, "accuracy": accuracy}, rel=1e-4)
    (report,) = read(trained.directory).validation.outputs
    assert report.examples == report.counts.sum() == len(held_out)


def test_a_run_on_a_tpu_continues_on_other_devices(gym: Gym) -> None:
    trained = gym.train(PLAN.replace(epochs=1))
    onwards = gym.train(PLAN.replace(strategy="mirrored", tpu="", virtual_cpus=2), run=trained.directory)
    whole = gym.train(PLAN)
    np.testing.assert_allclose(onwards.series["loss"][-2:], whole.series["loss"][-2:], atol=1e-5)


def test_data_that_does_not_fit_in_memory_needs_a_local_tpu(
    gym: Gym, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = PLAN.replace(data=str(photos), image_size="8x8", batch_size=4, epochs=1)
    assert gym.train(plan.replace(tpu="10.0.0.2")).ended.outcome is Outcome.FINISHED
    monkeypatch.setattr("accel_engine.data.dataset.MEMORY_SHARE", 0.0)
    assert gym.train(plan).ended.outcome is Outcome.FINISHED
    refused = gym.train(plan.replace(tpu="10.0.0.2")).ended
    assert refused.outcome is Outcome.FAILED
    assert "a remote TPU cannot read files on this machine" in refused.reason


@pytest.mark.parametrize(
    ("problem", "cause"),
    [
        (tf.errors.NotFoundError(None, None, "No OpKernel was registered ..."), "has no TPU support"),
        (tf.errors.InternalError(None, None, "RET_CHECK failure (...) *platform"), "found no usable TPU chip"),
        (RuntimeError("something new"), "something new"),
    ],
)
def test_a_failed_connection_is_explained(gym: Gym, tpu: FakeTpu, problem: Exception, cause: str) -> None:
    tpu.problem = problem
    ended = gym.train(PLAN).ended
    assert ended.outcome is Outcome.FAILED
    assert ended.reason.startswith("cannot connect to the TPU (in this machine, from --tpu): ")
    assert cause in ended.reason


def test_an_address_is_probed_before_tensorflow_connects(
    gym: Gym, tpu: FakeTpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TpuEndpoint, "connection_problem", lambda _: "nothing listens")
    ended = gym.train(PLAN.replace(tpu="10.0.0.2")).ended
    assert ended.reason == "cannot connect to the TPU (at grpc://10.0.0.2:8470, from --tpu): nothing listens"
    assert tpu.asked == []


def test_local_cores_are_matched_to_chips_in_order() -> None:
    here = Inventory((Device("cpu:0", "cpu", "a processor"), Device("tpu:0", "tpu", "TPU v3")))
    cores = device_visibility.describe_devices(("TPU:0", "TPU:1"), here)
    assert [core.device for core in cores] == ["tpu:0", "tpu:0"]
    assert [core.device for core in device_visibility.describe_devices(("TPU:0", "TPU:1"), Inventory(()))] == [
        "",
        "",
    ]
    assert device_visibility.device_memory(("TPU:0",), resolve(Plan()), here) == 0
