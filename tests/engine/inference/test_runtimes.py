"""Every runtime gives the outputs of the Keras model, by name, for batches of any size."""

import sys
import warnings
from pathlib import Path

import keras
import numpy as np
import pytest

from accel_engine.data.structure import ArraySpec
from accel_engine.errors import ModelError, UsageError
from accel_engine.formats import all_formats, format_of, open_model

FORMATS = [each.name for each in all_formats()]
SIZES = (1, 3, 2)


def small_model() -> keras.Model:
    image = keras.Input((4, 4, 1), dtype="uint8", name="image")
    age = keras.Input((1,), name="age")
    x = keras.layers.Flatten()(keras.layers.Rescaling(1 / 255)(image))
    x = keras.layers.Concatenate()([x, age])
    outputs = {
        "probabilities": keras.layers.Dense(3, activation="softmax")(x),
        "value": keras.layers.Dense(1)(x),
    }
    return keras.Model({"image": image, "age": age}, outputs)


def examples(count: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(count)
    return {
        "image": rng.integers(0, 256, (count, 4, 4, 1), np.uint8),
        "age": rng.normal(size=(count, 1)).astype(np.float32),
    }


def test_formats_have_names_and_suffixes_of_their_own_the_nearest_to_the_trained_model_first() -> None:
    assert FORMATS == ["keras", "savedmodel", "onnx", "tflite"]
    suffixes = [suffix for each in all_formats() for suffix in each.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    assert [each.name for each in all_formats() if not each.suffixes] == ["savedmodel"]
    assert all(each.precisions[0].name == "none" for each in all_formats())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[keras.Model, dict[str, Path]]:
    """A model, and its file in each format."""
    import tensorflow as tf

    folder, model = tmp_path_factory.mktemp("models"), small_model()
    paths = {
        "keras": folder / "m.keras",
        "savedmodel": folder / "m",
        "tflite": folder / "m.tflite",
        "onnx": folder / "m.onnx",
    }
    model(examples(1))
    model.save(paths["keras"])
    model.export(paths["savedmodel"] / "2", verbose=False)
    converter = tf.lite.TFLiteConverter.from_saved_model(str(paths["savedmodel"] / "2"), ["serving_default"])
    paths["tflite"].write_bytes(converter.convert())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Keras looks up names that NumPy has renamed
        model.export(paths["onnx"], format="onnx", verbose=False)
    return model, paths


@pytest.mark.parametrize("kind", FORMATS)
def test_each_format_gives_the_outputs_of_keras(kind: str, files: tuple[keras.Model, dict[str, Path]]) -> None:
    model, paths = files
    runtime = open_model(paths[kind])
    assert runtime.name == kind == format_of(paths[kind]).name
    assert dict(runtime.inputs) == {"age": ArraySpec((1,), "float32"), "image": ArraySpec((4, 4, 1), "uint8")}
    assert dict(runtime.outputs) == {"probabilities": ArraySpec((3,), "float32"), "value": ArraySpec((1,), "float32")}
    assert runtime.size >= 54 * 4  # its weights
    for count in SIZES:
        expected, found = model(examples(count)), runtime.run(examples(count))
        assert found.keys() == expected.keys()
        for name, array in found.items():
            np.testing.assert_allclose(array, expected[name], atol=1e-5)


@pytest.mark.parametrize("kind", ["keras", "savedmodel"])
def test_xla_gives_the_same_outputs(kind: str, files: tuple[keras.Model, dict[str, Path]]) -> None:
    model, paths = files
    found = open_model(paths[kind], jit_compile=True).run(examples(2))
    np.testing.assert_allclose(found["value"], model(examples(2))["value"], atol=1e-5)


@pytest.mark.parametrize("kind", FORMATS)
def test_wrong_inputs_are_refused(kind: str, files: tuple[keras.Model, dict[str, Path]]) -> None:
    runtime = open_model(files[1][kind])
    with pytest.raises(ModelError, match=r"takes the inputs age, image, not age"):
        runtime.run({"age": np.zeros((1, 1), np.float32)})
    with pytest.raises(ModelError, match=r"input image takes examples of uint8 4x4x1, not 5x4x1"):
        runtime.run({**examples(1), "image": np.zeros((1, 5, 4, 1), np.uint8)})


@pytest.mark.parametrize(
    ("name", "message"), [("m.tflite", "LiteRT"), ("m.onnx", "ONNX Runtime"), ("m.keras", "Keras cannot load m.keras")]
)
def test_a_damaged_file_is_an_error(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"no model at all")
    with pytest.raises(ModelError, match=message):
        open_model(tmp_path / name)


def test_what_is_no_model_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    for path, message in (
        (tmp_path / "none.onnx", "no such file"),
        (tmp_path / "notes.txt", "is not a model: give a file that ends with"),
        (tmp_path, "has no SavedModel"),
    ):
        with pytest.raises(UsageError, match=message):
            open_model(path)


@pytest.mark.parametrize(
    ("kind", "module", "extra"), [("tflite", "ai_edge_litert", "tflite"), ("onnx", "onnxruntime", "onnx")]
)
def test_a_missing_runtime_says_what_to_install(
    kind: str,
    module: str,
    extra: str,
    files: tuple[keras.Model, dict[str, Path]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModelError, match=rf"is not installed: pip install 'accel-tui\[{extra}\]'"):
        open_model(files[1][kind])


def test_unnamed_outputs_are_numbered_as_in_a_savedmodel(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((2,), name="x"), keras.layers.Dense(3)])
    model.save(tmp_path / "m.keras")
    model.export(tmp_path / "m", verbose=False)
    for path in (tmp_path / "m.keras", tmp_path / "m"):
        runtime = open_model(path)
        assert list(runtime.outputs) == list(runtime.run({name: np.ones((2, 2)) for name in runtime.inputs}))
        assert list(runtime.outputs) == ["output_0"]


def test_the_highest_version_of_a_savedmodel_is_opened(tmp_path: Path) -> None:
    for version, bias in ((2, 0.0), (10, 5.0)):
        layer = keras.layers.Dense(1, bias_initializer=keras.initializers.Constant(bias), name="y")
        keras.Sequential([keras.Input((1,)), layer]).export(tmp_path / str(version), verbose=False)
    runtime = open_model(tmp_path)
    assert runtime.run({name: np.zeros((1, 1)) for name in runtime.inputs})["output_0"].item() == 5.0
