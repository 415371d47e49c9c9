from pathlib import Path

import keras
import pytest
import tensorflow as tf

from accel_engine.data.structure import ArraySpec
from accel_engine.errors import ModelError, PlanError
from accel_engine.models.build import build, output_specs
from accel_engine.models.data_description import DataDescription

from .descriptions import labelled

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


def message_of(spec: str, data: DataDescription) -> str:
    with pytest.raises(ModelError) as caught:
        build(spec, data)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def message(spec: str, shape: tuple[int, ...] = SHAPE, classes: int = 3) -> str:
    return message_of(spec, labelled(shape, classes))


def test_function_in_a_file(write) -> None:
    model = build(write(GOOD), labelled(SHAPE, 3))
    assert model.output_shape == (None, 3)
    assert not model.compiled


def test_function_gets_only_its_parameters(write) -> None:
    layers = "[keras.layers.Flatten(), keras.layers.Dense(3 if num_classes is None else num_classes)]"
    assert build(
        write(f"import keras\ndef build(*, num_classes=None): return keras.Sequential({layers})"), labelled(SHAPE, 5)
    )
    fixed = "import keras\ndef build(): return keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(3)])"
    assert build(write(fixed, "fixed.py"), labelled(SHAPE, 3)).built


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
    model = build(spec, labelled(SHAPE, 3))
    assert model.count_params() == 16 * 3 + 3
    with tf.Graph().as_default():
        assert build(spec, labelled(SHAPE, 3)).count_params() == 16 * 3 + 3


def test_neighbouring_files_can_be_imported_and_are_reloaded(write) -> None:
    write("UNITS = 5", "mysizes.py")
    spec = write(
        GOOD.replace("Dense(classes)", "Dense(UNITS)").replace(
            "import keras", "import keras\nfrom mysizes import UNITS"
        )
    )
    assert build(spec, labelled(SHAPE, 3)).output_shape == (None, 5)
    write("UNITS = 5 + 2", "mysizes.py")
    assert build(spec, labelled(SHAPE, 3)).output_shape == (None, 7)


def test_file_named_as_a_module_in_use_does_not_replace_it(write) -> None:
    assert build(write(GOOD, "keras.py"), labelled(SHAPE, 3))
    import sys

    assert sys.modules["keras"] is keras


def test_function_in_a_package(write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mypackage").mkdir()
    write("", "mypackage/__init__.py")
    write(GOOD, "mypackage/nets.py")
    monkeypatch.chdir(tmp_path)
    assert build("mypackage.nets:build", labelled(SHAPE, 3)).output_shape == (None, 3)
    assert "No module named 'mypackage.nothing'" in message("mypackage.nothing:build")


def test_compiled_model_stays_compiled(write) -> None:
    text = (
        GOOD.replace("    return ", "    model = ")
        + "    model.compile('sgd', 'mse', metrics=['mae'])\n    return model"
    )
    model = build(write(text), labelled(SHAPE, 3))
    assert model.compiled
    assert isinstance(model.optimizer, keras.optimizers.SGD)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # Keras' way of saving weights
def test_saved_model(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input(SHAPE), keras.layers.Flatten(), keras.layers.Dense(3, activation="softmax")])
    model.compile(keras.optimizers.SGD(0.5), "sparse_categorical_crossentropy")
    model.save(tmp_path / "saved.keras")
    loaded = build(str(tmp_path / "saved.keras"), labelled(SHAPE, 3))
    assert loaded.compiled
    assert float(loaded.optimizer.learning_rate) == 0.5
    with tf.Graph().as_default():
        assert build(str(tmp_path / "saved.keras"), labelled(SHAPE, 3)).count_params() == model.count_params()
    assert message(str(tmp_path / "saved.keras"), (5, 5, 1)) == "model saved takes 4x4x1; the data has 5x5x1"


def test_model_without_a_channel_axis_takes_grayscale_images(write) -> None:
    text = GOOD.replace("keras.Input(input_shape)", "keras.Input((4, 4))")
    assert build(write(text), labelled(SHAPE, 3)).input_shape == (None, 4, 4)
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
        build(f"{tmp_path}/nothing.py:build", labelled(SHAPE, 3))


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
        ("build = 3", "build in {path} is a value of the type int, not a function: write one that returns it"),
        ("import math as build", "build in {path} is a module, not a function: name a function in it"),
        (
            "import keras\nbuild = keras.models.clone_model(keras.Sequential([keras.Input((4, 4, 1))]))",
            "build in {path} is a model, not a function: write one that returns it, e.g. def make(): return build",
        ),
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
    ],
)
def test_model_that_does_not_fit_the_data_is_explained(write, layers: str, words: str) -> None:
    assert words in message(write(f"import keras\ndef build(): return keras.Sequential([{layers}])"))


def test_model_with_several_inputs_is_rejected_where_the_data_has_one(write) -> None:
    text = """
import keras

def build(input_shape):
    a, b = keras.Input(input_shape), keras.Input(input_shape)
    return keras.Model([a, b], keras.layers.Add()([a, b]))
"""
    assert "takes 2 inputs; the data has float32 4x4x1" in message(write(text))


NAMED = """
import keras

def build(element_spec):
    inputs = {name: keras.Input(spec.shape[1:], dtype=spec.dtype, name=name) for name, spec in element_spec[0].items()}
    joined = keras.layers.Concatenate()([keras.layers.Flatten()(keras.ops.cast(x, "float32")) for x in inputs.values()])
    return keras.Model(inputs, keras.layers.Dense(element_spec[1].shape[1])(joined))
"""


def named(**inputs: ArraySpec) -> DataDescription:
    return DataDescription(inputs, ArraySpec((5,), "float32"), task="regression")


def test_inputs_may_be_a_dictionary_of_any_types(write) -> None:
    model = build(write(NAMED), named(photo=ArraySpec((4, 4, 1), "uint8"), age=ArraySpec((1,), "float32")))
    assert {name: (each.shape, each.dtype) for name, each in model.input.items()} == {
        "photo": ((None, 4, 4, 1), "uint8"),
        "age": ((None, 1), "float32"),
    }
    assert model.count_params() == (16 + 1 + 1) * 5


def test_inputs_of_another_name_are_explained(write) -> None:
    text = NAMED.replace("for name, spec in", 'for name, spec in [("year", element_spec[0]["age"])] or')
    told = message_of(write(text), named(age=ArraySpec((1,), "float32")))
    assert told.startswith("model mymodel:build does not accept examples of age: float32 1: ")
    assert "year" in told


def test_a_function_is_told_what_it_asks_of_the_data(write) -> None:
    text = """
import keras

asked = {}

def build(input_shape, classes, num_classes, class_names, vocabulary, element_spec):
    asked.update(locals())
    inputs = keras.Input(input_shape, dtype=element_spec.dtype)
    return keras.Model(inputs, keras.layers.Embedding(len(vocabulary), classes)(inputs), name=repr(sorted(asked)))
"""
    data = DataDescription(ArraySpec((None,), "int32"), None, ("a", "b"), vocabulary=("x", "y", "z"))
    model = build(write(text), data)
    assert model.output_shape == (None, None, 2)
    assert model.count_params() == 3 * 2
    assert model.inputs[0].dtype == "int32"


def test_tokens_of_any_length_fit_a_model_of_any_length(write) -> None:
    text = GOOD.replace("keras.layers.Flatten(), ", "keras.layers.Embedding(9, 4), keras.layers.LSTM(4), ")
    data = DataDescription(ArraySpec((None,), "int32"), ArraySpec((), "int32"), ("a", "b"))
    assert build(write(text), data).output_shape == (None, 2)


def test_one_unit_is_enough_for_two_classes(write) -> None:
    text = GOOD.replace("Dense(classes)", "Dense(1, activation='sigmoid')")
    assert build(write(text), labelled(SHAPE, 2)).output_shape == (None, 1)


def test_custom_train_step_may_have_any_output(write) -> None:
    text = """
import keras

class Own(keras.Sequential):
    def train_step(self, data):
        return {}

def build(): return Own([keras.layers.Conv2D(2, 1)])
"""
    assert build(write(text), labelled(SHAPE, 3)).output_shape == (None, 4, 4, 2)


def test_custom_train_step_need_not_be_callable(write) -> None:
    text = """
import keras

class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.generator = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])

    def train_step(self, data):
        return {}

def build(): return Own()
"""
    model = build(write(text), labelled(SHAPE, 3))
    assert output_specs(model, labelled(SHAPE, 3)) is None
    with pytest.raises(ModelError, match="does not accept examples of 4x4x1"):
        build(write(text.replace("def train_step", "def train"), "other.py"), labelled(SHAPE, 3))


@pytest.mark.parametrize("outputs", ["x", "[x, x]", "{'a': x, 'b': x}"])
def test_the_specs_of_outputs_have_the_models_structure(write, outputs: str) -> None:
    text = f"""
import keras

def build(input_shape):
    inputs = keras.Input(input_shape)
    x = keras.layers.Flatten()(inputs)
    return keras.Model(inputs, {outputs})
"""
    data = labelled(SHAPE, 3)
    specs = output_specs(build(write(text), data), data)
    assert keras.tree.map_structure(lambda spec: (spec.shape, spec.dtype), specs) == keras.tree.map_structure(
        lambda _: ((None, 16), "float32"), eval(outputs, {"x": 0})
    )
