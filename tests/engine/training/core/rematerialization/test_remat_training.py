"""A plan with rematerialization trains exactly as without it, states of random layers included."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine.events import Outcome, Warned
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.run.directory.checkpoint_files import checkpoint_path
from accel_engine.run.directory.run_paths import CHECKPOINTS, latest_checkpoint
from accel_engine.training.core.assembly import assemble
from accel_engine.training.core.rematerialization import choice

from ...conftest import Gym, Trained

MODELS = """
import keras
import tensorflow as tf
from keras import layers, ops

def _block(x, filters):
    residual = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
    residual = layers.Dropout(0.2)(layers.ReLU()(layers.BatchNormalization(momentum=0.8)(residual)))
    residual = layers.Conv2D(filters, 3, padding="same", activity_regularizer=keras.regularizers.L2(1e-3))(residual)
    return layers.ReLU()(layers.Add()([x, residual]))

def residual(input_shape, classes):
    inputs = keras.Input(input_shape)
    x = layers.Conv2D(16, 3, padding="same")(inputs)
    for _ in range(2):
        x = _block(x, 16)
    outputs = layers.Dense(classes, activation="softmax", dtype="float32")(layers.GlobalAveragePooling2D()(x))
    return keras.Model(inputs, outputs)

def dense(input_shape, classes):
    parts = [keras.Input(input_shape), layers.Flatten()]
    for _ in range(3):
        parts += [layers.Dense(32), layers.BatchNormalization(), layers.ReLU(), layers.Dropout(0.3)]
    return keras.Sequential([*parts, layers.Dense(classes, activation="softmax", dtype="float32")])

class Noise(layers.Layer):
    def call(self, x):
        return x + 0.1 * keras.random.normal(ops.shape(x))

def unseeded(input_shape, classes):
    x = inputs = keras.Input(input_shape)
    x = layers.Flatten()(x)
    for _ in range(4):
        x = Noise()(layers.Dense(16, "tanh")(x))
    return keras.Model(inputs, layers.Dense(classes, activation="softmax")(x))

def attention(input_shape, classes):
    inputs = keras.Input(input_shape)
    x = layers.Dense(16)(layers.Reshape(input_shape[:2])(inputs))
    for _ in range(2):
        normalized = layers.LayerNormalization()(x)
        # Without the bias of keys, which has no effect: Adam would turn its gradient, mere rounding, into steps.
        attended = layers.MultiHeadAttention(2, 8, dropout=0.1, use_bias=False)(normalized, normalized)
        x = layers.Add()([x, attended])
        hidden = layers.Dense(32, "gelu")(layers.LayerNormalization()(x))
        x = layers.Add()([x, layers.Dropout(0.1)(layers.Dense(16)(hidden))])
    outputs = layers.Dense(classes, activation="softmax", dtype="float32")(layers.GlobalAveragePooling1D()(x))
    return keras.Model(inputs, outputs)

def recurrent(input_shape, classes):
    inputs = keras.Input(input_shape)
    x = layers.Masking()(layers.Reshape(input_shape[:2])(inputs))
    for _ in range(3):
        x = layers.LSTM(12, return_sequences=True, dropout=0.2, recurrent_dropout=0.1)(x)
    return keras.Model(inputs, layers.Dense(classes, activation="softmax", dtype="float32")(layers.LSTM(12)(x)))

class Block(layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.first, self.last = layers.Dense(units), layers.Dense(units)
        self.normalization, self.dropout = layers.BatchNormalization(), layers.Dropout(0.3)

    def build(self, shape):
        for part in (self.first, self.normalization, self.last):
            part.build(shape)

    def call(self, x):
        self.add_loss(1e-3 * ops.mean(ops.square(ops.cast(x, "float32"))))
        return x + self.last(self.dropout(ops.tanh(self.normalization(self.first(x)))))

class Subclassed(keras.Model):
    def __init__(self, classes):
        super().__init__()
        self.inner = layers.Dense(24)
        self.flatten, self.head = layers.Flatten(), layers.Dense(classes, activation="softmax", dtype="float32")
        self.blocks = [Block(24) for _ in range(2)]

    def call(self, x, training=False):
        x = self.inner(self.flatten(x))
        for block in (*self.blocks, self.blocks[0]):  # one is used twice
            x = block(x)
        return self.head(x)

def subclassed(input_shape, classes):
    model = Subclassed(classes)
    model(keras.ops.zeros((1, *input_shape)))
    return model

def nested(input_shape, classes):
    inputs = keras.Input(input_shape)
    x = keras.Model(*_body(input_shape))(inputs)
    return keras.Model(inputs, layers.Dense(classes, activation="softmax")(layers.Flatten()(x)))

def _body(input_shape):
    x = inputs = keras.Input(input_shape)
    x = layers.Conv2D(16, 3, padding="same")(x)
    for _ in range(2):
        x = _block(x, 16)
    return inputs, layers.GlobalAveragePooling2D()(x)

class Own(keras.Model):
    def train_step(self, data):
        return super().train_step(data)

def own(input_shape, classes):
    inputs = keras.Input(input_shape)
    model = Own(inputs, layers.Dense(classes, activation="softmax")(layers.Flatten()(inputs)))
    model.compile("adam", "sparse_categorical_crossentropy")
    return model

class TensorFlowNoise(layers.Layer):
    def call(self, x):
        return x + tf.random.normal([8])

def unrepeatable(input_shape, classes):
    x = inputs = keras.Input(input_shape)
    x = TensorFlowNoise()(layers.Dense(8)(layers.Flatten()(x)))
    return keras.Model(inputs, layers.Dense(classes, activation="softmax")(x))

class Stray(layers.Layer):
    def __init__(self, other):
        super().__init__()
        self.get = lambda: other.moving_mean
    def call(self, x):
        self.get().assign_add(ops.ones(8))
        return x

def stray(input_shape, classes):
    x = inputs = keras.Input(input_shape)
    x = layers.Flatten()(x)
    normalization = layers.BatchNormalization()
    x = normalization(layers.Dense(8)(x))
    x = Stray(normalization)(x)
    return keras.Model(inputs, layers.Dense(classes, activation="softmax")(x))
"""

PLAN = Plan(
    data="digits",
    batch_size=128,
    last_batch="drop",
    epochs=3,
    optimizer="sgd",
    learning_rate=0.05,
    validation="off",
    xla="off",
    precision="float32",
    gradient_norm="on",
)
"""36 steps."""


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A path that all tests share, so that they can share trainings (:meth:`Gym.train_once`)."""
    path = tmp_path_factory.mktemp("models") / "models.py"
    path.write_text(MODELS)
    return str(path)


def state_of(trained: Trained) -> dict[str, np.ndarray]:
    """All values of the last checkpoint: weights, averages, random states and the optimizer's."""
    step = latest_checkpoint(trained.directory)
    reader = tf.train.load_checkpoint(str(checkpoint_path(trained.directory / CHECKPOINTS, step)))
    found = {name: np.asarray(reader.get_tensor(name)) for name in reader.get_variable_to_shape_map()}
    return {name: value for name, value in found.items() if value.dtype.kind in "fiu"}


MORE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("dense", {}),
    ("dense", {"last_batch": "keep"}),
    ("dense", {"micro_batches": 2}),
    ("subclassed", {}),
    ("nested", {}),
    ("attention", {}),
    ("recurrent", {}),
    ("dense", {"precision": "mixed_float16", "force": "on"}),
    ("subclassed", {"strategy": "mirrored", "virtual_cpus": 2}),
    ("dense", {"strategy": "mirrored", "virtual_cpus": 2, "precision": "mixed_float16", "force": "on"}),
    ("subclassed", {"xla": "on"}),
    ("attention", {"precision": "mixed_bfloat16"}),
    ("attention", {"xla": "on"}),
    ("attention", {"micro_batches": 2, "xla": "on"}),
    ("dense", {"last_batch": "keep", "xla": "on"}),
    ("dense", {"ema_momentum": 0.9, "global_clip_norm": 1.0, "schedule": "cosine"}),
)
"""What ``make campaign`` tries, too."""


def parts_of(plan: Plan) -> int:
    return assemble(resolve(plan), ("CPU:0",), None).remat.count


def assert_same(plain: Trained, remat: Trained, tolerance: float) -> None:
    assert plain.ended.outcome is remat.ended.outcome is Outcome.FINISHED
    assert plain.series.keys() == remat.series.keys()
    assert len(plain.series["loss"]) >= 30
    for name, values in plain.series.items():
        # An output at the border between two classes may be rounded to the other one.
        atol = max(tolerance, 2 / 29) if name == "accuracy" and tolerance > 1e-5 else tolerance
        np.testing.assert_allclose(remat.series[name], values, rtol=tolerance, atol=atol, err_msg=name)
    before, after = state_of(plain), state_of(remat)
    assert before.keys() == after.keys()
    # Where a gradient is mere rounding, Adam takes whole steps of the learning rate.
    atol = 0.1 if tolerance > 1e-5 else tolerance
    for name, value in before.items():
        np.testing.assert_allclose(after[name], value, rtol=tolerance, atol=atol, err_msg=name)
    integers = [name for name, value in before.items() if value.dtype.kind in "iu"]
    assert integers, "the states of random layers are integers"


@pytest.mark.parametrize(
    ("model", "changes"),
    [
        ("residual", {}),
        pytest.param("unseeded", {}, marks=pytest.mark.campaign),
        pytest.param("subclassed", {"precision": "mixed_bfloat16"}, marks=pytest.mark.campaign),
        pytest.param("dense", {"strategy": "mirrored", "virtual_cpus": 2}, marks=pytest.mark.campaign),
        pytest.param("dense", {"xla": "on"}, marks=pytest.mark.campaign),
        *(pytest.param(*other, marks=pytest.mark.campaign) for other in MORE),
    ],
)
def test_losses_and_states_are_those_without_it(gym: Gym, models: str, model: str, changes: dict[str, Any]) -> None:
    plan = PLAN.replace(model=f"{models}:{model}", **changes)

    plain, remat = (gym.train_once(plan.replace(remat=mode)) for mode in ("off", "on"))

    assert any("rematerialization:" in note.message for note in remat.all(Warned)), "it has an effect"
    tolerances = {"float32": 1e-5 if plan.xla == "on" else 1e-6, "mixed_bfloat16": 1e-2, "mixed_float16": 1e-3}
    assert_same(plain, remat, tolerances[plan.precision])


@pytest.mark.parametrize("changes", [{}, pytest.param({"xla": "on"}, marks=pytest.mark.campaign)])
def test_a_run_continues_exactly(gym: Gym, models: str, changes: dict[str, Any]) -> None:
    plan = PLAN.replace(model=f"{models}:dense", remat="on", **changes)
    whole = gym.train_once(plan)

    stopped = gym.train(plan, at={17: [("stop",)]})
    first = stopped.ended.steps
    continued = gym.train(plan, run=stopped.directory)

    assert 17 <= first < 20
    assert latest_checkpoint(stopped.directory) == len(whole.series["loss"])
    np.testing.assert_array_equal(continued.series["loss"], whole.series["loss"])


def test_a_run_continues_with_it(gym: Gym, models: str) -> None:
    plan = PLAN.replace(model=f"{models}:dense", remat="off")
    whole = gym.train_once(plan)

    begun = gym.train(plan.replace(epochs=1))
    continued = gym.train(plan.replace(remat="on"), run=begun.directory)

    np.testing.assert_allclose(continued.series["loss"], whole.series["loss"], rtol=1e-6, atol=1e-6)


def test_the_operations_of_a_step_count_once(gym: Gym, models: str) -> None:
    plan = PLAN.replace(model=f"{models}:residual")

    plain, remat = (gym.train_once(plan.replace(remat=mode)) for mode in ("off", "on"))

    from accel_engine.run import diagnostics

    before, after = (diagnostics.read(each.directory).layers for each in (plain, remat))
    assert before is not None
    assert before.flops
    assert after == before


@pytest.mark.parametrize(
    ("layers", "count"),
    [(("conv2d_1*",), 1), (("conv2d", "re_lu*"), 5), (("*",), 1), (("batch_normalization*", "conv2d_3"), 3)],
)
def test_layers_can_be_chosen(models: str, layers: tuple[str, ...], count: int) -> None:
    assert parts_of(PLAN.replace(model=f"{models}:residual", remat="on", remat_layers=layers)) == count


@pytest.mark.parametrize(
    "layers",
    [
        ("conv2d", "re_lu*"),
        pytest.param(("conv2d_1*",), marks=pytest.mark.campaign),
        pytest.param(("*",), marks=pytest.mark.campaign),
        pytest.param(("batch_normalization*", "conv2d_3"), marks=pytest.mark.campaign),
    ],
)
def test_losses_and_states_are_those_without_chosen_layers(gym: Gym, models: str, layers: tuple[str, ...]) -> None:
    plan = PLAN.replace(model=f"{models}:residual", remat="on", remat_layers=layers)

    assert_same(gym.train_once(plan.replace(remat="off", remat_layers=())), gym.train(plan), 1e-6)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"model": "own", "gradient_norm": "off"}, "which computes its gradients itself"),
        ({"model": "residual", "remat_layers": ("con",)}, "no layer is named 'con'"),
        ({"model": "stray", "remat_layers": ("stray",)}, "changes the variable"),
        ({"model": "unrepeatable", "remat_layers": ("*",)}, "RandomStandardNormal, which cannot be repeated"),
    ],
)
def test_what_cannot_be_recomputed_is_refused(gym: Gym, models: str, changes: dict[str, Any], why: str) -> None:
    model = changes.pop("model")

    ended = gym.train(PLAN.replace(model=f"{models}:{model}", remat="on", **changes)).ended

    assert ended.outcome is Outcome.FAILED
    assert why in ended.reason


def test_a_model_without_parts_trains_with_a_note(gym: Gym) -> None:
    trained = gym.train(PLAN.replace(model="linear", remat="on", epochs=1))

    assert trained.ended.outcome is Outcome.FINISHED
    assert any("rematerialization has no effect" in note.message for note in trained.all(Warned))


def test_auto_recomputes_only_what_does_not_fit(models: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = PLAN.replace(model=f"{models}:residual")

    assert parts_of(plan) == 0
    monkeypatch.setattr(choice, "available_memory", lambda: 4 << 20)
    assembly = assemble(resolve(plan), ("CPU:0",), None)
    assert assembly.remat.count > 1
    assert any("may need" in note and "--remat off" in note for note in assembly.information)
    assert parts_of(plan.replace(remat="off")) == 0
    assert parts_of(plan.replace(model=f"{models}:own", gradient_norm="off")) == 0


def test_auto_ignores_a_tpu(models: str) -> None:
    assert choice.choose_parts(
        resolve(PLAN.replace(model=f"{models}:residual")), keras.Sequential(), ("TPU:0",), 0, custom_step=False
    ) == (choice.ModelParts(), [])
