"""Whole chunks that XLA compiles, compared with the same steps without XLA."""

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from accel_engine.plan import Plan
from accel_engine.training.core import compiled_chunk, feed, random_draws
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.compiled_chunk import CompiledChunk, UnpreparedDraws, without_cudnn
from accel_engine.training.core.feed import Segment
from accel_engine.training.core.loop import ExecutionMode, Loop

from ..conftest import Gym, Trained

STEPS = 200

PLAN = Plan(model="linear", epochs=2, batch_size=32, steps_per_epoch=STEPS // 2, last_batch="drop", validation="off")

MODELS = """
import keras
import tensorflow as tf
from keras import layers

def _model(input_shape, classes, *between):
    model = keras.Sequential([keras.Input(input_shape), layers.Flatten(), layers.Dense(32, "relu"), *between,
                              layers.Dense(classes or 2, "softmax")])
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model

class Noise(layers.Layer):
    # Without a seed, from the generator that all layers share.
    def call(self, x, training=False):
        return x + 0.1 * keras.random.normal(keras.ops.shape(x)) * keras.random.uniform([1]) if training else x

class TensorFlowNoise(layers.Layer):
    def call(self, x, training=False):
        return x + tf.random.stateless_normal(tf.shape(x), seed=[1, 2]) if training else x

class Repeated(layers.Layer):
    # Draws inside a loop of the step.
    def call(self, x, training=False):
        draw = lambda i, x: (i + 1, x + 0.1 * keras.random.normal(x.shape, seed=1))
        return tf.while_loop(lambda i, x: i < 2, draw, [0, x])[1] if training else x

def dropout(input_shape, classes):
    return _model(input_shape, classes, layers.BatchNormalization(), layers.Dropout(0.3, seed=1))

def unseeded_dropout(input_shape, classes):
    return _model(input_shape, classes, layers.Dropout(0.3), layers.Dense(16), layers.Dropout(0.1))

class Masks(layers.Layer):
    # Two of one generator, and one that is the same at each step.
    def __init__(self):
        super().__init__()
        self.seeds = keras.random.SeedGenerator(5)

    def call(self, x, training=False):
        if not training:
            return x
        x = keras.random.dropout(keras.random.dropout(x, 0.1, seed=self.seeds), 0.2, seed=7)
        return keras.random.dropout(x, 0.3, noise_shape=[None, 1], seed=self.seeds)

def masks(input_shape, classes):
    return _model(input_shape, classes, layers.Dropout(0.3, seed=1), Masks(), layers.Dropout(0.1))

def noise(input_shape, classes):
    return _model(input_shape, classes, Noise(), layers.GaussianNoise(0.1, seed=3), layers.GaussianDropout(0.2, seed=4))

def spatial(input_shape, classes):
    shape = (*input_shape[:1], input_shape[1] * input_shape[2])
    return keras.Sequential([keras.Input(input_shape), layers.Reshape(shape), layers.Dense(16),
                             layers.SpatialDropout1D(0.3, seed=1), layers.AlphaDropout(0.1, seed=2), layers.Flatten(),
                             layers.Dense(classes, "softmax")])

def recurrent(input_shape, classes):
    shape = (*input_shape[:1], input_shape[1] * input_shape[2])
    return keras.Sequential([keras.Input(input_shape), layers.Reshape(shape),
                             layers.LSTM(8, dropout=0.2, recurrent_dropout=0.2, seed=1),
                             layers.Dense(classes, "softmax")])

def attention(input_shape, classes):
    shape = (*input_shape[:1], input_shape[1] * input_shape[2])
    inputs = keras.Input(input_shape)
    x = layers.Reshape(shape)(inputs)
    x = x + layers.MultiHeadAttention(2, 4, dropout=0.2, seed=1)(x, x)
    return keras.Model(inputs, layers.Dense(classes, "softmax")(layers.Flatten()(layers.LayerNormalization()(x))))

def flipped(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), layers.RandomFlip(seed=1), layers.Flatten(),
                             layers.Dense(classes, "softmax")])

def other_noise(input_shape, classes):
    return _model(input_shape, classes, TensorFlowNoise())

def repeated(input_shape, classes):
    return _model(input_shape, classes, Repeated())

def load():
    import numpy as np
    generator = np.random.default_rng(0)
    x = generator.normal(size=(640, 8, 8, 1)).astype("float32")
    y = (x.sum(axis=(1, 2, 3)) > 0).astype("int32")
    return x, y

def stream():
    return tf.data.Dataset.from_tensor_slices(load()).batch(32)
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "chunk_models.py"
    path.write_text(MODELS)
    return path


@pytest.fixture(autouse=True)
def many_steps(gym: Gym) -> None:
    gym.steps = 7


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[compiled_chunk.ChunkProgram]:
    """The programs that were made for whole chunks."""
    made: list[compiled_chunk.ChunkProgram] = []
    original = CompiledChunk.program

    def program(self: CompiledChunk, source: object) -> compiled_chunk.ChunkProgram:
        made.append(original(self, source))
        return made[-1]

    monkeypatch.setattr(CompiledChunk, "program", program)
    return made


@pytest.fixture
def as_on_gpu(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Gives runs from then on the programs of GPUs, with blocks of 4 steps."""

    def use() -> None:
        monkeypatch.setattr(Assembly, "on_gpu", True)
        monkeypatch.setattr(compiled_chunk, "BLOCK", 4)

    return use


def constant_loops(program: compiled_chunk.ChunkProgram) -> list[str]:
    """The numbers of steps of the program's loops, of those that XLA knows: a GPU runs them without the host."""
    (traced,) = program.run._list_all_concrete_functions()
    arguments = tf.nest.map_structure(lambda spec: tf.zeros(spec.shape, spec.dtype), traced.structured_input_signature)
    compiled: str = program.run.experimental_get_compiler_ir(*arguments[0])(stage="optimized_hlo")
    return re.findall(r'known_trip_count":\{"n":"(\d+)"', compiled)


def both(gym: Gym, plan: Plan) -> tuple[Trained, Trained]:
    """A plan trained without XLA and with it."""
    return gym.train(plan.replace(xla="off")), gym.train(plan.replace(xla="on"))


def assert_same(plain: Trained, compiled: Trained, tolerance: float = 1e-5) -> None:
    assert len(plain.series["loss"]) == plain.ended.steps > 0
    assert plain.series.keys() == compiled.series.keys()
    for name, values in plain.series.items():
        np.testing.assert_allclose(compiled.series[name], values, atol=tolerance, err_msg=name)
    for name, value in plain.ended.metrics.items():
        assert compiled.ended.metrics[name] == pytest.approx(value, abs=max(tolerance, 1e-3)), name


RECIPES = {
    "all at once": {
        "schedule": "cosine",
        "warmup": 0.1,
        "global_clip_norm": 0.5,
        "gradient_norm": "on",
        "ema_momentum": 0.9,
        "optimizer": "sgd",
        "momentum": 0.9,
        "nesterov": "on",
        "model": "mlp",
        "validation": "epoch",
    },
    "smaller last batch": {"last_batch": "keep", "batch_size": 100, "steps_per_epoch": None},
}
PARTS = {
    "plain": {},
    "schedule": {"schedule": "cosine", "warmup": 0.1},
    "clipping": {"global_clip_norm": 0.5, "gradient_norm": "on"},
    "averages": {"ema_momentum": 0.9, "optimizer": "sgd", "momentum": 0.9, "nesterov": "on"},
    "decay": {"optimizer": "adamw", "weight_decay": 1e-2},
    "stopping": {"patience": 1, "restore_best": "on", "validation": "epoch"},
    "one device": {"strategy": "one-device"},
}


@pytest.mark.parametrize("recipe", [*RECIPES, *(pytest.param(part, marks=pytest.mark.campaign) for part in PARTS)])
def test_the_steps_are_those_without_xla(gym: Gym, programs: list[compiled_chunk.ChunkProgram], recipe: str) -> None:
    plan = PLAN.replace(**{**RECIPES, **PARTS}[recipe])

    assert_same(*both(gym, plan))

    assert programs
    assert not any(program.draws for program in programs)


@pytest.mark.parametrize(
    ("model", "draws"),
    [
        ("noise", 4),
        pytest.param("recurrent", 8, marks=pytest.mark.campaign),
        pytest.param("dropout", 1, marks=pytest.mark.campaign),
        pytest.param("unseeded_dropout", 2, marks=pytest.mark.campaign),
        pytest.param("spatial", 2, marks=pytest.mark.campaign),
        pytest.param("attention", 1, marks=pytest.mark.campaign),
    ],
)
def test_random_numbers_are_those_without_xla(
    gym: Gym, programs: list[compiled_chunk.ChunkProgram], models: Path, model: str, draws: int
) -> None:
    assert_same(*both(gym, PLAN.replace(model=f"{models}:{model}", epochs=1)))

    assert [len(program.draws) for program in programs] == [draws]


@pytest.mark.parametrize("model", ["other_noise", pytest.param("repeated", marks=pytest.mark.campaign)])
def test_steps_with_other_random_numbers_are_compiled_one_by_one(gym: Gym, models: Path, model: str) -> None:
    plan = PLAN.replace(model=f"{models}:{model}", epochs=1, steps_per_epoch=10)

    plain, compiled = both(gym, plan)

    assert compiled.ended.steps == plain.ended.steps == 10
    assert np.isfinite(compiled.series["loss"]).all()


@pytest.mark.parametrize("model", ["repeated", pytest.param("other_noise", marks=pytest.mark.campaign)])
def test_autotuning_does_not_change_random_numbers(gym: Gym, models: Path, model: str) -> None:
    assembled = Plan(model=f"{models}:{model}", batch_size=32, epochs=1, steps_per_epoch=10)
    gym.train(assembled)
    assert gym.trainer is not None
    assembly = gym.trainer._epochs._assembly  # type: ignore[union-attr]
    order = np.zeros((4, 1, 32), np.int32)

    with pytest.raises(UnpreparedDraws, match="draws random numbers"):
        Loop(assembly, ExecutionMode(xla=True)).compile(Segment(order, 4, 32))


def test_augmented_examples_are_those_without_xla(gym: Gym, programs: list[compiled_chunk.ChunkProgram]) -> None:
    plan = PLAN.replace(epochs=1, steps_per_epoch=40, augmentation=("light", "mixup"))

    assert_same(*both(gym, plan))

    assert [program.stacks for program in programs] == [True]


@pytest.mark.campaign
def test_examples_that_are_read_from_the_host_are_stacked(
    gym: Gym, monkeypatch: pytest.MonkeyPatch, programs: list[compiled_chunk.ChunkProgram]
) -> None:
    monkeypatch.setattr(feed, "CACHE_SHARE", 0.0)

    assert_same(*both(gym, PLAN.replace(epochs=1)))

    assert [program.stacks for program in programs] == [True]


def test_the_batches_of_a_stream_are_those_without_xla(
    gym: Gym, programs: list[compiled_chunk.ChunkProgram], models: Path
) -> None:
    plan = PLAN.replace(
        model=f"{models}:dropout", data=f"{models}:stream", steps_per_epoch=None, epochs=3, split="none"
    )

    assert_same(*both(gym, plan))

    assert {program.stacks for program in programs} == {False}


@pytest.mark.campaign
@pytest.mark.parametrize("precision", ["mixed_float16", "mixed_bfloat16"])
def test_mixed_precision_is_that_without_xla(gym: Gym, models: Path, precision: str) -> None:
    plan = PLAN.replace(model=f"{models}:dropout", epochs=1, steps_per_epoch=40, precision=precision, force="on")

    assert_same(*both(gym, plan), tolerance=0.07)  # two of 32 examples


@pytest.mark.parametrize(
    ("model", "on_gpu"),
    [
        ("dropout", False),
        pytest.param("masks", True, marks=pytest.mark.campaign),
        pytest.param("attention", True, marks=pytest.mark.campaign),
    ],
)
def test_a_run_continues_exactly_in_the_middle_of_a_chunk(
    gym: Gym, as_on_gpu: Callable[[], None], models: Path, model: str, on_gpu: bool
) -> None:
    if on_gpu:
        as_on_gpu()
    plan = PLAN.replace(model=f"{models}:{model}", xla="on", steps_per_epoch=30)
    gym.steps = 16
    whole = gym.train(plan)
    gym.steps = 5
    stopped = gym.train(plan, at={20: [("stop",)]})

    gym.steps = 16
    resumed = gym.train(plan, run=stopped.directory)

    np.testing.assert_array_equal(resumed.series["loss"], whole.series["loss"])
    assert resumed.ended.metrics == whole.ended.metrics


def test_a_chunk_is_as_long_as_memory_allows(gym: Gym, monkeypatch: pytest.MonkeyPatch, models: Path) -> None:
    plan = PLAN.replace(model=f"{models}:dropout", xla="on", epochs=1, steps_per_epoch=10)
    monkeypatch.setattr(compiled_chunk, "PREPARED_BYTES", 3 * (32 * 32 + 32 * 4 + 6 * 4))  # draws, rows, columns

    trained = gym.train(plan)

    assert [chunk.count for chunk in trained.chunks] == [3, 3, 3, 1]


@pytest.mark.parametrize(
    ("on_gpu", "memory", "most"),
    [(True, 1 << 37, 1 << 30), (True, 1 << 20, 1 << 23), (True, 0, 1 << 23), (False, None, 1 << 23)],
)
def test_the_free_memory_of_a_gpu_limits_what_is_prepared(on_gpu: bool, memory: int | None, most: int) -> None:
    assembly: Any = SimpleNamespace(on_gpu=on_gpu, device_memory=memory)
    assert compiled_chunk._most_bytes(assembly) == most


@pytest.mark.parametrize(
    ("on_gpu", "rate", "size", "block"),
    [(True, 0, 4096, 32), (True, 700, 2048, 32), (True, 50, 128, 0), (True, 700, 31, 0), (False, 0, 4096, 0)],
)
def test_only_short_steps_on_gpus_are_taken_in_blocks(on_gpu: bool, rate: float, size: int, block: int) -> None:
    assembly: Any = SimpleNamespace(on_gpu=on_gpu)
    assert compiled_chunk._block(assembly, compiled_chunk.largest_chunk(rate, not on_gpu), size) == block


def test_one_program_takes_chunks_of_any_length(gym: Gym, programs: list[compiled_chunk.ChunkProgram]) -> None:
    gym.steps = 3
    few = gym.train(PLAN.replace(xla="on", epochs=1, steps_per_epoch=20))
    gym.steps = 64
    many = gym.train(PLAN.replace(xla="on", epochs=1, steps_per_epoch=20))

    np.testing.assert_array_equal(few.series["loss"], many.series["loss"])
    assert len({chunk.count for chunk in few.chunks}) == 2
    assert len(programs) == 2, "one for each run"


@pytest.mark.parametrize(
    ("model", "precision", "seeded"),
    [
        ("masks", "float32", True),
        pytest.param("noise", "float32", False, marks=pytest.mark.campaign),
        pytest.param("masks", "mixed_float16", True, marks=pytest.mark.campaign),
        pytest.param("masks", "mixed_bfloat16", True, marks=pytest.mark.campaign),
        pytest.param("unseeded_dropout", "float32", True, marks=pytest.mark.campaign),
        pytest.param("attention", "float32", True, marks=pytest.mark.campaign),
        pytest.param("recurrent", "float32", True, marks=pytest.mark.campaign),
    ],
)
def test_the_steps_of_gpus_are_those_of_cpus(
    gym: Gym,
    programs: list[compiled_chunk.ChunkProgram],
    as_on_gpu: Callable[[], None],
    models: Path,
    model: str,
    precision: str,
    seeded: bool,
) -> None:
    plan = PLAN.replace(model=f"{models}:{model}", precision=precision, xla="on", epochs=1, steps_per_epoch=30)
    gym.steps = 11
    before = gym.train(plan.replace(force="on"))
    as_on_gpu()

    stopped = gym.train(plan.replace(force="on"), at={15: [("stop",)]})
    resumed = gym.train(plan.replace(force="on"), run=stopped.directory)

    assert [chunk.count for chunk in resumed.chunks] == [11, 11, 8]
    for name, values in before.series.items():
        np.testing.assert_allclose(resumed.series[name], values, atol=1e-6, err_msg=name)  # XLA may round otherwise
    assert [program.masks is not None for program in programs] == [False, seeded, seeded]
    assert "4" in constant_loops(programs[1])


@pytest.mark.campaign
def test_masks_that_a_gpu_would_draw_otherwise_are_drawn_before(
    gym: Gym,
    monkeypatch: pytest.MonkeyPatch,
    programs: list[compiled_chunk.ChunkProgram],
    as_on_gpu: Callable[[], None],
    models: Path,
) -> None:
    plan = PLAN.replace(model=f"{models}:dropout", xla="on", epochs=1, steps_per_epoch=10)
    before = gym.train(plan)
    as_on_gpu()
    monkeypatch.setitem(random_draws._MANTISSAS, tf.float32, 22)

    trained = gym.train(plan)

    assert programs[-1].masks is None
    np.testing.assert_array_equal(trained.series["loss"], before.series["loss"])


RECURRENT = """
import keras

class Recorded(keras.layers.{kind}):
    def call(self, sequences, initial_state=None, mask=None, training=False):
        with open({file!r}, "a") as file:
            print(self.use_cudnn, file=file)
        return super().call(sequences, initial_state=initial_state, mask=mask, training=training)

def build():
    return keras.Sequential([keras.Input((28, 28)), Recorded(4), keras.layers.Dense(10, activation="softmax")])
"""
"""A model that notes, whenever it is traced, whether its recurrent layer may use cuDNN."""


def test_nested_layers_use_no_cudnn_and_then_their_own_choice_again() -> None:
    inner = keras.Sequential(
        [keras.Input((5, 3)), layers.LSTM(2, return_sequences=True), layers.GRU(2, use_cudnn=False)]
    )
    both = layers.Bidirectional(layers.GRU(2, return_sequences=True, use_cudnn=True))
    model = keras.Sequential([keras.Input((5, 3)), both, layers.Dense(3), inner])
    recurrent = [both.forward_layer, both.backward_layer, *inner.layers]
    own = [layer.use_cudnn for layer in recurrent]

    with without_cudnn(model):
        assert [layer.use_cudnn for layer in recurrent] == [False] * 4

    assert [layer.use_cudnn for layer in recurrent] == own == [True, True, "auto", False]


@pytest.mark.parametrize(
    ("xla", "kind"),
    [
        ("on", "GRU"),
        pytest.param("off", "LSTM", marks=pytest.mark.campaign),
        pytest.param("on", "LSTM", marks=pytest.mark.campaign),
        pytest.param("off", "GRU", marks=pytest.mark.campaign),
    ],
)
def test_steps_that_xla_compiles_use_no_cudnn(gym: Gym, tmp_path: Path, kind: str, xla: str) -> None:
    file, model = tmp_path / "traced", tmp_path / "model.py"
    model.write_text(RECURRENT.format(kind=kind, file=str(file)))
    data = "synthetic:28x28:10:64"

    gym.train_once(Plan(model=f"{model}:build", data=data, epochs=1, validation="off", xla=xla))

    assert set(file.read_text().split()) == {"False" if xla == "on" else "auto"}
