"""A pipeline trains as one device does with the same micro-batches."""

import math
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

from accel_engine.errors import PlanError
from accel_engine.events import Outcome, Warned
from accel_engine.models import unet
from accel_engine.plan import Plan
from accel_engine.plan.array_bytes import FLOAT32_BYTES
from accel_engine.plan.memory_estimate import Training, estimate_memory
from accel_engine.plan.memory_remedies import cheapest_change
from accel_engine.plan.placement import Placement
from accel_engine.plan.resolved_plan import resolve
from accel_engine.run import diagnostics
from accel_engine.training.core.assembly import Assembly, assemble
from accel_engine.training.measure_model import measure_model

from ...conftest import MACHINE, Gym, Trained

MODELS = """
import keras
from keras import layers

class Penalty(layers.Layer):
    def call(self, x):
        self.add_loss(0.01 * keras.ops.mean(keras.ops.square(keras.ops.cast(x, "float32"))))
        return x

def every(input_shape, classes):
    # Skips over two stages, a nested model, a shared layer, random numbers and penalties in all of them.
    inputs = keras.Input(input_shape)
    first = layers.Flatten(name="flat")(inputs)
    shared = layers.Dense(16, "tanh", kernel_regularizer="l2", name="shared")
    inner_inputs = keras.Input((16,))
    hidden = layers.Dense(16, "relu", name="inner_dense")(inner_inputs)
    inner = keras.Model(inner_inputs, hidden + inner_inputs, name="inner")
    x = early = Penalty()(layers.Dropout(0.2)(shared(layers.Dense(16, use_bias=False, name="enter")(first))))
    x = inner(x)
    x = layers.BatchNormalization(name="norm")(layers.Dense(16, use_bias=False, kernel_regularizer="l1")(x))
    x = Penalty(name="late")(layers.Dropout(0.2)(shared(x)))
    x = layers.Concatenate()([layers.Add(name="skip")([x, early]), early])
    return keras.Model(inputs, layers.Dense(classes, "softmax", kernel_regularizer="l2", name="head")(x))

def masked(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), layers.Reshape(input_shape[:2]), layers.Masking(),
                             layers.Dense(8, "relu"), layers.Dense(8, "relu", name="last"),
                             layers.GlobalAveragePooling1D(), layers.Dense(classes, "softmax")])

class Own(keras.Model):
    def __init__(self, classes):
        super().__init__()
        self.dense = layers.Dense(classes, "softmax")
    def call(self, x):
        return self.dense(keras.ops.reshape(x, (-1, 64)))

def own(input_shape, classes):
    return Own(classes)
"""

PLAN = Plan(data="digits", batch_size=32, steps_per_epoch=2, epochs=2, xla="off", micro_batches=4)
STAGED = {"strategy": "pipeline", "virtual_cpus": 2}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The file of the models."""
    path = tmp_path_factory.mktemp("pipeline") / "staged.py"
    path.write_text(MODELS)
    return str(path)


def assembled(plan: Plan) -> Assembly:
    """What training a plan needs."""
    return assemble(resolve(plan, MACHINE.devices), tuple(f"CPU:{index}" for index in range(plan.virtual_cpus)), None)


def assert_same(first: Trained, second: Trained) -> None:
    """Both runs have the same series, and finished."""
    assert first.ended.outcome is second.ended.outcome is Outcome.FINISHED, (first.ended.reason, second.ended.reason)
    assert first.series.keys() == second.series.keys()
    for name, values in first.series.items():
        np.testing.assert_allclose(values, second.series[name], rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    ("stages", "recipe"),
    [
        (("norm",), {"clip_norm": 0.5, "ema_momentum": 0.9, "label_smoothing": 0.1, "schedule": "cosine"}),
        (("norm",), {"remat": "on"}),
        pytest.param(
            ("inner_dense", "norm", "head"),
            {"precision": "mixed_float16", "force": "on", "remat": "on", "freeze": ("enter",), "unfreeze_epoch": 2},
            marks=pytest.mark.campaign,
        ),
    ],
)
def test_every_step_is_the_one_of_one_device(
    gym: Gym, models: str, stages: tuple[str, ...], recipe: dict[str, Any]
) -> None:
    plan = PLAN.replace(model=f"{models}:every", **recipe)
    staged = plan.replace(strategy="pipeline", virtual_cpus=len(stages) + 1, stages=stages)
    assert_same(gym.train(staged), gym.train(plan))


def test_a_run_goes_on_with_one_device_and_with_a_pipeline_again(gym: Gym, random_model: str) -> None:
    plan = PLAN.replace(model=random_model)
    one = gym.train(plan.replace(epochs=3))
    begun = gym.train(plan.replace(**STAGED, epochs=1))
    gym.train(plan, run=begun.directory)
    again = gym.train(plan.replace(**STAGED, epochs=3), run=begun.directory)
    assert_same(again, one)
    tables = [diagnostics.read(run.directory).layers for run in (again, one)]
    assert tables[0] is not None
    assert tables[1] is not None
    assert tables[0].layers == tables[1].layers  # their operations, too
    assert (len(tables[0].stages), tables[0].micro_batches, tables[0].bubble) == (2, 4, 0.2)


@pytest.mark.campaign
def test_a_pipeline_goes_on_to_the_bit(gym: Gym, models: str) -> None:
    plan = PLAN.replace(model=f"{models}:every", **STAGED)
    whole, half = gym.train(plan), gym.train(plan.replace(epochs=1))
    again = gym.train(plan, run=half.directory)
    np.testing.assert_array_equal(again.series["loss"], whole.series["loss"])


def test_each_stages_weights_and_their_slots_are_on_its_device(models: str) -> None:
    found = assembled(PLAN.replace(model=f"{models}:every", ema_momentum=0.9, micro_batches=None, **STAGED))
    assert found.stages is not None
    assert found.replicas == 1
    assert found.plan.micro_batches == found.stages.micro_batches == 8
    for stage in found.stages.stages:
        weights = {each.path for layer in stage.owned for each in layer.variables}
        places = {each.value.device for layer in stage.owned for each in layer.variables}
        names = tuple(path.replace("/", "_") for path in weights)
        slots = [each for each in found.model.optimizer.variables if each.path.removeprefix("adam/").startswith(names)]
        assert len(slots) >= 2
        (place,) = places | {each.value.device for each in slots}
        assert place.endswith(f"device:{stage.device.strip('/')}")
    table = found.stages.table
    assert sum(row.parameters for row in table) == found.model.count_params()
    assert sum(row.work for row in table) == pytest.approx(1.0)
    assert all(row.memory > 0 for row in table)
    assert table[0].sent > 0 == table[1].sent


def test_a_masked_sequence_is_carried_and_not_divided(gym: Gym, models: str) -> None:
    plan = PLAN.replace(model=f"{models}:masked", epochs=1, micro_batches=None)
    staged = gym.train(plan.replace(**STAGED, stages=("last",)))
    assert_same(staged, gym.train(plan))
    (note,) = [each.message for each in staged.all(Warned) if "one stage" in each.message]
    assert "the model masks tokens" in note


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model": "every", "stages": ("nosuch",)}, "no layer is named 'nosuch'"),
        ({"model": "every", "stages": ("flat",)}, "flat is the first layer"),
        ({"model": "every", "stages": ("head", "norm"), "virtual_cpus": 3}, "norm does not come after head"),
        ({"model": "own"}, "only a Sequential or a functional model can be cut into stages"),
    ],
)
def test_what_cannot_be_cut_is_refused_with_its_reason(models: str, changes: dict[str, Any], reason: str) -> None:
    plan = PLAN.replace(**{**STAGED, **changes, "model": f"{models}:{changes['model']}"})
    with pytest.raises(PlanError, match=reason):
        assembled(plan)


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (Plan(**STAGED, stages=("a", "b")), "must name the first layer of each stage but the first: 1"),
        (Plan(**STAGED, xla="on"), "must be auto or off under pipeline"),
        (Plan(strategy="pipeline"), "needs two devices of the same kind"),
    ],
)
def test_a_plan_that_no_pipeline_trains_is_refused_before_training(plan: Plan, reason: str) -> None:
    assert any(reason in str(error) for error in resolve(plan, MACHINE.devices).plan_errors)


SKIPS = """
import keras
from keras import layers

def skips(input_shape, classes):
    inputs = keras.Input(input_shape)
    x = layers.Flatten()(inputs)
    found = [x]
    for _ in range(6):
        x = layers.Dense(16, "relu")(layers.Concatenate()(found[-3:]) if len(found) > 1 else x)
        found.append(x)
    return keras.Model(inputs, layers.Dense(classes, "softmax")(layers.Concatenate()(found)))
"""

CAMPAIGN = {
    "mlp": "digits",
    "cnn": "digits",
    "resnet20": "digits",
    "unet": "MASKS",
    "gpt": "TEXT",
    "vit": "digits",
    "lstm": "SEQUENCES",
    "skips": "digits",
}
"""Data for each model, in capitals made up here."""


@pytest.mark.campaign
@pytest.mark.parametrize(("name", "stages"), list(product(CAMPAIGN, (2, 4))))
def test_many_steps_of_a_model_are_the_ones_of_one_device(
    gym: Gym, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, stages: int
) -> None:
    # Of 32 bits, the rounding of sums grows beyond 1e-5 in networks with batch normalization of few examples.
    monkeypatch.setattr(Plan, "policy", property(lambda _: "float64"))
    # The last layer of unet has 32 bits whatever the policy, and its gradient is the sum of all pixels.
    wide = {**vars(layers), "Conv2D": lambda *sizes, dtype=None, **options: layers.Conv2D(*sizes, **options)}
    monkeypatch.setattr(unet, "layers", SimpleNamespace(**wide))
    generator = np.random.default_rng(0)
    data = CAMPAIGN[name]
    if data == "TEXT":
        data = str(tmp_path / "story.txt")
        words = generator.choice(["one ", "two ", "three ", "four. "], 3000)
        Path(data).write_text("".join(words))
    elif data.isupper():
        arrays = {
            "MASKS": {"x": generator.random((64, 16, 16, 1), np.float32), "y": generator.integers(0, 3, (64, 16, 16))},
            "SEQUENCES": {"x": generator.random((64, 8, 3), np.float32), "y": generator.integers(0, 4, 64)},
        }[data]
        data = str(tmp_path / "arrays.npz")
        np.savez(data, **arrays)
    (tmp_path / "skips.py").write_text(SKIPS)
    gym.steps = 20
    model = f"{tmp_path / 'skips.py'}:skips" if name == "skips" else name
    plan = Plan(
        model=model, data=data, batch_size=32, steps_per_epoch=200, epochs=1, xla="off", micro_batches=4,
        validation="off", optimizer="sgd", momentum=0.9, learning_rate=0.001, window=16 if name == "gpt" else None,
    )  # fmt: skip
    count = min(stages, 3) if name == "mlp" else stages  # it has three layers
    before = keras.config.floatx()
    keras.config.set_floatx("float64")
    try:
        assert_same(gym.train(plan.replace(strategy="pipeline", virtual_cpus=count)), gym.train(plan))
    finally:
        keras.config.set_floatx(before)


def test_what_one_device_cannot_hold_is_proposed_for_two_and_placed_on_them(tmp_path: Path) -> None:
    (tmp_path / "skips.py").write_text(SKIPS)
    plan = Plan(model=f"{tmp_path / 'skips.py'}:skips", data="digits", batch_size=32, xla="off")
    size, two = measure_model(plan), Placement(("gpu:0", "gpu:1"), stages=2)
    memory = estimate_memory(Training(plan.replace(strategy="pipeline"), size, 32, two)).high
    alone = Training(plan, size, 32, Placement(("gpu:0",)), memory=memory, accelerators=two.devices)
    assert estimate_memory(alone).fits(memory) is False
    change = cheapest_change(alone)
    assert change is not None
    assert change.values == {"strategy": "pipeline"}
    found = assembled(plan.replace(virtual_cpus=2, **change.values))
    assert found.stages is not None
    every = (*found.model.variables, *found.model.optimizer.variables)
    placed = [sum(math.prod(each.shape) for each in every if each.value.device[-5:] == f"CPU:{n}") for n in (0, 1)]
    with_gradients = FLOAT32_BYTES * (sum(placed) + 2 * size.trainable)
    assert max(placed) < 0.62 * sum(placed)
    assert max(row.memory for row in found.stages.table) < memory < with_gradients
