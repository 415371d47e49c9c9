"""An optimizer with state in host memory, or divided over replicas, updates as one with its state at the weights."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import optimizers

from accel_engine.devices.device_types import Device
from accel_engine.errors import PlanError
from accel_engine.events import Outcome, Warned
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.run.directory.checkpoint_files import checkpoint_path
from accel_engine.run.directory.run_paths import CHECKPOINTS, latest_checkpoint
from accel_engine.training import optimizer_state
from accel_engine.training.core import device_visibility
from accel_engine.training.optimizer_state import OptimizerState, weight_owners

from .conftest import MACHINE, Gym, Trained

STEPS = 4


@pytest.fixture(autouse=True)
def moves_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Move the state of small weights to the host, too."""
    monkeypatch.setattr(optimizer_state, "LEAST_VALUES", 2)


def learnt(
    make: Callable[[], Any], strategy: tf.distribute.Strategy, place: str
) -> tuple[tf.Graph, Any, list[np.ndarray]]:
    """The graph of a step, and all weights and state after some; one gradient has a few rows."""
    keras.utils.set_random_seed(0)
    with strategy.scope():
        layers = [keras.layers.Embedding(6, 3), keras.layers.Dense(4), keras.layers.Dense(3)]
        model = keras.Sequential([keras.Input((2,), dtype="int32"), *layers])
        optimizer, state = make(), None
        if place == "device":
            optimizer.build(model.trainable_variables)
        else:
            state = OptimizerState(Plan(optimizer_state=place), optimizer, model.trainable_variables)
    tokens = tf.constant([[0, 1], [1, 4], [4, 4]])

    def step() -> None:
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(model((tokens + replica) % 6) - 1.0))
            loss = optimizer.scale_loss(loss)
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)

    function = tf.function(lambda: strategy.run(step), autograph=False)
    with state.use() if state else nullcontext():
        graph = function.get_concrete_function().graph
    for _ in range(STEPS):
        function()
    found = [strategy.experimental_local_results(each.value) for each in (*model.variables, *optimizer.variables)]
    for copies in found:
        for each in copies[1:]:
            np.testing.assert_array_equal(each, copies[0])
    return graph, state, [copies[0].numpy() for copies in found]


OPTIMIZERS = [
    lambda: optimizers.AdamW(
        optimizers.schedules.CosineDecay(0.1, 10), weight_decay=0.1, use_ema=True, global_clipnorm=0.5
    ),
    lambda: optimizers.LossScaleOptimizer(optimizers.Adam(0.1, amsgrad=True, clipvalue=0.3, use_ema=True)),
    lambda: optimizers.SGD(0.01, momentum=0.9, nesterov=True),
    lambda: optimizers.RMSprop(0.1, momentum=0.9, centered=True),
    *(
        getattr(optimizers, name)
        for name in ("SGD", "Adafactor", "Nadam", "Adamax", "Adagrad", "Adadelta", "Ftrl", "Lamb", "Lion", "Muon")
    ),
]


@pytest.mark.share(4)
@pytest.mark.parametrize("make", [*OPTIMIZERS, lambda: optimizers.Adam(0.1, gradient_accumulation_steps=2)])
def test_every_optimizer_updates_with_state_on_the_host_as_on_its_device(make: Callable[[], Any]) -> None:
    strategy = tf.distribute.OneDeviceStrategy("/CPU:1")
    _, _, expected = learnt(make, strategy, "device")
    _, state, found = learnt(make, strategy, "host")
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert {each.value.device[-5:] for each in state.placed} <= {"CPU:0"}


@pytest.mark.share(4)
@pytest.mark.parametrize("make", OPTIMIZERS)
def test_every_optimizer_updates_with_divided_state_as_mirrored(make: Callable[[], Any]) -> None:
    strategy = tf.distribute.MirroredStrategy(["/CPU:0", "/CPU:1"], tf.distribute.ReductionToOneDevice())
    _, _, expected = learnt(make, strategy, "device")
    for place, devices in (("sharded", {"CPU:0", "CPU:1"}), ("host", {"CPU:0"})):
        _, state, found = learnt(make, strategy, place)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
        if state.placed:  # plain SGD has none
            assert {each.value.device[-5:] for each in state.placed} == devices


def test_the_state_of_two_weights_is_on_the_device_at_a_time() -> None:
    graph, _, _ = learnt(optimizers.Adam, tf.distribute.OneDeviceStrategy("/CPU:1"), "host")
    operations = [each for each in graph.get_operations() if each.device.endswith("CPU:0")]
    reads = [each for each in operations if each.type == "ReadVariableOp"]
    assert len(reads) == 10  # momentum and velocity of five weights
    back = [each for each in operations if each.type == "AssignVariableOp"]
    waits = [{each for each in read.control_inputs if each in back} for read in reads]
    assert not any(waits[:4])
    assert waits[4:] == [set(back[first : first + 2]) for first in (0, 0, 2, 2, 4, 4)]


@pytest.fixture
def on_second_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_visibility, "configure", lambda *_: ("CPU:1",))


PLAN = Plan(
    data="digits", model="mlp", batch_size=32, steps_per_epoch=3, epochs=2, xla="off", layer_kernels="off",
    virtual_cpus=2, devices=("cpu:1",),
)  # fmt: skip


def assert_equal(first: Trained, second: Trained) -> None:
    assert first.ended.outcome is second.ended.outcome is Outcome.FINISHED, (first.ended.reason, second.ended.reason)
    np.testing.assert_array_equal(first.series["loss"], second.series["loss"])


@pytest.mark.usefixtures("on_second_cpu")
def test_a_run_goes_on_with_and_without_it_to_the_bit(gym: Gym) -> None:
    recipe: dict[str, Any] = {"micro_batches": 2, "ema_momentum": 0.9, "clip_norm": 0.5}
    plan = PLAN.replace(**recipe, precision="mixed_float16", force="on")
    moved = plan.replace(optimizer_state="host")
    whole = gym.train(plan)
    for first, then in ((plan, moved), (moved, plan), (moved, moved)):
        begun = gym.train(first.replace(epochs=1))
        assert_equal(gym.train(then, run=begun.directory), whole)
    assert any("of the state of Adam are in host memory" in each.message for each in begun.all(Warned))


def saved(run: Trained) -> dict[str, np.ndarray]:
    """The values of a run's last checkpoint, without the description of its objects."""
    step = latest_checkpoint(run.directory)
    values = tf.train.load_checkpoint(str(checkpoint_path(run.directory / CHECKPOINTS, step)))
    return {name: values.get_tensor(name) for name in values.get_variable_to_shape_map() if name[0] != "_"}


def test_checkpoints_do_not_know_of_the_division(gym: Gym) -> None:
    recipe = {"micro_batches": 2, "ema_momentum": 0.9, "global_clip_norm": 0.5, "weight_decay": 0.01}
    plan = PLAN.replace(**recipe, strategy="mirrored", devices=(), precision="mixed_float16", force="on")
    divided = plan.replace(optimizer_state="sharded")
    whole = gym.train(plan)
    begun = [gym.train(each.replace(epochs=1)) for each in (plan, divided)]
    assert "the state of Adam, " in " ".join(each.message for each in begun[1].all(Warned))
    first, second = map(saved, begun)
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name])
    assert_equal(gym.train(divided, run=begun[0].directory), whole)
    one = gym.train(plan.replace(strategy="default"), run=begun[1].directory)
    np.testing.assert_allclose(one.series["loss"], whole.series["loss"], rtol=1e-5)


GPU = (*MACHINE.devices, Device("gpu:0", "gpu", "a GPU", 8 << 30), Device("gpu:1", "gpu", "a GPU", 8 << 30))


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (Plan(devices=("cpu:0",), optimizer_state="host"), "CPUs train, whose memory is the host's"),
        (
            Plan(strategy="multi-worker", local_workers=2, optimizer_state="host"),
            "only for one GPU, mirrored, or a pipeline; the strategy is multi-worker",
        ),
        *(
            (
                Plan(strategy=name, optimizer_state="sharded"),
                "sharded needs --strategy mirrored, whose replicas divide it",
            )
            for name in ("default", "pipeline", "central-storage", "multi-worker", "parameter-server", "tpu")
        ),
        *((Plan(strategy=name, optimizer_state="host"), "") for name in ("one-device", "pipeline", "mirrored")),
        (Plan(strategy="mirrored", optimizer_state="sharded"), ""),
        (Plan(strategy="mirrored", virtual_cpus=2, optimizer_state="sharded"), ""),
    ],
)
def test_what_cannot_place_the_state_refuses_it(plan: Plan, reason: str) -> None:
    errors = [str(each) for each in resolve(plan, GPU).plan_errors]
    assert any(reason in each for each in errors) if reason else not errors


def test_an_optimizer_that_accumulates_on_each_replica_is_refused() -> None:
    strategy = tf.distribute.MirroredStrategy(["/CPU:0", "/CPU:1"], tf.distribute.ReductionToOneDevice())
    with pytest.raises(PlanError, match="SGD has gradient_accumulation_steps: use --micro-batches"):
        learnt(lambda: optimizers.SGD(0.1, gradient_accumulation_steps=2), strategy, "sharded")


def test_the_state_of_an_optimizer_that_was_built_is_divided_too() -> None:
    with tf.distribute.MirroredStrategy(["/CPU:0", "/CPU:1"], tf.distribute.ReductionToOneDevice()).scope():
        weights = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)]).trainable_variables
        adam, sgd = optimizers.Adam(name="adam"), optimizers.SGD()  # which has two variables, too
        for optimizer in (adam, sgd):
            optimizer.build(weights)
        divided = [OptimizerState(Plan(optimizer_state="sharded"), each, weights) for each in (adam, sgd)]
    assert {each.path: each.value.device[-5:] for each in divided[0].placed} == {
        f"adam/{weight.path.replace('/', '_')}_{slot}": device
        for weight, device in zip(weights, ("CPU:0", "CPU:1"), strict=True)
        for slot in ("momentum", "velocity")
    }
    assert divided[1].placed == []
    assert "has no effect: SGD has no large state" in divided[1].note


def test_the_largest_weights_are_divided_first() -> None:
    assert weight_owners([1, 5, 3, 4, 0], 2) == [0, 0, 1, 1, 0]
    assert weight_owners([3, 3, 3], 1) == [0, 0, 0]


def test_xla_cannot_move_the_state() -> None:
    with pytest.raises(PlanError, match="needs --xla off: XLA cannot move the state between devices"):
        Plan(optimizer_state="host", xla="on")
