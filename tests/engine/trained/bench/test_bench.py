"""The inference of runs and of files is measured, and computes what the model computes."""

import sys
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine.errors import AccelError, UsageError
from accel_engine.formats import open_model
from accel_engine.inference.candidate import Candidate
from accel_engine.inference.measurement.percentiles import LiveWindow
from accel_engine.inference.runtime import Runtime
from accel_engine.models.model_call import call_model
from accel_engine.plan import Plan
from accel_engine.requests.bench_models import BenchedModel, BenchOptions, BenchRequest
from accel_engine.requests.protocol.model_reference import ModelReference
from accel_engine.run.directory.run_paths import trained_model
from accel_engine.trained.bench.bench import bench
from accel_engine.trained.bench.trained_runtime import (
    TrainedRuntime,
    computing_in,
    device_names,
    examples_of,
    has_bfloat16,
    precisions,
)
from accel_engine.trained.open_trained import open_trained
from accel_engine.training.memory_meters import HostMemory

from ...training.conftest import Gym

PLAN = Plan(model="mlp", epochs=1, batch_size=100, last_batch="drop")

OPTIONS = BenchOptions(devices=("cpu",), precisions=("float32",), xla="off", batch_sizes=(1, 4), seconds=0.1)


def of_run_(directory: Path, name: str = "") -> BenchedModel:
    return BenchedModel(name or directory.name, ModelReference(directory))


def of_file(path: Path, name: str = "") -> BenchedModel:
    return BenchedModel(name or path.name, file=path)


def benched(*models: BenchedModel, **changes: Any) -> list[Candidate]:
    parts: list[Any] = []
    bench(BenchRequest(models, replace(OPTIONS, **changes)), parts.append)
    return [each for each in parts if isinstance(each, Candidate)]


def test_a_run_is_measured_by_batch_size_with_xla_and_without(gym: Gym) -> None:
    directory = gym.train_once(PLAN).directory
    found = benched(of_run_(directory), xla="both")
    assert [(each.batch_size, each.xla) for each in found] == [(1, False), (4, False), (1, True), (4, True)]
    for each in found:
        assert (each.model, each.format, each.device, each.precision) == (
            directory.name,
            "keras",
            "cpu:0",
            "float32",
        )
        assert not each.problem
        assert 0 < each.percentiles["p50"].value <= each.percentiles["p999"].value
        assert each.throughput == pytest.approx(each.batch_size * each.requests / each.seconds)


def test_windows_are_told_while_a_run_is_measured(gym: Gym) -> None:
    directory = gym.train_once(PLAN).directory
    parts: list[Any] = []
    bench(BenchRequest((of_run_(directory),), OPTIONS, is_live=True), parts.append)
    found = [each for each in parts if isinstance(each, Candidate)]
    windows = [each for each in parts if isinstance(each, LiveWindow)]
    assert [each.batch_size for each in found] == [1, 4]
    last = {each.batch_size: each for each in windows}
    for each in found:
        live = last[each.batch_size]
        assert live.title == each.title
        assert (live.p50, live.p99) == (each.percentiles["p50"].value, each.percentiles["p99"].value)
        assert (live.throughput, sum(live.counts)) == (pytest.approx(each.throughput), each.requests)


@pytest.mark.parametrize("xla", [False, True])
def test_the_runtime_computes_what_the_model_computes_from_raw_examples(gym: Gym, xla: bool) -> None:
    trained = open_trained(gym.train_once(PLAN).directory, split="validation")
    examples = examples_of(trained, 5)
    assert {name: array.shape for name, array in examples.items()} == {"inputs": (5, 8, 8, 1)}
    scaled = tf.cast(examples["inputs"], tf.float32) * trained.scale
    expected = call_model(trained.model, scaled, training=False).numpy()
    found = TrainedRuntime(trained, xla=xla).run(examples)
    np.testing.assert_allclose(found["outputs"], expected, atol=1e-5)


def test_a_precision_is_that_of_the_layers(gym: Gym) -> None:
    trained = open_trained(gym.train_once(PLAN).directory, split="validation")
    examples = examples_of(trained, 50)
    exact = TrainedRuntime(trained, xla=False).run(examples)["outputs"]
    with computing_in(trained.model, "mixed_bfloat16"):
        rough = TrainedRuntime(trained, xla=False).run(examples)["outputs"]
    difference = np.abs(exact - np.asarray(rough, np.float32)).max()
    assert 1e-6 < difference < 0.05


def test_each_layer_has_its_own_precision_again_after_a_measurement() -> None:
    half = keras.DTypePolicy("mixed_bfloat16")
    model = keras.Sequential(
        [keras.Input((3,)), keras.layers.Dense(2, dtype=half), keras.layers.Dense(1, dtype="float32")]
    )
    model.dtype_policy = half

    def precisions_of_layers() -> list[str]:
        return [layer.dtype_policy.name for layer in model.layers]

    with computing_in(model, "float32"):
        assert precisions_of_layers() == ["float32", "float32"]
    with computing_in(model, "mixed_float16"):
        assert precisions_of_layers() == ["mixed_float16", "float32"]
    with pytest.raises(ValueError, match="no precision"), computing_in(model, "mixed_float16"):
        raise ValueError("no precision")
    assert precisions_of_layers() == ["mixed_bfloat16", "float32"]
    assert model.dtype_policy.name == "mixed_bfloat16"


def test_texts_do_not_compile_with_xla_and_the_rest_is_measured(gym: Gym, tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((1,), dtype="string"), keras.layers.StringLookup(vocabulary=["a", "0"])])
    model.add(keras.layers.Embedding(3, 2))
    model.save(tmp_path / "words.keras")
    found = benched(of_file(tmp_path / "words.keras"), xla="both")
    assert [bool(each.problem) for each in found] == [False, False, True]
    assert found[0].load_seconds is not None


@pytest.mark.filterwarnings("ignore:In the future `np.object`:FutureWarning")
def test_exported_models_are_measured_in_their_runtimes(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Flatten(), keras.layers.Dense(10)])
    model.export(tmp_path / "saved", verbose=False)
    converter = tf.lite.TFLiteConverter.from_saved_model(str(tmp_path / "saved"), ["serving_default"])
    (tmp_path / "m.tflite").write_bytes(converter.convert())
    files = [of_file(tmp_path / name) for name in ("saved", "m.tflite")]
    found = benched(*files, data="digits", batch_sizes=(4,))
    assert [(each.format, each.batch_size, each.problem) for each in found] == [
        ("savedmodel", 4, ""),
        ("tflite", 4, ""),
    ]


def test_models_are_shown_under_the_names_of_the_request(gym: Gym, tmp_path: Path) -> None:
    keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)]).save(tmp_path / "m.keras")
    run = of_run_(gym.train_once(PLAN).directory, "a run")
    found = benched(of_file(tmp_path / "m.keras", "old/m.keras"), run, batch_sizes=(1,))
    assert [(each.model, each.problem) for each in found] == [("old/m.keras", ""), ("a run", "")]


def test_a_file_with_data_of_another_shape_is_an_error(tmp_path: Path) -> None:
    keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)]).save(tmp_path / "m.keras")
    with pytest.raises(AccelError, match=r"takes examples of float32 3, not 8x8x1"):
        benched(of_file(tmp_path / "m.keras"), data="digits")


def test_a_server_of_a_run_has_a_rate_within_the_bound(gym: Gym) -> None:
    directory = gym.train_once(PLAN).directory
    options = {"scenario": "server", "batch_sizes": (2,), "target_latency": 10.0, "seconds": 0.2}
    (found,) = benched(of_run_(directory), **options)
    assert found.throughput > 0
    assert found.percentiles["p99"].value <= 10


def test_a_file_with_data_is_measured_on_it(gym: Gym) -> None:
    plan = Plan(model=str(trained_model(gym.train_once(PLAN).directory)), data="digits")
    (found,) = benched(BenchedModel("model.keras", ModelReference.of(plan)), batch_sizes=(2,))
    assert (found.model, found.problem) == ("model.keras", "")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell the peak")
def test_memory_grows_by_what_is_allocated(tmp_path: Path) -> None:
    meter = HostMemory()
    meter.start()
    held = np.ones(64 << 20, np.uint8)
    found = meter.stop()
    assert found is not None
    assert 60 << 20 < found < 200 << 20
    assert held.all()
    other = HostMemory(proc=tmp_path)
    other.start()
    assert other.stop() is None


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell the peak")
def test_the_peak_is_forgotten_at_the_start() -> None:
    meter = HostMemory()
    held = np.ones(64 << 20, np.uint8)
    del held
    meter.start()
    found = meter.stop()
    assert found is not None
    assert found < 32 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell the peak")
def test_the_weights_that_are_loaded_already_count() -> None:
    meter = HostMemory(1 << 30)
    meter.start()
    found = meter.stop()
    assert found is not None
    assert 1 << 30 <= found < (1 << 30) + (32 << 20)


def test_the_memory_of_a_run_includes_its_weights(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[int] = []

    class Meter(HostMemory):
        def __init__(self, size: int = 0) -> None:
            super().__init__(size)
            loaded.append(size)

    monkeypatch.setattr("accel_engine.trained.bench.bench.HostMemory", Meter)
    directory = gym.train_once(PLAN).directory
    found = benched(of_run_(directory), xla="both", batch_sizes=(1,))
    weights = sum(array.nbytes for array in keras.models.load_model(trained_model(directory)).get_weights())
    assert loaded == [weights]
    assert all(each.memory is None or each.memory >= weights for each in found)


def test_the_model_before_is_freed(tmp_path: Path) -> None:
    keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)]).save(tmp_path / "m.keras")
    alive: weakref.WeakSet[Runtime] = weakref.WeakSet()
    counts: list[int] = []

    def opened(path: Path, **options: Any) -> Runtime:
        counts.append(len(alive))
        runtime = open_model(path, **options)
        alive.add(runtime)
        return runtime

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("accel_engine.trained.bench.bench.open_model", opened)
        benched(of_file(tmp_path / "m.keras"), of_file(tmp_path / "m.keras"), xla="both")
    assert counts == [0, 0, 0, 0]


def test_devices_are_chosen_by_name() -> None:
    assert device_names([])[-1] == "CPU:0"
    assert device_names(["cpu", "cpu:0"]) == ["CPU:0"]
    with pytest.raises(UsageError, match=r"TensorFlow has no device gpu:7: it has .*cpu:0"):
        device_names(["gpu:7"])


def test_bfloat16_is_measured_on_processors_that_multiply_it(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "with").write_text("processor: 0\nflags\t\t: sse avx512_bf16 fma\n")
    (tmp_path / "without").write_text("flags\t\t: sse avx512f fma\n")
    assert [has_bfloat16(tmp_path / name) for name in ("with", "without", "missing")] == [True, False, False]
    monkeypatch.setattr("accel_engine.trained.bench.trained_runtime.has_bfloat16", lambda: True)
    assert precisions("CPU:0", "float32") == ["float32", "mixed_bfloat16"]
    assert precisions("CPU:0", "mixed_bfloat16") == ["mixed_bfloat16"]
