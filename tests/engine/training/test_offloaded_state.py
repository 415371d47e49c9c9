"""An optimizer whose state is in host memory updates as one whose state is on the device of the weights."""

from collections.abc import Callable
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
from accel_engine.training import offloaded_state
from accel_engine.training.core import device_visibility
from accel_engine.training.offloaded_state import build_on_host, offloaded, use_offloaded_updates

from .conftest import MACHINE, Gym, Trained

STEPS = 4


@pytest.fixture(autouse=True)
def moves_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Move the state of small weights, too."""
    monkeypatch.setattr(offloaded_state, "LEAST_VALUES", 2)


def learnt(make: Callable[[], Any], *, offload: bool) -> tuple[tf.Graph, list[np.ndarray]]:
    """The graph of a step on the second CPU, and all weights and state after some; one gradient has a few rows."""
    keras.utils.set_random_seed(0)
    strategy = tf.distribute.OneDeviceStrategy("/CPU:1")
    with strategy.scope():
        layers = [keras.layers.Embedding(6, 3), keras.layers.Dense(4), keras.layers.Dense(3)]
        model = keras.Sequential([keras.Input((2,), dtype="int32"), *layers])
        optimizer = make()
        if offload:
            build_on_host(optimizer, model.trainable_variables)
        else:
            optimizer.build(model.trainable_variables)
    tokens = tf.constant([[0, 1], [1, 4], [4, 4]])

    def step() -> None:
        with tf.GradientTape() as tape:
            loss = optimizer.scale_loss(tf.reduce_sum(tf.square(model(tokens) - 1.0)))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)

    function = tf.function(lambda: strategy.run(step), autograph=False)
    with use_offloaded_updates(optimizer):
        graph = function.get_concrete_function().graph
    for _ in range(STEPS):
        function()
    moved = [each for each in optimizer.variables if each.shape.num_elements() >= 2]
    assert {each.value.device[-5:] for each in moved} == ({"CPU:0"} if offload else {"CPU:1"})
    assert len(offloaded(optimizer)) == (len(moved) if offload else 0)
    return graph, [np.asarray(each) for each in (*model.variables, *optimizer.variables)]


@pytest.mark.share(4)
@pytest.mark.parametrize(
    "make",
    [
        lambda: optimizers.AdamW(
            optimizers.schedules.CosineDecay(0.1, 10), weight_decay=0.1, use_ema=True, global_clipnorm=0.5
        ),
        lambda: optimizers.LossScaleOptimizer(optimizers.Adam(0.1, amsgrad=True, clipvalue=0.3)),
        lambda: optimizers.SGD(0.1, momentum=0.9, nesterov=True),
        lambda: optimizers.RMSprop(0.1, momentum=0.9, centered=True),
        lambda: optimizers.Adam(0.1, gradient_accumulation_steps=2),
        optimizers.Adafactor,
        optimizers.Nadam,
        optimizers.Adagrad,
        optimizers.Ftrl,
        optimizers.Lamb,
    ],
)
def test_every_optimizer_updates_as_on_its_device(make: Callable[[], Any]) -> None:
    _, expected = learnt(make, offload=False)
    _, found = learnt(make, offload=True)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_state_of_two_weights_is_on_the_device_at_a_time() -> None:
    graph, _ = learnt(optimizers.Adam, offload=True)
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
    moved = plan.replace(offload="optimizer")
    whole = gym.train(plan)
    for first, then in ((plan, moved), (moved, plan), (moved, moved)):
        begun = gym.train(first.replace(epochs=1))
        assert_equal(gym.train(then, run=begun.directory), whole)
    assert any("of the state of Adam are in host memory" in each.message for each in begun.all(Warned))


GPU = (*MACHINE.devices, Device("gpu:0", "gpu", "a GPU", 8 << 30), Device("gpu:1", "gpu", "a GPU", 8 << 30))


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (Plan(devices=("cpu:0",)), "a CPU trains, whose memory is the host's"),
        (Plan(strategy="mirrored"), "only for one GPU, or a pipeline of GPUs; the strategy is mirrored"),
        (Plan(strategy="parameter-server", local_workers=1), "only for one GPU, or a pipeline of GPUs"),
        (Plan(strategy="one-device"), ""),
        (Plan(strategy="pipeline"), ""),
    ],
)
def test_what_has_no_other_memory_refuses_it(plan: Plan, reason: str) -> None:
    errors = [str(each) for each in resolve(plan.replace(offload="optimizer"), GPU).plan_errors]
    assert any(reason in each for each in errors) if reason else not errors


def test_xla_cannot_move_the_state() -> None:
    with pytest.raises(PlanError, match="needs --xla off: XLA cannot move the state between devices"):
        Plan(offload="optimizer", xla="on")
