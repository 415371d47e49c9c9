"""The parts of an export: warm-up requests, differences, unrolled layers, and what LiteRT and ONNX lack."""

import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine.data.standardization import Standardization
from accel_engine.errors import ModelError
from accel_engine.formats import open_model
from accel_engine.formats.onnx_format import write_onnx
from accel_engine.formats.serving_warmup import FILE, write_warmup
from accel_engine.formats.tflite_format import write_tflite
from accel_engine.inference.output_differences import Differences, Divisor, OutputScale
from accel_engine.model_export.artefacts import MAX_STEPS, is_recurrent, unrolled
from accel_engine.model_export.proof import median_seconds, worsened
from accel_engine.model_export.service_check import _kind_of
from accel_engine.protobuf import Message


@pytest.mark.parametrize(
    ("platform", "kind"),
    [
        ("onnxruntime_onnx", ("onnx", "none")),
        ("litert_tflite-int8", ("tflite", "int8")),
        ("tflite-dynamic", ("tflite", "dynamic")),
        ("tensorflow_serving", ("savedmodel", "none")),
        ("onnx_onnxv1", ("onnx", "none")),
        ("", ("onnx", "none")),
    ],
)
def test_the_tolerance_of_a_service_is_of_its_format_and_precision(platform: str, kind: tuple[str, str]) -> None:
    assert _kind_of(platform) == kind


def test_warm_up_requests_are_records_of_prediction_logs(tmp_path: Path) -> None:
    requests = [{"city": np.array([["Rome"]], object), "age": np.float32([[3]])}, {"age": np.zeros((2, 1), np.float32)}]
    write_warmup(tmp_path, "k3fp", requests)
    first, second = (record.numpy() for record in tf.data.TFRecordDataset(str(tmp_path / FILE)))
    request = Message(first).message(6).message(1)
    assert (request.message(1).text(1), request.message(1).text(3)) == ("k3fp", "serving_default")
    tensors = {}
    for entry in request.messages(2):
        dtype = tf.string if entry.text(1) == "city" else tf.float32
        tensors[entry.text(1)] = tf.io.parse_tensor(entry.data(2)[0], dtype).numpy().tolist()
    assert tensors == {"city": [[b"Rome"]], "age": [[3.0]]}
    assert [entry.text(1) for entry in Message(second).message(6).message(1).messages(2)] == ["age"]


def differences(expected: list[list[float]], found: list[list[float]], divisor: Divisor) -> list[list[float]]:
    wanted = np.array(expected, np.float32)
    return OutputScale.of(wanted, divisor).differences(wanted, np.array(found)).tolist()


def test_probabilities_differ_by_the_largest_of_each_example() -> None:
    assert differences([[0.5, 0.25], [0.0, 1.0]], [[0.5, 0.5], [0.0, 1.0]], Divisor.NONE) == [[0.25], [0.0]]


def test_each_value_of_numbers_is_judged_by_its_own_spread() -> None:
    """One is near 250,000, the other between 1 and 5 and lost; their medians are 250,000 and 3."""
    expected = [[249_900.0, 1.0], [250_000.0, 3.0], [250_100.0, 5.0], [250_000.0, 2.0], [250_000.0, 4.0]]
    ruined = [[large, 0.0] for large, _ in expected]
    assert differences(expected, ruined, Divisor.COLUMNS) == [
        [0.0, pytest.approx(1.0 / 2.0)],  # 2 from the median
        [0.0, pytest.approx(3.0 / 1.4826)],
        [0.0, pytest.approx(5.0 / 2.0)],
        [0.0, pytest.approx(2.0 / 1.4826)],
        [0.0, pytest.approx(4.0 / 1.4826)],
    ]


def test_what_float32_cannot_tell_is_no_difference() -> None:
    exact = np.array([[1.2e8], [1.2e8 + 1], [1.2e8 + 2], [1.2e8 + 3]])
    rounded = exact.astype(np.float32)
    assert OutputScale.of(rounded, Divisor.COLUMNS).differences(exact, rounded).max() < 1e-5
    assert OutputScale.of(exact, Divisor.COLUMNS).differences(exact, rounded).max() > 0.5


def test_one_far_example_hides_no_difference_of_the_others() -> None:
    expected = np.array([[1.0], [2.0], [3.0], [4.0], [1e7]])
    found = expected + np.array([[1.4826], [0], [0], [0], [1e6]])
    assert OutputScale.of(expected, Divisor.COLUMNS).differences(expected, found)[:, 0] == pytest.approx(
        [1.4826 / 2.0, 0, 0, 0, 0.1], rel=1e-5
    )


def test_images_are_judged_by_the_range_of_all_pixels() -> None:
    assert differences([[0.0, 0.5], [0.0, 2.0]], [[0.1, 0.5], [0.0, 1.0]], Divisor.RANGE) == [[0.05], [0.5]]


def test_an_output_that_never_changes_is_compared_as_it_is() -> None:
    assert differences([[0.0], [0.0]], [[0.0], [0.25]], Divisor.COLUMNS) == [[0.0], [0.25]]


@pytest.mark.parametrize("divisor", [Divisor.NONE, Divisor.COLUMNS])
def test_nan_differs_infinitely_from_a_number_and_not_from_itself(divisor: Divisor) -> None:
    nan, inf = np.nan, np.inf
    found = differences([[nan], [1.0], [nan], [inf]], [[nan], [nan], [1.0], [inf]], divisor)
    assert found == [[0.0], [inf], [inf], [0.0]]


def test_outputs_of_another_shape_are_an_error() -> None:
    with pytest.raises(ValueError, match="shape"):
        differences([[0.0, 0.0]], [[0.0, 0.0, 0.0]], Divisor.COLUMNS)


def test_the_worst_value_of_all_outputs_is_found() -> None:
    scale = OutputScale(np.zeros(0), np.zeros(0)), OutputScale(np.zeros(2), np.ones(2), by_value=True)
    found = Differences(scale)
    for value in (0.5, 0.0):
        found.add([np.zeros((1, 3)), np.zeros((1, 2))], [np.full((1, 3), value), np.array([[0.125, 0.375]])])
    assert found.worst(by_mean=False) == (0.5, 0, 0)
    assert found.worst(by_mean=True) == (0.375, 1, 1)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"loss": 0.0165, "accuracy": 0.98}, ""),
        ({"loss": 0.06, "accuracy": 0.95}, ""),  # within 5% of what constant outputs lose, and of 0.98
        ({"loss": 5.0, "accuracy": 0.98}, "the loss is 5.0000, not 0.0165"),
        ({"loss": 0.0165, "accuracy": 0.9}, "the accuracy is 0.9000, not 0.9800"),
        ({"loss": float("nan"), "accuracy": 0.98}, "the loss is nan, not 0.0165"),
        ({"loss": 0.0, "accuracy": 1.0}, ""),
    ],
)
def test_a_loss_or_a_metric_that_is_far_worse_is_named(found: dict[str, float], words: str) -> None:
    expected, constant = {"loss": 0.0165, "accuracy": 0.98}, {"loss": 1.0165, "accuracy": 0.1}
    assert worsened(found, expected, constant, 0.05, 1000) == words


def test_metrics_near_0_are_judged_as_parts_of_1() -> None:
    before = {"r2_score": 0.001}
    assert not worsened({"r2_score": -0.001}, before, {"r2_score": 0.0}, 0.05, 1000)
    assert worsened({"r2_score": -0.1}, before, {"r2_score": 0.0}, 0.05, 1000) == "the r2_score is -0.1000, not 0.0010"


def test_one_example_may_be_another_class() -> None:
    assert worsened({"accuracy": 0.9}, {"accuracy": 1.0}, {}, 1e-4, 10) == ""


def test_a_latency_is_that_of_a_call() -> None:
    calls = []
    assert 0 < median_seconds(lambda: calls.append(1)) < 0.1
    assert len(calls) == 205


def recurrent_model(steps: int | None = 6) -> keras.Model:
    inputs = keras.Input((steps, 2), name="x")
    x = keras.layers.Bidirectional(keras.layers.GRU(3, return_sequences=True))(inputs)
    return keras.Model(inputs, keras.layers.LSTM(4)(x))


def test_recurrent_layers_are_unrolled_with_the_same_weights() -> None:
    model = recurrent_model()
    copy = unrolled(model)
    inner = copy.layers[1].forward_layer, copy.layers[1].backward_layer, copy.layers[2]
    assert is_recurrent(model)
    assert all(layer.unroll for layer in inner)
    x = np.random.default_rng(0).normal(size=(3, 6, 2)).astype(np.float32)
    np.testing.assert_allclose(copy(x), model(x), atol=1e-6)


def test_an_unrolled_copy_has_the_vocabulary_and_masks_as_the_model_does() -> None:
    words = keras.layers.TextVectorization(20, output_sequence_length=6)
    words.adapt(["the cat sat on a mat", "a dog ran"])
    inputs = keras.Input((), dtype="string", name="text")
    x = keras.layers.Embedding(20, 4, mask_zero=True)(words(inputs))
    x = keras.layers.Bidirectional(keras.layers.LSTM(3, return_sequences=True))(x)
    model = keras.Model(inputs, x)
    texts = tf.constant(["the dog sat", "a cat ran on the mat", "", "unknown"])
    copy = unrolled(model)
    np.testing.assert_allclose(copy(texts), model(texts), atol=1e-6)
    assert np.ptp(model(texts), 0).max() > 1e-3  # texts differ


def test_an_unrolled_copy_standardizes_as_the_model_does() -> None:
    normalization = keras.layers.Normalization()
    normalization.adapt(np.float32([[[1.0, 2.0]], [[5.0, 9.0]]]))
    model = keras.Sequential([keras.Input((6, 2)), normalization, keras.layers.GRU(3)])
    x = np.random.default_rng(0).normal(size=(3, 6, 2)).astype(np.float32)
    np.testing.assert_allclose(unrolled(model)(x), model(x), atol=1e-6)


@pytest.mark.parametrize(("steps", "message"), [(None, "does not fix"), (MAX_STEPS + 1, "takes 257 steps")])
def test_too_many_steps_are_refused(steps: int | None, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        unrolled(recurrent_model(steps))


def named(layer: keras.layers.Layer, shape: tuple[int, ...] = (3,)) -> keras.Model:
    inputs = keras.Input(shape, name="x")
    return keras.Model({"x": inputs}, {"y": layer(inputs)})


def test_an_operation_that_litert_lacks_is_named(tmp_path: Path) -> None:
    model = named(keras.layers.CategoryEncoding(4, output_mode="multi_hot"))
    with pytest.raises(ModelError, match="LiteRT lacks the operation DenseBincount"):
        write_tflite(model, tmp_path / "m.tflite", "none", dict)
    assert not any(tmp_path.iterdir())


def test_int8_weights_are_converted_back_by_the_scale_of_their_channel(tmp_path: Path) -> None:
    layer = keras.layers.Dense(40, use_bias=False, kernel_initializer=keras.initializers.RandomNormal(seed=1))
    model = named(layer, (64,))
    write_tflite(model, tmp_path / "m.tflite", "int8-weights", dict)
    write_tflite(model, tmp_path / "float.tflite", "none", dict)
    kernel = layer.kernel.numpy()
    scale = np.abs(kernel).max(axis=0) / 127
    x = np.random.default_rng(0).normal(size=(5, 64)).astype(np.float32)
    found = open_model(tmp_path / "m.tflite").run({"x": x})["y"]
    np.testing.assert_allclose(found, x @ (np.round(kernel / scale) * scale), atol=1e-5)
    assert (tmp_path / "m.tflite").stat().st_size < 0.6 * (tmp_path / "float.tflite").stat().st_size


@pytest.mark.parametrize("quantize", ["int8", "float16"])
def test_units_are_not_quantized(tmp_path: Path, quantize: str) -> None:
    """An integer whose range holds 0 and 1000 has steps of 4."""
    model = named(keras.layers.Dense(2, kernel_initializer=keras.initializers.RandomNormal(seed=1)))
    x = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    units = Standardization(np.array([1000.0, -5.0]), np.array([10.0, 0.5]))
    write_tflite(model, tmp_path / "plain.tflite", quantize, lambda: {"x": x})
    write_tflite(model, tmp_path / "units.tflite", quantize, lambda: {"x": x}, units)
    plain, found = (open_model(tmp_path / f"{name}.tflite").run({"x": x})["y"] for name in ("plain", "units"))
    np.testing.assert_allclose(found, units.restore(plain), rtol=1e-6)


def test_a_missing_quantizer_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ai_edge_quantizer", None)
    with pytest.raises(ModelError, match=r"pip install 'accel-tui\[quantizer\]'"):
        write_tflite(named(keras.layers.Dense(1)), tmp_path / "m.tflite", "int8-weights", dict)
    assert not any(tmp_path.iterdir())


def test_gelu_and_normalization_run_in_onnx(tmp_path: Path) -> None:
    inputs = keras.Input((3,), name="x")
    x = keras.layers.Normalization(mean=[1.0, 2.0, 3.0], variance=[4.0, 4.0, 4.0])(inputs)
    model = keras.Model({"x": inputs}, {"y": keras.layers.Dense(3, "gelu")(x)})
    write_onnx(model, tmp_path / "m.onnx", {"task": "regression"})
    runtime, x = open_model(tmp_path / "m.onnx"), np.float32([[0, 1, 2], [3, 4, 5]])
    assert list(runtime.inputs) == ["x"]
    np.testing.assert_allclose(runtime.run({"x": x})["y"], model({"x": x})["y"], atol=1e-6)


def test_convolutions_in_groups_run_in_onnx(tmp_path: Path) -> None:
    """Keras compiles them with XLA by themselves."""
    inputs = keras.Input((8, 8, 4), name="x")
    model = keras.Model({"x": inputs}, {"y": keras.layers.Conv2D(8, 3, groups=4)(inputs)})
    write_onnx(model, tmp_path / "m.onnx", {})
    x = np.random.default_rng(0).normal(size=(2, 8, 8, 4)).astype("float32")
    np.testing.assert_allclose(open_model(tmp_path / "m.onnx").run({"x": x})["y"], model({"x": x})["y"], atol=1e-5)


def test_missing_libraries_of_onnx_say_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"pip install 'accel-tui\[onnx\]'"):
        write_onnx(named(keras.layers.Dense(1)), tmp_path / "m.onnx", {})
