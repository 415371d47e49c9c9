"""What a run learns, found from its model's loss and outputs and from the data."""

import re
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine.data.data_options import TASKS
from accel_engine.data.dataset import Dataset, Split
from accel_engine.errors import ModelError, PlanError
from accel_engine.keras_support.losses import loss_name
from accel_engine.plan import Plan
from accel_engine.training.core.recipe.loss import choose_loss
from accel_engine.training.core.task import (
    COLUMN,
    INPUTS,
    ONE_HOT,
    SEVERAL_OUTPUTS,
    SPARSE,
    UNCHANGED,
    Task,
    check_outputs,
    custom_task,
    find_task,
    probabilities_of,
)

LOSSES = keras.losses


def own(y_true: Any, y_pred: Any) -> Any:
    return tf.reduce_mean((tf.cast(y_true, y_pred.dtype) - y_pred[:, 0]) ** 2)


class Own(keras.losses.Loss):
    def call(self, y_true: Any, y_pred: Any) -> Any:
        return own(y_true, y_pred)


def named(value: Any) -> str:
    """A name for a test that is the same in every process."""
    return re.sub(r" object at 0x\w+| at 0x\w+|0x\w+", "", str(value))


def model_of(loss: Any, metrics: Any = None) -> keras.Model:
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", loss, metrics=metrics)
    return model


def output(*shape: int | None) -> keras.KerasTensor:
    """The spec of an output, with the batch before its shape."""
    return keras.KerasTensor((None, *shape))


def data_of(targets: Any, inputs: Any = None, **known: Any) -> Dataset:
    """Two examples; targets by shape and type, such as ``((3,), "float32")``."""

    def array(spec: Any) -> Any:
        if isinstance(spec, dict):
            return {name: array(each) for name, each in spec.items()}
        return None if spec is None else np.zeros((2, *spec[0]), spec[1])

    return Dataset("made", Split(array(inputs or ((6,), "float32")), array(targets)), **known)


def labels(classes: int, **known: Any) -> Dataset:
    """Class indices."""
    return data_of(((), "int32"), class_names=tuple(map(str, range(classes))), task="classification", **known)


def found(loss: Any, outputs: Any, dataset: Dataset, chosen: str = "auto") -> Task:
    return find_task(model_of(loss), outputs, dataset, chosen)


PHOTO, TOKENS = ((8, 8, 3), "float32"), ((7,), "int32")


@pytest.mark.parametrize(
    ("loss", "outputs", "dataset", "task"),
    [
        ("sparse_categorical_crossentropy", output(3), labels(3), "classification"),
        ("categorical_crossentropy", output(3), labels(3), "classification"),
        ("categorical_crossentropy", output(3), data_of(((3,), "float32")), "classification"),
        ("binary_crossentropy", output(1), labels(2), "classification"),
        ("binary_crossentropy", output(1), data_of(((1,), "float32")), "classification"),
        ("hinge", output(1), data_of(((), "float32")), "classification"),
        (LOSSES.BinaryFocalCrossentropy(), output(4), data_of(((4,), "float32")), "multi-label"),
        ("binary_crossentropy", output(4), data_of(((4,), "float32"), task="multi-label"), "multi-label"),
        ("mse", output(1), data_of(((), "float32")), "regression"),
        ("huber", output(2), data_of(((2,), "float32")), "regression"),
        (LOSSES.poisson, output(5, 2), data_of(((5, 2), "float32")), "regression"),
        (["mae"], output(1), data_of(((), "float32")), "regression"),
        ({"size": "mae"}, output(1), data_of({"size": ((), "float32")}), "regression"),
        ("sparse_categorical_crossentropy", output(7, 20), data_of(TOKENS, TOKENS), "sequence"),
        ("categorical_crossentropy", output(7, 20), data_of(((7, 20), "float32"), TOKENS), "sequence"),
        ("sparse_categorical_crossentropy", output(8, 8, 4), data_of(((8, 8), "int32"), PHOTO), "segmentation"),
        ("mse", output(8, 8, 3), data_of(PHOTO, PHOTO, kind="images"), "reconstruction"),
        ("mae", output(16, 16, 3), data_of(((16, 16, 3), "float32"), PHOTO, kind="images"), "reconstruction"),
        ("mse", output(8, 8, 3), data_of(None, PHOTO, kind="images"), "reconstruction"),
        ("binary_crossentropy", output(8, 8, 3), data_of(PHOTO, PHOTO, kind="images"), "reconstruction"),
        ("mse", output(6), data_of(None), "reconstruction"),
        (None, output(3), labels(3), "custom"),
        (own, output(3), labels(3), "classification"),
        (own, output(1), labels(3), "custom"),
        (own, output(2), data_of(((2,), "float32"), task="regression"), "regression"),
        (own, output(2), data_of(((2,), "float32")), "custom"),
        (own, output(4), data_of(None), "custom"),
        (
            {"size": "mse", "sign": "binary_crossentropy"},
            {"size": output(1), "sign": output(1)},
            data_of({"size": ((1,), "float32"), "sign": ((1,), "float32")}),
            SEVERAL_OUTPUTS,
        ),
        ("mse", [output(1), output(1)], data_of(((1,), "float32")), SEVERAL_OUTPUTS),
        (LOSSES.CategoricalGeneralizedCrossEntropy(), output(3), data_of(((), "int32")), "classification"),
        # Integers that are no classes of the outputs, whatever they look like.
        (LOSSES.CTC(), output(20, 5), data_of(((6,), "int32"), class_names=tuple("abcde"), task="sequence"), "custom"),
        (LOSSES.Circle(), output(16), labels(10), "custom"),
        ("poisson", output(1), labels(8), "regression"),
        (LOSSES.Poisson(name="counts"), output(8), labels(8), "regression"),
    ],
)
def test_the_task_follows_from_loss_outputs_and_targets(loss: Any, outputs: Any, dataset: Dataset, task: str) -> None:
    assert found(loss, outputs, dataset).name == task


@pytest.mark.parametrize("task", [each for each in TASKS if each not in ("auto", "custom", "reconstruction")])
def test_a_chosen_task_is_used(task: str) -> None:
    assert found("mse", output(6), data_of(((6,), "float32")), task).name == task


def test_a_chosen_custom_task_leaves_everything_to_the_model() -> None:
    assert found("sparse_categorical_crossentropy", output(3), labels(3), "custom") == Task("custom")


def test_targets_of_the_outputs_shape_are_what_is_reconstructed() -> None:
    assert found("mse", output(6), data_of(((6,), "float32")), "reconstruction") == Task("reconstruction")
    inputs = found("mse", output(6), data_of(((2,), "float32")), "reconstruction")
    assert inputs.encoding == INPUTS
    assert "the data's targets are not used" in inputs.note
    assert found("mse", output(6), data_of(None)) == Task("reconstruction", INPUTS)


def test_an_autoencoder_is_not_trained_on_the_datas_labels() -> None:
    task = found("mse", output(8, 8, 3), labels(3, inputs=PHOTO, kind="images"))
    assert (task.name, task.encoding) == ("reconstruction", INPUTS)
    assert "not used" in task.note


def test_a_loss_without_targets_is_refused() -> None:
    with pytest.raises(PlanError, match="the data has no targets, which the model's loss needs; use reconstruction"):
        found("sparse_categorical_crossentropy", output(3), data_of(None))


@pytest.mark.parametrize(
    ("loss", "encoding"),
    [
        ("sparse_categorical_crossentropy", UNCHANGED),
        (LOSSES.SparseCategoricalCrossentropy(), UNCHANGED),
        (LOSSES.sparse_categorical_crossentropy, UNCHANGED),
        (["sparse_categorical_crossentropy"], UNCHANGED),
        ({"out": LOSSES.SparseCategoricalCrossentropy()}, UNCHANGED),
        ("categorical_crossentropy", ONE_HOT),
        (LOSSES.CategoricalFocalCrossentropy(), ONE_HOT),
        ({"out": LOSSES.CategoricalCrossentropy()}, ONE_HOT),
        (LOSSES.categorical_hinge, ONE_HOT),
        (LOSSES.SparseCategoricalCrossentropy(name="mine"), UNCHANGED),
        ("SparseCategoricalCrossentropy", UNCHANGED),
        (LOSSES.CategoricalGeneralizedCrossEntropy(), UNCHANGED),
        (LOSSES.CategoricalCrossentropy(name="sparse_pixels"), ONE_HOT),
        (own, UNCHANGED),
        (Own(), UNCHANGED),
    ],
    ids=named,
)
def test_class_indices_are_encoded_as_the_loss_expects(loss: Any, encoding: str) -> None:
    task = found(loss, output(3), labels(3))

    assert (task.name, task.encoding) == ("classification", encoding)


@pytest.mark.parametrize("loss", [LOSSES.CTC(), LOSSES.Circle(), LOSSES.Poisson()], ids=named)
def test_a_loss_gets_integers_as_fit_passes_them(loss: Any) -> None:
    for task in (found(loss, output(12), labels(8)), custom_task(model_of(loss), output(12), labels(8))):
        given = tf.constant([3, 7])
        assert task.encode(given, None) is given
        assert task.metrics(model_of(loss)) == ()


def test_one_hot_labels_are_as_wide_as_the_output() -> None:
    task = found("categorical_crossentropy", output(5), labels(3))

    assert task.encode(tf.constant([2]), None).numpy().tolist() == [[0, 0, 1, 0, 0]]
    assert task.encode(tf.constant([[2], [0]]), None).shape == (2, 5)


def test_one_hot_vectors_become_indices_for_a_sparse_loss() -> None:
    dataset = data_of(((3,), "float32"), class_names=("a", "b", "c"), task="classification")
    task = found("sparse_categorical_crossentropy", output(3), dataset)

    assert task.encoding == SPARSE
    assert task.encode(tf.constant([[0.0, 0, 1], [1, 0, 0]]), None).numpy().tolist() == [2, 0]
    assert task.note == "labels are given to sparse_categorical_crossentropy as class indices"


@pytest.mark.parametrize("targets", [((), "int32"), ((1,), "float32"), ((3,), "float32"), ((5, 2), "uint8"), None])
def test_other_targets_are_given_unchanged(targets: Any) -> None:
    task = found(own, output(4), data_of(targets))
    values = {"any": object()}

    assert task.encoding == UNCHANGED
    assert task.encode(values, None) is values


@pytest.mark.parametrize("loss", ["mse", "mae", LOSSES.Huber()], ids=named)
def test_integer_targets_of_a_regression_are_not_labels(loss: Any) -> None:
    assert found(loss, output(1), data_of(((), "int32"))) == Task("regression")


@pytest.mark.parametrize("loss", ["binary_crossentropy", own, ["binary_crossentropy"]], ids=named)
def test_one_output_for_two_classes_is_binary(loss: Any) -> None:
    dataset = labels(2)
    task = find_task(model_of(loss), output(1), dataset, "classification")

    assert (task.binary, task.classes, task.encoding) == (True, 2, COLUMN)
    assert task.encode(tf.constant([1, 0]), None).numpy().tolist() == [[1], [0]]
    check_outputs(task, output(1), dataset, "mine")


@pytest.mark.parametrize(
    ("loss", "logits"),
    [
        ("binary_crossentropy", False),
        (LOSSES.BinaryCrossentropy(from_logits=True), True),
        (LOSSES.BinaryCrossentropy(), False),
        ("hinge", True),
        (LOSSES.SquaredHinge(name="margin"), True),
    ],
    ids=named,
)
def test_the_threshold_of_accuracy_depends_on_logits(loss: Any, logits: bool) -> None:
    task = found(loss, output(1), labels(2))
    (accuracy,) = task.metrics(model_of(loss))

    assert task.logits == logits
    middle = 0.0 if logits else 0.5
    accuracy.update_state([[0], [0], [1]], [[middle - 0.1], [middle + 0.1], [middle + 0.1]])
    assert float(accuracy.result()) == pytest.approx(2 / 3)


def test_a_sigmoid_gives_probabilities_whatever_the_loss() -> None:
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, "sigmoid")])
    model.compile("sgd", "hinge")

    assert not find_task(model, output(1), labels(2), "auto").logits


@pytest.mark.parametrize(
    ("loss", "outputs", "dataset", "kind"),
    [
        ("sparse_categorical_crossentropy", output(3), labels(3), keras.metrics.SparseCategoricalAccuracy),
        ("categorical_crossentropy", output(3), labels(3), keras.metrics.CategoricalAccuracy),
        ("sparse_categorical_crossentropy", output(7, 20), data_of(TOKENS), keras.metrics.SparseCategoricalAccuracy),
        ("categorical_crossentropy", output(7, 20), data_of(((7, 20), "float32")), keras.metrics.CategoricalAccuracy),
        ("binary_crossentropy", output(4), data_of(((4,), "float32")), keras.metrics.BinaryAccuracy),
        ("mse", output(1), data_of(((), "float32")), None),
        (None, output(1), data_of(None), None),
    ],
)
def test_accuracy_is_measured_where_it_is_defined(loss: Any, outputs: Any, dataset: Dataset, kind: Any) -> None:
    model = model_of(loss)

    measured = find_task(model, outputs, dataset, "auto").metrics(model)

    assert len(measured) == (kind is not None)
    assert all(isinstance(metric, kind) for metric in measured)


def test_a_models_own_accuracy_is_not_measured_twice() -> None:
    model = model_of("sparse_categorical_crossentropy", ["accuracy"])
    task = find_task(model, output(3), labels(3), "auto")
    model.compute_metrics(None, tf.constant([0]), tf.constant([[0.1, 0.2, 0.7]]), None)  # Keras makes them now

    assert task.metrics(model) == ()


@pytest.mark.parametrize(
    ("outputs", "dataset", "chosen", "loss"),
    [
        (output(3), labels(3), "auto", LOSSES.SparseCategoricalCrossentropy),
        (output(1), labels(2), "auto", LOSSES.BinaryCrossentropy),
        (output(3), data_of(((3,), "float32"), task="classification"), "auto", LOSSES.CategoricalCrossentropy),
        (output(4), data_of(((4,), "float32"), task="multi-label"), "auto", LOSSES.BinaryCrossentropy),
        (output(1), data_of(((), "float32"), task="regression"), "auto", LOSSES.MeanSquaredError),
        (output(1), data_of(((), "float32")), "regression", LOSSES.MeanSquaredError),
        (output(7, 20), data_of(TOKENS, task="sequence"), "auto", LOSSES.SparseCategoricalCrossentropy),
        (
            output(8, 8, 4),
            data_of(((8, 8), "int32"), task="segmentation"),
            "auto",
            LOSSES.SparseCategoricalCrossentropy,
        ),
        (
            output(8, 8, 4),
            data_of(((8, 8, 1), "int32"), task="segmentation"),
            "auto",
            LOSSES.SparseCategoricalCrossentropy,
        ),
        (output(8, 8, 1), data_of(((8, 8, 1), "float32"), task="segmentation"), "auto", LOSSES.BinaryCrossentropy),
        (output(6), data_of(None), "auto", LOSSES.MeanSquaredError),
        (output(6), labels(3), "reconstruction", LOSSES.MeanSquaredError),
        (output(3), labels(3), "classification", LOSSES.SparseCategoricalCrossentropy),
    ],
)
def test_a_model_that_is_not_compiled_gets_the_loss_of_its_task(
    outputs: Any, dataset: Dataset, chosen: str, loss: Any
) -> None:
    assert type(choose_loss(outputs, dataset, Plan(task=chosen), logits=False)) is loss


@pytest.mark.parametrize("logits", [True, False])
@pytest.mark.parametrize("units", [1, 2])
def test_the_chosen_loss_expects_what_the_model_outputs(units: int, logits: bool) -> None:
    loss = choose_loss(output(units), labels(2), Plan(), logits=logits)

    assert find_task(model_of(loss), output(units), labels(2), "auto").logits == logits


@pytest.mark.parametrize(
    ("outputs", "dataset", "chosen", "words"),
    [
        (
            [output(1), output(1)],
            labels(2),
            "auto",
            "has 2 outputs and is not compiled: compile it with a loss for each",
        ),
        (output(3), data_of(((3,), "float32")), "auto", "the data does not tell the task: compile it, or set --task"),
        (output(3), data_of(None), "auto", "compile it, or set --task"),
        (output(3), data_of(None), "custom", "compile it, or set --task"),
    ],
)
def test_no_loss_is_guessed(outputs: Any, dataset: Dataset, chosen: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        choose_loss(outputs, dataset, Plan(task=chosen), logits=False)


@pytest.mark.parametrize(
    ("outputs", "words"),
    [(output(2), "outputs 2 values per"), (output(1), "1 value per"), (output(4, 3), "something other than a vector")],
)
def test_too_few_outputs_for_the_classes_are_refused(outputs: Any, words: str) -> None:
    with pytest.raises(ModelError, match=f"model mine .*{words}.*; the data has 3 classes"):
        check_outputs(Task("classification"), outputs, labels(3), "mine")


@pytest.mark.parametrize(
    ("task", "outputs", "probabilities"),
    [
        (Task("classification", logits=True), [[0.0, np.log(3.0)]], [[0.25, 0.75]]),
        (Task("classification"), [[0.1, 0.9]], [[0.1, 0.9]]),
        (Task("classification"), [[0.0, np.log(3.0)]], [[0.25, 0.75]]),  # a custom loss of logits
        (Task("classification", binary=True), [[0.3]], [[0.7, 0.3]]),
        (Task("classification", binary=True, logits=True), [[0.0]], [[0.5, 0.5]]),
        (Task("multi-label"), [[0.3, 0.9]], [[0.3, 0.9]]),
        (Task("multi-label", logits=True), [[0.0, np.log(3.0)]], [[0.5, 0.75]]),
        (Task("sequence", logits=True), [[[0.0, np.log(3.0)]]], [[[0.25, 0.75]]]),
    ],
)
def test_outputs_become_probabilities(task: Task, outputs: Any, probabilities: Any) -> None:
    np.testing.assert_allclose(probabilities_of(tf.constant(outputs, tf.float16), task), probabilities, atol=1e-3)


def test_a_loss_in_a_list_has_its_own_name() -> None:
    assert loss_name(["mse"]) == "mse"
