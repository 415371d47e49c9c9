"""Models without their string operations compute the same from texts that are encoded as Keras encodes them."""

import json
from collections.abc import Callable

import keras
import numpy as np
import pytest

from accel_engine.errors import ModelError
from accel_engine.inference.keras_runtime import KerasRuntime
from accel_engine.inference.text_encoding import encode_texts, read_encodings, sidecar_of, with_encodings
from accel_engine.json_values import to_plain
from accel_engine.model_export.text_cut import CutModel, cut_text

TEXTS = np.array(["Good, GOOD film!", "bad", "", "a good\tbad\u00a0film now and then", "ÄRGER über good"], object)
WORDS = ["good", "bad", "film", "good film"]


def vectorized(**options) -> keras.Model:
    inputs = keras.Input((), dtype="string", name="review")
    layer = keras.layers.TextVectorization(vocabulary=WORDS, **options)
    return keras.Model(inputs, layer(inputs))


@pytest.mark.parametrize(
    "options",
    [
        {"output_mode": "int", "output_sequence_length": 4},
        {"output_mode": "multi_hot"},
        {"output_mode": "multi_hot", "ngrams": 2, "max_tokens": 9, "pad_to_max_tokens": True},
        {"output_mode": "int", "output_sequence_length": 6, "ngrams": (2,)},
    ],
)
def test_texts_are_encoded_as_by_text_vectorization(options) -> None:
    model = vectorized(**options)
    cut = cut_text(keras.Model(model.input, keras.layers.Rescaling(1.0)(model.output)), "review")
    np.testing.assert_array_equal(cut.encodings["review"].encode(TEXTS), model(keras.ops.convert_to_tensor(TEXTS)))


def table_model() -> keras.Model:
    city = keras.Input((1,), dtype="string", name="city")
    age = keras.Input((1,), name="age")
    numbers = keras.layers.StringLookup(vocabulary=["Rome", ""])(city)
    hot = keras.layers.CategoryEncoding(3, output_mode="multi_hot")(numbers)
    return keras.Model({"city": city, "age": age}, keras.layers.Concatenate()([age, hot]))


def rows() -> dict[str, np.ndarray]:
    return {"city": np.array([["Rome"], [""], ["Oslo"]], object), "age": np.float32([[1], [2], [3]])}


def test_categories_are_numbers_that_the_model_takes_instead() -> None:
    cut = cut_text(table_model(), "inputs")
    assert {name: tensor.dtype for name, tensor in cut.model.input.items()} == {"age": "float32", "city": "int64"}
    encoded = encode_texts(rows(), cut.encodings)
    np.testing.assert_array_equal(encoded["city"], [[1], [2], [0]])
    expected = [[1, 0, 1, 0], [2, 0, 0, 1], [3, 1, 0, 0]]
    np.testing.assert_array_equal(cut.model(encoded), expected)


def saved(cut: CutModel, tmp_path):
    path = tmp_path / "m.tflite"
    sidecar_of(path).write_text(json.dumps({"texts": to_plain(cut.encodings)}), "utf-8")
    return path


def test_the_file_beside_a_model_lets_a_runtime_take_raw_texts(tmp_path) -> None:
    cut = cut_text(table_model(), "inputs")
    path = saved(cut, tmp_path)
    assert read_encodings(sidecar_of(path)) == cut.encodings
    runtime = with_encodings(KerasRuntime(cut.model, 1), path)
    assert str(runtime.inputs["city"]) == "string 1"
    np.testing.assert_array_equal(runtime.run(rows())["output_0"][:, 0], [1, 2, 3])


def test_a_damaged_file_beside_a_model_is_an_error(tmp_path) -> None:
    path = saved(cut_text(table_model(), "inputs"), tmp_path)
    sidecar_of(path).write_text('{"texts": {"city": 5}}')
    with pytest.raises(ModelError, match="does not say how texts are encoded"):
        with_encodings(KerasRuntime(table_model(), 1), path)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: keras.layers.TextVectorization(vocabulary=WORDS, standardize="lower"),
            "another way than Keras' default",
        ),
        (lambda: keras.layers.TextVectorization(vocabulary=WORDS), "neither words of a fixed number"),
        (lambda: keras.layers.StringLookup(vocabulary=WORDS, num_oov_indices=2), "one index for unknown texts"),
        (lambda: keras.layers.Hashing(4), "a Hashing"),
    ],
)
def test_other_string_operations_are_refused(make: Callable[[], keras.Layer], message: str) -> None:
    inputs = keras.Input((), dtype="string")
    with pytest.raises(ModelError, match=message):
        cut_text(keras.Model(inputs, make()(inputs)), "inputs")


def test_a_text_for_two_layers_is_refused() -> None:
    inputs = keras.Input((1,), dtype="string")
    first = keras.layers.StringLookup(vocabulary=WORDS)(inputs)
    second = keras.layers.StringLookup(vocabulary=WORDS[:2])(inputs)
    with pytest.raises(ModelError, match="several layers"):
        cut_text(keras.Model(inputs, keras.layers.Concatenate()([first, second])), "inputs")
