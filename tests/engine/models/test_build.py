import re

import pytest

from accel_engine.data.structure import ArraySpec
from accel_engine.errors import ModelError
from accel_engine.models.build import build
from accel_engine.models.data_description import DataDescription

INPUTS = ArraySpec((8, 8, 1), "float32")


@pytest.mark.parametrize("shape", [(), (1,)])
def test_integer_targets_without_class_names_are_explained(shape: tuple[int, ...]) -> None:
    data = DataDescription(INPUTS, ArraySpec(shape, "int64"))
    with pytest.raises(ModelError, match=re.escape("return class_names with the data, such as {'train': data,")):
        build("cnn", data)
    assert build("cnn", DataDescription(INPUTS, ArraySpec(shape, "int64"), ("a", "b"))).output_shape == (None, 2)


def test_other_targets_need_a_model_of_the_user() -> None:
    with pytest.raises(ModelError, match="the data has no classes: set the task, or use a model of your own"):
        build("cnn", DataDescription(INPUTS, ArraySpec((3,), "float32")))
    targets = {"a": ArraySpec((), "int32"), "b": ArraySpec((), "int32")}
    for task in ("auto", "classification"):
        with pytest.raises(ModelError, match="the data has several targets: use a model of your own"):
            build("cnn", DataDescription(INPUTS, targets, task=task))
    data = DataDescription(INPUTS, targets, task="reconstruction")
    assert build("autoencoder", data).output_shape == (None, 8, 8, 1)
