"""Reports of models with several outputs, of streams, and of outputs that cannot be interpreted."""

from collections.abc import Iterator

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.structure import ArraySpec, Batch, map_structure
from accel_engine.run.diagnostics import (
    ClassificationReport,
    CustomReport,
    MultiLabelReport,
    ReconstructionReport,
    RegressionReport,
    SegmentationReport,
    ValidationReport,
)
from accel_engine.run.diagnostics.views import Image, Parts, Row, Text
from accel_engine.training.core.task import SEVERAL_OUTPUTS, Task
from accel_engine.training.evaluation.reports.choice import output_task, report_for, unmeasured_report
from accel_engine.training.evaluation.reports.measures import loss_values, mean_of_examples

from .measuring import dataset, measured, reports
from .test_classification import softmax


def test_a_report_for_each_output(numbers: np.random.Generator) -> None:
    inputs = {
        "photo": numbers.integers(0, 256, (9, 6, 6, 3)).astype(np.uint8),
        "age": numbers.normal(size=9).astype(np.float32),
        "city": np.array(["Ulm", "Bonn", "Kiel"] * 3),
        "essay": np.array([f"{number} " * 30 for number in range(9)]),
    }
    targets = {
        "price": numbers.normal(size=(9, 1)).astype(np.float32),
        "kind": numbers.integers(0, 3, 9).astype(np.int32),
        "tags": (numbers.random((9, 4)) > 0.5).astype(np.float32),
    }
    outputs = {
        "kind": softmax(numbers.normal(size=(9, 3)).astype(np.float32)),
        "price": numbers.normal(size=(9, 1)).astype(np.float32),
        "tags": numbers.random((9, 4)).astype(np.float32),
    }
    losses = {"kind": "sparse_categorical_crossentropy", "price": "mse", "tags": keras.losses.BinaryCrossentropy()}
    data = dataset(inputs, targets, class_names=("a", "b", "c"))

    kind, price, tags = reports(SEVERAL_OUTPUTS, data, outputs, losses)

    assert isinstance(kind, ClassificationReport)
    assert isinstance(price, RegressionReport)
    assert isinstance(tags, MultiLabelReport)
    assert [each.output for each in (kind, price, tags)] == ["kind", "price", "tags"]
    assert kind.names == ("a", "b", "c")
    assert tags.names == ("0", "1", "2", "3")
    errors = ((outputs["price"] - targets["price"]) ** 2)[:, 0]
    assert [each.row for each in price.worst] == np.argsort(-errors).tolist()
    true = outputs["kind"][np.arange(9), targets["kind"]]
    assert [each.row for each in kind.worst] == np.argsort(true).tolist()
    worst = kind.worst[0]
    assert isinstance(worst.input, Parts)
    assert worst.input.names == ("", "essay", "photo")
    row, essay, photo = worst.input.views
    assert row == Row(("age", "city"), (f"{inputs['age'][worst.row]:.6g}", inputs["city"][worst.row]), 2)
    assert isinstance(essay, Text)
    assert isinstance(photo, Image)
    np.testing.assert_array_equal(photo.pixels, inputs["photo"][worst.row])


def test_each_of_several_outputs_has_the_names_of_its_own_target(numbers: np.random.Generator) -> None:
    targets = {
        "income": numbers.normal(size=(6, 1)).astype(np.float32),
        "label": np.array([0, 1, 2] * 2, np.int32),
        "paid": np.array([0, 1, 1] * 2, np.int32),
    }
    outputs = {
        "income": numbers.normal(size=(6, 1)).astype(np.float32),
        "label": softmax(numbers.normal(size=(6, 3)).astype(np.float32)),
        "paid": numbers.random((6, 1)).astype(np.float32),
    }
    losses = {"income": "mse", "label": "sparse_categorical_crossentropy", "paid": "binary_crossentropy"}
    classes = {"label": ("low", "mid", "high"), "paid": ("no", "yes")}
    data = dataset(np.zeros((6, 3)), targets, target_names=("income", "label", "paid"), target_classes=classes)

    income, label, paid = reports(SEVERAL_OUTPUTS, data, outputs, losses)

    assert isinstance(income, RegressionReport)
    assert isinstance(label, ClassificationReport)
    assert isinstance(paid, ClassificationReport)
    assert (income.names, label.names, paid.names) == (("income",), *classes.values())


def test_outputs_in_a_list_are_named(numbers: np.random.Generator) -> None:
    targets = (np.zeros((5, 1), np.float32), np.ones((5, 2), np.float32))
    outputs = [np.ones((5, 1), np.float32), np.ones((5, 2), np.float32)]
    first, second = reports(
        SEVERAL_OUTPUTS, dataset(np.zeros((5, 3)), targets), outputs, ["mse", "mae"], output_names=("left", "right")
    )
    assert isinstance(first, RegressionReport)
    assert isinstance(second, RegressionReport)
    assert (first.output, first.mean_mae, second.output, second.mean_mae) == ("left", 1.0, "right", 0.0)


class Stream:
    """Batches that cannot be read again."""

    spec = Batch(ArraySpec((3,), "float32"), ArraySpec((1,), "float32"))
    batches = None
    batch_size = 4

    def read(self, epoch: int, position: int) -> Iterator[Batch]:
        yield from ()


def test_a_stream_is_read_only_where_it_can_be(numbers: np.random.Generator) -> None:
    true = numbers.normal(size=(300, 1)).astype(np.float32)
    outputs = np.zeros((300, 1), np.float32)
    outputs[17] = np.nan
    inputs = np.zeros((300, 3), np.float32)
    report = report_for(Task("reconstruction"), Dataset("stream", Stream(), Stream()), tf.TensorSpec((None, 1)), "mse")
    values, totals = measured(report, Batch(inputs, true), outputs, 300)
    losses = np.nan_to_num(values[:, 0], nan=np.inf)
    readable = {*np.argsort(-losses, kind="stable")[: report.worst].tolist(), *range(report.first)}

    def read(rows: np.ndarray) -> tuple[Batch, np.ndarray]:
        assert set(rows.tolist()) <= readable
        return Batch(inputs[rows], true[rows]), outputs[rows]

    (item,) = report.build(values, totals, read)
    assert isinstance(item, ValidationReport)
    (found,) = item.outputs
    assert found.worst[0].row == 17
    assert len(found.worst) == 24
    assert [each.row for each in found.random] == list(range(8))


def test_the_worst_examples_of_several_outputs_of_a_stream(numbers: np.random.Generator) -> None:
    outputs = [numbers.normal(size=(500, 1)).astype(np.float32), 9 * numbers.normal(size=(500, 1)).astype(np.float32)]
    true = tuple(np.zeros_like(each) for each in outputs)
    stream = Stream()
    stream.spec = Batch(stream.spec.inputs, (stream.spec.targets,) * 2)
    data = Dataset("stream", stream, stream)
    specs = [tf.TensorSpec((None, 1))] * 2
    report = report_for(Task(SEVERAL_OUTPUTS), data, specs, "mse", output_names=("a", "b"))
    batch = Batch(np.zeros((500, 3), np.float32), true)
    values, totals = measured(report, batch, outputs, 500)
    np.testing.assert_allclose(values[:, 0], (outputs[0] ** 2 + outputs[1] ** 2)[:, 0], rtol=1e-5)
    readable = set(np.argsort(-values[:, 0], kind="stable")[: report.worst].tolist())

    def read(rows: np.ndarray) -> tuple[Batch, list[np.ndarray]]:
        assert set(rows.tolist()) <= readable
        return map_structure(lambda array: array[rows], (batch, outputs))

    (item,) = report.build(values, totals, read)
    assert isinstance(item, ValidationReport)
    for found in item.outputs:
        losses = [each.loss for each in found.worst]
        assert len(losses) == 64
        assert losses == sorted(losses, reverse=True)


def test_models_with_their_own_loss(numbers: np.random.Generator) -> None:
    data = dataset(np.zeros((3, 2), np.float32))
    (report,) = reports("custom", data, {"code": np.zeros((3, 4), np.float32)})
    assert isinstance(report, CustomReport)
    assert report.shapes == (("code", "float32 4"),)
    assert report.worst == ()
    assert "computes its own loss" in report.reason
    (step,) = unmeasured_report(3, None).outputs
    assert isinstance(step, CustomReport)
    assert (step.examples, step.shapes) == (3, ())
    assert "train_step" in step.reason


def test_a_loss_of_pairs_shows_the_worst_pairs(numbers: np.random.Generator) -> None:
    def contrastive(same: tf.Tensor, distance: tf.Tensor) -> tf.Tensor:
        return same * distance**2 + (1 - same) * tf.maximum(1 - distance, 0.0) ** 2  # Keras gives them one shape

    pairs = tuple(numbers.integers(0, 256, (4, 8, 8, 1)).astype(np.uint8) for _ in range(2))
    distances = np.array([[0.1], [0.9], [0.5], [2.0]], np.float32)
    data = dataset(pairs, np.array([0, 0, 1, 1], np.int32), kind="images")
    (report,) = reports("custom", data, distances, contrastive)
    assert isinstance(report, CustomReport)
    assert [each.row for each in report.worst] == [3, 0, 2, 1]
    assert report.worst[0].loss == pytest.approx(4.0)
    assert isinstance(report.worst[0].input, Parts)
    assert report.worst[0].input.names == ("0", "1")


@pytest.mark.parametrize("loss", ["mean_squared_error", "binary_crossentropy", "mean_absolute_error"])
@pytest.mark.parametrize(("targets", "outputs"), [((5,), (5, 1)), ((5, 1), (5,)), ((5, 1), (5, 1)), ((5, 2), (5, 2))])
def test_losses_by_name_take_targets_of_the_shapes_that_fit_takes(
    numbers: np.random.Generator, loss: str, targets: tuple[int, ...], outputs: tuple[int, ...]
) -> None:
    true = numbers.integers(0, 2, targets).astype(np.int32)
    predicted = numbers.random(outputs).astype(np.float32)

    found = loss_values(loss, tf.constant(true), tf.constant(predicted))

    pairs = zip(true.reshape(5, -1), predicted.reshape(5, -1), strict=True)
    function = keras.losses.get(loss)
    expected = [float(function(tf.constant([each], tf.float32), tf.constant([other]))[0]) for each, other in pairs]
    assert found is not None
    np.testing.assert_allclose(mean_of_examples(found), expected, rtol=1e-5)


INTS, FLOATS = ArraySpec((), "int32"), ArraySpec((1,), "float32")


@pytest.mark.parametrize(
    ("loss", "shape", "target", "expected"),
    [
        ("sparse_categorical_crossentropy", (None, 3), INTS, "classification"),
        (keras.losses.CategoricalFocalCrossentropy(), (None, 3), FLOATS, "classification"),
        ("binary_crossentropy", (None, 1), INTS, "classification"),
        ("binary_crossentropy", (None, 4), FLOATS, "multi-label"),
        ("binary_crossentropy", (None, 8, 8, 1), INTS, "segmentation"),
        ("binary_crossentropy", (None, 8, 8, 1), FLOATS, "reconstruction"),
        ("sparse_categorical_crossentropy", (None, 8, 5), INTS, "sequence"),
        ("sparse_categorical_crossentropy", (None, 8, 8, 5), INTS, "segmentation"),
        ("mse", (None, 1), FLOATS, "regression"),
        ("mae", (None, 8, 8, 3), FLOATS, "reconstruction"),
        (None, (None, 1), FLOATS, "custom"),
        ("mse", (None, 1), None, "custom"),
    ],
)
def test_the_task_of_an_output(
    loss: object, shape: tuple[int | None, ...], target: ArraySpec | None, expected: str
) -> None:
    assert output_task(loss, shape, target, "images") == expected


def test_large_outputs_are_read_in_small_numbers() -> None:
    data = Dataset(
        "large", Split(np.zeros((1, 512, 512, 3), np.uint8), np.zeros((1, 512, 512), np.uint8)), kind="images"
    )
    report = report_for(
        Task("segmentation"), data, tf.TensorSpec((None, 512, 512, 150)), "sparse_categorical_crossentropy"
    )
    assert report.worst == 4


def test_outputs_of_any_size(numbers: np.random.Generator) -> None:
    images = numbers.random((5, 8, 6, 3)).astype(np.float32)
    data = dataset(images, images, kind="images")
    specs = tf.TensorSpec((None, None, None, 3))
    report = report_for(Task("regression"), data, specs, "mse")
    values, totals = measured(report, Batch(images, images), images, 5)
    (item,) = report.build(values, totals, lambda rows: (Batch(images[rows], images[rows]), images[rows]))
    assert isinstance(item, ValidationReport)
    assert isinstance(item.outputs[0], RegressionReport | ReconstructionReport)
    assert not isinstance(item.outputs[0], SegmentationReport)
