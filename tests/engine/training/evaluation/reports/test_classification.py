"""Reports of classifiers, with one and with many labels for each example, compared with NumPy's figures."""

import keras
import numpy as np
import numpy.typing as npt
import pytest

from accel_engine.run.diagnostics import ClassificationReport, CustomReport, MultiLabelReport
from accel_engine.run.diagnostics.views import Image, Labels, Row, Text
from accel_engine.training.core.task import ONE_HOT, Task
from accel_engine.training.evaluation.reports.measures import probabilities, scores

from .measuring import dataset, reports

NAMES = ("cat", "dog", "owl")


def softmax(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    powers = np.exp(values - values.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def confusion(labels: npt.NDArray[np.int32], predicted: npt.NDArray[np.int64], classes: int) -> npt.NDArray[np.int64]:
    counts = np.zeros((classes, classes), np.int64)
    np.add.at(counts, (labels, predicted), 1)
    return counts


@pytest.mark.parametrize("xla", [False, True])
@pytest.mark.parametrize("form", ["sparse", "column", "one-hot", "logits"])
def test_classes_of_any_form(numbers: np.random.Generator, form: str, xla: bool) -> None:
    labels = numbers.integers(0, 2, 22).astype(np.int32)  # no owl is in the data
    logits = numbers.normal(size=(22, 3)).astype(np.float32)
    chances = softmax(logits)
    images = numbers.integers(0, 256, (22, 8, 8, 1)).astype(np.uint8)
    targets = labels[:, np.newaxis] if form == "column" else labels
    data = dataset(images, targets, class_names=NAMES, kind="images")
    loss: keras.losses.Loss = keras.losses.SparseCategoricalCrossentropy(from_logits=form == "logits")
    encoded = None
    if form == "one-hot":
        loss, encoded = keras.losses.CategoricalCrossentropy(), np.eye(3, dtype=np.float32)[labels]

    (report,) = reports(
        Task("classification", ONE_HOT if form == "one-hot" else "unchanged", 3),
        data,
        logits if form == "logits" else chances,
        loss,
        encoded=encoded,
        scaled=images.astype(np.float32) / 255,
        xla=xla,
    )

    assert isinstance(report, ClassificationReport)
    assert (report.examples, report.names, report.scores, report.reason) == (22, NAMES, None, "")
    np.testing.assert_array_equal(report.counts, confusion(labels, chances.argmax(1), 3))
    true = chances[np.arange(22), labels]
    assert [sample.row for sample in report.worst] == np.argsort(true, kind="stable").tolist()
    for sample in report.worst:
        assert (sample.label, sample.predicted) == (labels[sample.row], chances[sample.row].argmax())
        assert sample.loss == pytest.approx(-np.log(true[sample.row]), abs=1e-5)
        assert sample.confidence == pytest.approx(chances[sample.row].max(), abs=1e-6)
        assert sample.true_class_probability == pytest.approx(true[sample.row], abs=1e-6)
        assert isinstance(sample.input, Image)
        np.testing.assert_array_equal(sample.input.pixels, images[sample.row])
    assert report.confidence is not None
    assert report.confidence.positives.sum() == (labels == chances.argmax(1)).sum()
    assert report.confidence.negatives.sum() == (labels != chances.argmax(1)).sum()


@pytest.mark.parametrize("logits", [False, True])
def test_a_single_unit_has_scores_of_two_classes(numbers: np.random.Generator, logits: bool) -> None:
    labels = numbers.integers(0, 2, 9).astype(np.int32)
    values = numbers.normal(size=(9, 1)).astype(np.float32)
    chances = 1 / (1 + np.exp(-values[:, 0]))
    table = numbers.normal(size=(9, 2)).astype(np.float32)
    data = dataset(table, labels, class_names=("no", "yes"), kind="table", feature_names=("age", "income"))

    (report,) = reports(
        Task("classification", binary=True, logits=logits),
        data,
        values if logits else chances[:, np.newaxis],
        keras.losses.BinaryCrossentropy(from_logits=logits),
        encoded=labels[:, np.newaxis].astype(np.float32),
    )

    assert isinstance(report, ClassificationReport)
    np.testing.assert_array_equal(report.counts, confusion(labels, (chances > 0.5).astype(int), 2))
    assert report.scores is not None
    for histogram, label in ((report.scores.positives, 1), (report.scores.negatives, 0)):
        expected = np.histogram(chances[labels == label], np.linspace(0, 1, 201))[0]
        np.testing.assert_array_equal(histogram[0], expected)
    worst = report.worst[0]
    assert worst.input == Row(("age", "income"), tuple(f"{value:.6g}" for value in table[worst.row]), 2)


def test_a_single_example_with_nan_outputs(numbers: np.random.Generator) -> None:
    data = dataset(np.array(["It was fine"]), np.array([1], np.int32), class_names=NAMES, kind="text")
    (report,) = reports("classification", data, np.full((1, 3), np.nan, np.float32), "sparse_categorical_crossentropy")
    assert isinstance(report, ClassificationReport)
    (sample,) = report.worst
    assert np.isnan(sample.loss)
    assert (sample.confidence, sample.true_class_probability) == (0.0, 0.0)
    assert sample.input == Text("It was fine", 11)
    assert report.counts is not None
    assert report.counts.sum() == 1
    assert report.confidence is not None
    assert report.confidence.positives.sum() + report.confidence.negatives.sum() == 0


@pytest.mark.parametrize(
    ("classes", "reason"), [(1000, ""), (1001, "no confusion matrix: 1,001 classes, of at most 1,000")]
)
def test_many_classes(numbers: np.random.Generator, classes: int, reason: str) -> None:
    labels = numbers.integers(0, classes, 30).astype(np.int32)
    chances = softmax(numbers.normal(size=(30, classes)).astype(np.float32))
    data = dataset(numbers.normal(size=(30, 4)).astype(np.float32), labels)
    (report,) = reports("classification", data, chances, "sparse_categorical_crossentropy")
    assert isinstance(report, ClassificationReport)
    assert report.reason == reason
    if reason:
        assert report.counts is None
    else:
        np.testing.assert_array_equal(report.counts, confusion(labels, chances.argmax(1), classes))
    assert report.names[:2] == ("0", "1")


def test_more_outputs_than_names_and_unknown_classes(numbers: np.random.Generator) -> None:
    labels = np.array([0, -1, 2, 1], np.int32)
    chances = np.eye(5, dtype=np.float32)[[4, 0, 2, 1]]
    data = dataset(np.zeros((4, 3), np.float32), labels, class_names=NAMES)
    (report,) = reports("classification", data, chances)
    assert isinstance(report, ClassificationReport)
    assert report.names == (*NAMES, "3", "4")
    np.testing.assert_array_equal(report.counts, confusion(labels[[0, 2, 3]], np.array([4, 2, 1]), 5))
    assert {sample.row: sample.label for sample in report.worst} == {0: 0, 1: None, 2: 2, 3: 1}


def test_labels_of_hinge_losses(numbers: np.random.Generator) -> None:
    targets = np.array([-1, 1, 1, -1], np.float32)
    data = dataset(np.zeros((4, 3), np.float32), targets, class_names=("no", "yes"))
    outputs = np.array([[-2.0], [3.0], [-0.5], [0.1]], np.float32)
    (report,) = reports(Task("classification", binary=True, logits=True), data, outputs, keras.losses.Hinge())
    assert isinstance(report, ClassificationReport)
    np.testing.assert_array_equal(report.counts, [[1, 1], [1, 1]])
    assert [(sample.row, sample.loss) for sample in report.worst] == [
        (2, pytest.approx(1.5)),
        (3, pytest.approx(1.1)),
        (0, 0.0),
        (1, 0.0),
    ]


@pytest.mark.parametrize("xla", [False, True])
def test_several_labels(numbers: np.random.Generator, xla: bool) -> None:
    true = (numbers.random((21, 60)) < 0.3).astype(np.float32)
    true[:, 5] = 0  # no example has it
    chances = numbers.random((21, 60)).astype(np.float32)
    data = dataset(np.zeros((21, 3), np.float32), true, class_names=tuple(map(str, range(60))))

    (report,) = reports("multi-label", data, chances, "binary_crossentropy", xla=xla)

    assert isinstance(report, MultiLabelReport)
    assert report.counts.shape == (60, 2, 2)
    for label in range(60):
        expected = confusion(true[:, label].astype(int), (chances[:, label] > 0.5).astype(int), 2)
        np.testing.assert_array_equal(report.counts[label], expected)
    assert report.scores.positives.shape == (50, 200)
    bins = np.linspace(0, 1, 201)
    np.testing.assert_array_equal(report.scores.positives[7], np.histogram(chances[true[:, 7] > 0, 7], bins)[0])
    np.testing.assert_array_equal(report.scores.negatives[7], np.histogram(chances[true[:, 7] == 0, 7], bins)[0])
    losses = -np.where(true > 0, np.log(chances), np.log(1 - chances)).mean(1)
    assert [each.row for each in report.worst] == np.argsort(-losses).tolist()
    worst = report.worst[0]
    assert worst.loss == pytest.approx(losses.max(), rel=1e-5)
    assert worst.target == Labels(tuple(np.flatnonzero(true[worst.row]).tolist()))
    order = np.argsort(-chances[worst.row])
    assert isinstance(worst.output, Labels)
    assert worst.output.labels == tuple(order[chances[worst.row][order] > 0.5].tolist())


def test_outputs_of_another_rank_are_custom(numbers: np.random.Generator) -> None:
    data = dataset(np.zeros((4, 3), np.float32), np.zeros(4, np.int32))
    (report,) = reports(
        "classification", data, np.zeros((4, 5, 2, 2), np.float32), lambda y, outputs: outputs[:, 0, 0, 0]
    )
    assert isinstance(report, CustomReport)
    assert report.reason == (
        "outputs of float32 5x2x2 cannot be compared with targets of int32 for the task classification"
    )


def test_outputs_above_1_are_no_probabilities() -> None:
    outputs = np.array([[0.25, 1.0], [0.25, 1.5], [-0.5, 0.5]], np.float32)
    sigmoid = 1 / (1 + np.exp(-outputs))

    np.testing.assert_allclose(scores(outputs, logits=False), [outputs[0], *sigmoid[1:]], rtol=1e-6)
    np.testing.assert_allclose(scores(outputs, logits=True), sigmoid, rtol=1e-6)
    np.testing.assert_allclose(
        probabilities(outputs, logits=False, binary=False), [outputs[0], *softmax(outputs)[1:]], rtol=1e-6
    )
