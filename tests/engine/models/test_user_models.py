from pathlib import Path

import keras
import pytest
import tensorflow as tf

from accel_engine.errors import ModelError, PlanError
from accel_engine.models.build import build

SHAPE = (4, 4, 1)

GOOD = """
import keras

def build(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), keras.layers.Flatten(), keras.layers.Dense(classes)])
"""


@pytest.fixture
def write(tmp_path: Path):
    def write(text: str, name: str = "mymodel.py") -> str:
        (tmp_path / name).write_text(text)
        return f"{tmp_path / name}:build"

    return write


def message(spec: str, shape: tuple[int, ...] = SHAPE, classes: int = 3) -> str:
    with pytest.raises(ModelError) as caught:
        build(spec, shape, classes)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_function_in_a_file(write) -> None:
    model = build(write(GOOD), SHAPE, 3)
    assert model.output_shape == (None, 3)
    assert not model.compiled


def test_function_gets_only_its_parameters(write) -> None:
    layers = "[keras.layers.Flatten(), keras.layers.Dense(3 if num_classes is None else num_classes)]"
    assert build(write(f"import keras\ndef build(*, num_classes=None): return keras.Sequential({layers})"), SHAPE, 5)
    fixed = "import keras\ndef build(): return keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(3)])"
    assert build(write(fixed, "fixed.py"), SHAPE, 3).built


def test_a_model_class_is_built_for_the_data(write) -> None:
    spec = write(
        """
import keras

class build(keras.Model):
    def __init__(self, classes):
        super().__init__()
        self.flatten = keras.layers.Flatten()
        self.dense = keras.layers.Dense(classes)

    def call(self, x):
        return self.dense(self.flatten(x))
"""
    )
    model = build(spec, SHAPE, 3)
    assert model.count_params() == 16 * 3 + 3
    with tf.Graph().as_default():
        assert build(spec, SHAPE, 3).count_params() == 16 * 3 + 3


def test_neighbouring_files_can_be_imported_and_are_reloaded(write) -> None:
    write("UNITS = 5", "mysizes.py")
    spec = write(
        GOOD.replace("Dense(classes)", "Dense(UNITS)").replace(
            "import keras", "import keras\nfrom mysizes import UNITS"
        )
    )
    assert build(spec, SHAPE, 3).output_shape == (None, 5)
    write("UNITS = 5 + 2", "mysizes.py")
    assert build(spec, SHAPE, 3).output_shape == (None, 7)


def test_file_named_as_a_module_in_use_does_not_replace_it(write) -> None:
    assert build(write(GOOD, "keras.py"), SHAPE, 3)
    import sys

    assert sys.modules["keras"] is keras


def test_function_in_a_package(write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mypackage").mkdir()
    write("", "mypackage/__init__.py")
    write(GOOD, "mypackage/nets.py")
    monkeypatch.chdir(tmp_path)
    assert build("mypackage.nets:build", SHAPE, 3).output_shape == (None, 3)
    assert "No module named 'mypackage.nothing'" in message("mypackage.nothing:build")


def test_compiled_model_stays_compiled(write) -> None:
    text = (
        GOOD.replace("    return ", "    model = ")
        + "    model.compile('sgd', 'mse', metrics=['mae'])\n    return model"
    )
    model = build(write(text), SHAPE, 3)
    assert model.compiled
    assert isinstance(model.optimizer, keras.optimizers.SGD)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # Keras' way of saving weights
def test_saved_model(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input(SHAPE), keras.layers.Flatten(), keras.layers.Dense(3, activation="softmax")])
    model.compile(keras.optimizers.SGD(0.5), "sparse_categorical_crossentropy")
    model.save(tmp_path / "saved.keras")
    loaded = build(str(tmp_path / "saved.keras"), SHAPE, 3)
    assert loaded.compiled
    assert float(loaded.optimizer.learning_rate) == 0.5
    with tf.Graph().as_default():
        assert build(str(tmp_path / "saved.keras"), SHAPE, 3).count_params() == model.count_params()
    assert message(str(tmp_path / "saved.keras"), (5, 5, 1)) == "model saved takes 4x4x1; the data has 5x5x1"


def test_model_without_a_channel_axis_takes_grayscale_images(write) -> None:
    text = GOOD.replace("keras.Input(input_shape)", "keras.Input((4, 4))")
    assert build(write(text), SHAPE, 3).input_shape == (None, 4, 4)
    assert "takes 4x4; the data has 4x4x3" in message(write(text), (4, 4, 3))


def test_broken_saved_file(tmp_path: Path) -> None:
    (tmp_path / "broken.keras").write_bytes(b"no zip")
    assert message(str(tmp_path / "broken.keras")).startswith(f"cannot load {tmp_path / 'broken.keras'}: ")


def test_saved_model_that_would_run_code_is_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "code.keras"
    keras.Sequential([keras.Input(SHAPE), keras.layers.Lambda(lambda x: x)]).save(path)
    assert "unsafe" in message(str(path))


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="no such file"):
        build(f"{tmp_path}/nothing.py:build", SHAPE, 3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "import keras\n\ndef build():\n    return 1 / 0",
            "in mymodel.py, line 4: ZeroDivisionError: division by zero",
        ),
        ("import no_such_thing", "in mymodel.py, line 1: ModuleNotFoundError: No module named 'no_such_thing'"),
        ("x = 1\ndef build(:\n    pass", "in mymodel.py, line 2: SyntaxError"),
        ("import sys\nsys.exit('usage: train FILE')", "line 2: SystemExit: usage: train FILE"),
        ("def biuld(): pass", "has no function build; did you mean biuld?"),
        ("x = 1", "has no function build; it has no functions"),
        ("build = 3", "build in {path} is not a function but int"),
        ("def build(width): pass", "requires width; available arguments: input_shape, classes, num_classes"),
        ("def build(): pass", "mymodel:build returned nothing, not a keras.Model"),
        ("def build(): return [1]", "mymodel:build returned an object of type list, not a keras.Model"),
    ],
)
def test_bad_file_is_explained(write, text: str, words: str, tmp_path: Path) -> None:
    assert words.format(path=tmp_path / "mymodel.py") in message(write(text))


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        ("keras.Input((5, 5, 1)), keras.layers.Flatten(), keras.layers.Dense(3)", "takes 5x5x1; the data has 4x4x1"),
        ("keras.Input((None, 9)), keras.layers.Flatten()", "takes ?x9; the data has 4x4x1"),
        ("keras.layers.Conv2D(3, 7)", "does not accept examples of 4x4x1: "),
        ("keras.layers.Flatten(), keras.layers.Dense(2)", "outputs 2 values per example; the data has 3 classes"),
        ("keras.layers.Flatten(), keras.layers.Dense(1)", "outputs 1 value per example; the data has 3 classes"),
        ("keras.layers.Conv2D(3, 1)", "outputs something other than a vector per example"),
    ],
)
def test_model_that_does_not_fit_the_data_is_explained(write, layers: str, words: str) -> None:
    assert words in message(write(f"import keras\ndef build(): return keras.Sequential([{layers}])"))


def test_model_with_several_inputs_is_rejected(write) -> None:
    text = """
import keras

def build(input_shape):
    a, b = keras.Input(input_shape), keras.Input(input_shape)
    return keras.Model([a, b], keras.layers.Add()([a, b]))
"""
    assert "takes 2 inputs; the data has one" in message(write(text))


def test_one_unit_is_enough_for_two_classes(write) -> None:
    text = GOOD.replace("Dense(classes)", "Dense(1, activation='sigmoid')")
    assert build(write(text), SHAPE, 2).output_shape == (None, 1)


def test_custom_train_step_may_have_any_output(write) -> None:
    text = """
import keras

class Own(keras.Sequential):
    def train_step(self, data):
        return {}

def build(): return Own([keras.layers.Conv2D(2, 1)])
"""
    assert build(write(text), SHAPE, 3).output_shape == (None, 4, 4, 2)
