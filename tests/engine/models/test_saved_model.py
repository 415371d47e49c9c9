"""Saved models with custom objects and lambda layers."""

from pathlib import Path

import keras
import pytest

from accel_engine.errors import ModelError
from accel_engine.models.model_entry import BuildOptions
from accel_engine.models.saved_model import custom_objects, load_saved

SOURCE = """
import keras
from keras import layers
from keras.layers import Dense

_private = 1

class Scale(layers.Layer):
    def call(self, x):
        return x * 2.0

def doubled(x):
    return x * 2.0

@keras.saving.register_keras_serializable("mine")
class Shift(layers.Layer):
    def call(self, x):
        return x + 1.0
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "own_layers.py"
    path.write_text(SOURCE)
    return path


def test_custom_classes_and_functions_are_found_in_a_file(source: Path, tmp_path: Path) -> None:
    objects = custom_objects(str(source))
    assert sorted(objects) == ["Scale", "Shift", "doubled"]
    assert not list(tmp_path.rglob("*.pyc"))
    saved = tmp_path / "mine.keras"
    keras.Sequential(
        [
            keras.Input((2,)),
            objects["Scale"](),
            objects["Shift"](),
            keras.layers.Dense(1, activation=objects["doubled"]),
        ]
    ).save(saved)
    keras.saving.get_custom_objects().clear()

    loaded = load_saved(str(saved), BuildOptions(custom_objects=str(source)))

    assert [type(layer).__name__ for layer in loaded.layers] == ["Scale", "Shift", "Dense"]
    keras.saving.get_custom_objects().clear()
    with pytest.raises(ModelError, match=r"function \S*Scale is not known.*add --custom-objects FILE\.py"):
        load_saved(str(saved), BuildOptions())
    source.write_text("class Other: pass\n")
    with pytest.raises(ModelError, match=r"own_layers\.py does not define it"):
        load_saved(str(saved), BuildOptions(custom_objects=str(source)))


def test_errors_of_the_file_name_its_line(source: Path) -> None:
    source.write_text("x = 1\nraise ValueError('no')\n")
    with pytest.raises(ModelError, match=r"custom objects in own_layers\.py failed in own_layers\.py, line 2: .*no"):
        custom_objects(str(source))
    source.write_text("x = 1\n")
    with pytest.raises(ModelError, match="has no class and no function"):
        custom_objects(str(source))


def test_lambda_layers_need_unsafe_load(tmp_path: Path) -> None:
    saved = tmp_path / "lambda.keras"
    keras.Sequential([keras.Input((2,)), keras.layers.Lambda(lambda x: x + 1)]).save(saved)

    with pytest.raises(ModelError, match=r"it has a lambda layer, whose code in the file.*add --unsafe-load on"):
        load_saved(str(saved), BuildOptions())
    assert load_saved(str(saved), BuildOptions(unsafe=True)).layers[0].name.startswith("lambda")
