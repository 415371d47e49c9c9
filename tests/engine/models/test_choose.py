"""What ``--model auto`` takes, without TensorFlow."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from accel_engine import data
from accel_engine.data.structure import ArraySpec, Structure
from accel_engine.errors import PlanError
from accel_engine.models import CATALOGUE, AutoModel, ModelEntry, find
from accel_engine.models.choose import BY_FORM, BY_TASK, default_for, default_model
from accel_engine.models.data_description import DataDescription, describe_entry
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve

LABEL = ArraySpec((), "int32")
NUMBER = ArraySpec((), "float32")


def of(
    inputs: Structure, targets: Structure = LABEL, task: str = "classification", vocabulary: tuple[str, ...] = ()
) -> DataDescription:
    classes = ("a", "b") if task in ("classification", "multi-label", "segmentation") else ()
    texts = ["a b"] if isinstance(inputs, ArraySpec) and inputs.dtype == "string" else None
    return DataDescription(inputs, targets, classes, vocabulary, task, texts=texts)


@pytest.mark.parametrize(
    ("described", "name"),
    [
        (of(ArraySpec((8, 8, 1), "uint8")), "cnn"),
        (of(ArraySpec((32, 32, 3), "uint8"), NUMBER, "regression"), "cnn"),
        (of(ArraySpec((32, 32, 3), "uint8"), ArraySpec((2,), "float32"), "multi-label"), "cnn"),
        (of(ArraySpec((None, None, 3), "uint8")), "cnn"),
        (of(ArraySpec((4, 4, 1), "uint8")), "tabular"),
        (of(ArraySpec((13,), "float32")), "tabular"),
        (of(ArraySpec((), "float32"), NUMBER, "regression"), "tabular"),
        (of(ArraySpec((24, 3), "float32"), ArraySpec((6, 2), "float32"), "regression"), "tcn"),
        (of(ArraySpec((16000, 1), "float32")), "tcn"),
        (replace(of(ArraySpec((16000, 1), "float32")), sample_rate=8000), "sound-cnn"),
        (of(ArraySpec((None, 6), "float32")), "tcn"),
        (of(ArraySpec((), "string")), "bag-of-words"),
        (of(ArraySpec((1,), "string"), NUMBER, "regression"), "bag-of-words"),
        (of(ArraySpec((64,), "int32"), ArraySpec((64,), "int32"), "sequence", ("x", "y")), "gpt"),
        (of(ArraySpec((32, 32, 3), "uint8"), ArraySpec((32, 32), "uint8"), "segmentation"), "unet"),
        (of(ArraySpec((28, 28, 1), "uint8"), None, "reconstruction"), "autoencoder"),
        (of(ArraySpec((40,), "float32"), None, "reconstruction"), "autoencoder"),
        (DataDescription(ArraySpec((8,), "float32"), LABEL, ("a", "b")), "tabular"),
    ],
)
def test_the_default_follows_from_the_task_and_the_form_of_an_example(described: DataDescription, name: str) -> None:
    assert default_model(described) is CATALOGUE[name]


@pytest.mark.parametrize(
    ("described", "words"),
    [
        (of({"a": NUMBER, "b": NUMBER}), "the data has several inputs: use a model of your own, FILE.py:FUNCTION"),
        (of(ArraySpec((8,), "float32"), {"a": LABEL, "b": LABEL}, "auto"), "the data has several targets: use a model"),
        (of(ArraySpec((8,), "float32"), {"a": LABEL, "b": LABEL}), "the data has several targets: use a model of your"),
        (of(ArraySpec((8,), "float32"), NUMBER, "custom"), "a custom task has no default model: use a model of your"),
        (of(ArraySpec((8,), "float32"), NUMBER, "auto"), "the data does not tell the task: set --task, or use a model"),
        (of(ArraySpec((9, 9, 9, 1), "float32")), "no default model for the classification of examples of 9x9x9x1: use"),
        (of(ArraySpec((9,), "int32"), vocabulary=("x",)), "no default model for the classification of tokens: use"),
        (of(ArraySpec((64,), "int32"), LABEL, "sequence"), "model gpt needs the vocabulary: return it with the data"),
        (of(ArraySpec((None,), "float32")), "model tabular takes examples of one size; the data has ?: pad or cut"),
        (
            replace(of(ArraySpec((), "string")), texts=None),
            "model bag-of-words learns its words from texts in memory; the data is a stream",
        ),
    ],
)
def test_data_without_a_default_says_why_and_what_to_do(described: DataDescription, words: str) -> None:
    with pytest.raises(PlanError) as caught:
        default_model(described)
    assert words in str(caught.value)
    assert caught.value.field == "model"


def test_every_default_is_in_the_catalogue_and_is_listed_for_its_data() -> None:
    for taken, name in (BY_TASK | BY_FORM).items():
        assert taken in default_for(name)
        assert isinstance(find(name), ModelEntry)
    assert default_for("resnet20") == ()


def test_built_in_data_has_its_model_before_it_is_read() -> None:
    resolved = resolve(Plan())
    assert resolved.model is CATALOGUE["cnn"]
    assert resolved.plan.model == "auto"
    assert resolved.with_chosen_model().plan.model == "cnn"
    assert resolve(Plan(model="mlp")).with_chosen_model().plan.model == "mlp"


def test_a_file_has_its_model_once_it_is_surveyed(tmp_path: Path) -> None:
    path = tmp_path / "sensor.npz"
    np.savez(path, x=np.zeros((40, 20, 3), np.float32), y=np.arange(40) % 4)
    plan = Plan(data=str(path))
    resolved = resolve(plan)
    assert isinstance(resolved.model, AutoModel)
    assert resolved.is_sized_by_data
    assert resolved.with_chosen_model().plan.model == "auto"
    surveyed = resolved.with_data(data.survey(resolved.data, plan.data_options))
    assert surveyed.model is CATALOGUE["tcn"]
    assert not surveyed.is_sized_by_data
    assert surveyed.with_chosen_model().plan == plan.replace(model="tcn")


def test_a_table_of_two_kinds_of_targets_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "pair.npz"
    np.savez(path, a=np.zeros((40, 3), np.float32), b=np.zeros((40, 2), np.float32), y=np.arange(40) % 4)
    plan = Plan(data=str(path))
    resolved = resolve(plan)
    resolved = resolved.with_data(data.survey(resolved.data, plan.data_options))
    with pytest.raises(PlanError, match="several inputs: use a model of your own"):
        resolved.check()


def test_what_is_unknown_before_reading_is_not_an_error() -> None:
    entry = replace(data.find("digits"), spec=None, shape=(64,), kind="tokens", task="sequence", classes=0)
    described = describe_entry(entry, "auto")
    assert described is not None
    assert described.is_size_unknown is True
    text = replace(described, inputs=ArraySpec((64,), "int32"))
    assert CATALOGUE["gpt"].mismatch(text) == ""
    assert "needs the vocabulary" in CATALOGUE["gpt"].mismatch(replace(text, is_read=True))


def test_images_with_imagenet_weights_get_an_application() -> None:
    photos, plan = of(ArraySpec((96, 96, 3), "uint8")), Plan(initial_weights="imagenet")

    assert default_model(photos, pretrained=True).name == "MobileNetV2"
    assert default_model(of(ArraySpec((13,), "float32")), pretrained=True).name == "tabular"
    assert "at least 32x32; the data has 8x8x1" in str(resolve(plan).errors["model"])
    assert resolve(plan.replace(data="cifar10")).errors == {}
