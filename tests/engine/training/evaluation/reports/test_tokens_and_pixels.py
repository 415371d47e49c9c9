"""Reports of sequences, language models and segmentations, compared with NumPy's figures."""

from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import pytest
import tensorflow as tf

from accel_engine.data.structure import Structure
from accel_engine.run.diagnostics import SegmentationReport, SequenceReport
from accel_engine.run.diagnostics.views import Image, Mask, Tokens
from accel_engine.training.core.task import Task
from accel_engine.training.evaluation.reports import sequence
from accel_engine.training.evaluation.reports.sequence import LENGTH, TEMPERATURE, generate

from .measuring import dataset, reports
from .test_classification import confusion, softmax


@pytest.mark.parametrize("xla", [False, True])
@pytest.mark.parametrize("form", ["sparse", "column", "one-hot", "logits"])
def test_segmentation(numbers: np.random.Generator, form: str, xla: bool) -> None:
    masks = numbers.integers(0, 2, (6, 10, 12)).astype(np.uint8)  # the third class is absent
    masks[0, 0] = 255  # no class
    logits = numbers.normal(size=(6, 10, 12, 3)).astype(np.float32)
    chances = softmax(logits)
    targets = {"column": masks[..., np.newaxis], "one-hot": np.eye(256, dtype=np.float32)[masks][..., :3]}.get(
        form, masks
    )
    if form == "one-hot":
        masks[0, 0] = 0  # all zeros
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=form == "logits", ignore_class=255)
    images = numbers.integers(0, 256, (6, 10, 12, 3)).astype(np.uint8)
    data = dataset(images, targets, kind="images", class_names=("sky", "road", "tree"))

    (report,) = reports(
        "segmentation",
        data,
        logits if form == "logits" else chances,
        "categorical_crossentropy" if form == "one-hot" else loss,
        xla=xla,
    )

    assert isinstance(report, SegmentationReport)
    known = masks < 3
    np.testing.assert_array_equal(report.counts, confusion(masks[known], chances.argmax(-1)[known], 3))
    assert report.ignored == (~known).sum()
    assert len(report.worst) == 6
    worst = report.worst[0]
    assert isinstance(worst.input, Image)
    assert isinstance(worst.target, Mask)
    assert isinstance(worst.output, Mask)
    np.testing.assert_array_equal(worst.target.classes, masks[worst.row])
    np.testing.assert_array_equal(worst.output.classes, chances[worst.row].argmax(-1))


def test_segmentation_of_two_classes_by_one_unit(numbers: np.random.Generator) -> None:
    masks = numbers.integers(0, 2, (3, 100, 200)).astype(np.int32)
    outputs = numbers.random((3, 100, 200, 1)).astype(np.float32)
    data = dataset(np.zeros((3, 100, 200, 3), np.uint8), masks, kind="images")
    (report,) = reports("segmentation", data, outputs, "binary_crossentropy", encoded=masks[..., np.newaxis])
    assert isinstance(report, SegmentationReport)
    np.testing.assert_array_equal(report.counts, confusion(masks.ravel(), (outputs > 0.5).astype(int).ravel(), 2))
    target = report.worst[0].target
    assert isinstance(target, Mask)
    assert target.classes.shape == (32, 64)


def test_segmentation_with_nan_outputs(numbers: np.random.Generator) -> None:
    masks = np.ones((2, 4, 4), np.int32)
    outputs = np.full((2, 4, 4, 3), np.nan, np.float32)
    outputs[1] = np.eye(3, dtype=np.float32)[1]
    data = dataset(np.zeros((2, 4, 4, 3), np.uint8), masks, kind="images")
    (report,) = reports("segmentation", data, outputs, "sparse_categorical_crossentropy")
    assert isinstance(report, SegmentationReport)
    assert report.counts is not None
    assert report.counts.sum() == 32
    assert [each.row for each in report.worst] == [0, 1]


TAGS = ("other", "person", "place")


@pytest.mark.parametrize("xla", [False, True])
def test_a_label_for_each_token_with_weights(numbers: np.random.Generator, xla: bool) -> None:
    tokens = numbers.integers(1, 30, (7, 12)).astype(np.int32)
    labels = numbers.integers(0, 3, (7, 12)).astype(np.int32)
    weights = (np.arange(12) < numbers.integers(1, 13, (7, 1))).astype(np.float32)
    chances = softmax(numbers.normal(size=(7, 12, 3)).astype(np.float32))
    data = dataset(tokens, labels, weights, kind="tokens", class_names=TAGS)

    (report,) = reports("sequence", data, chances, "sparse_categorical_crossentropy", xla=xla)

    assert isinstance(report, SequenceReport)
    counts = weights > 0
    said, nats = chances.argmax(-1), -np.log(np.take_along_axis(chances, labels[..., np.newaxis], -1)[..., 0])
    assert report.tokens == counts.sum()
    assert report.accuracy == pytest.approx((said == labels)[counts].mean())
    assert report.perplexity == pytest.approx(np.exp(nats[counts].mean()), rel=1e-5)
    np.testing.assert_array_equal(report.counts, confusion(labels[counts], said[counts], 3))
    losses = (nats * counts).sum(1) / counts.sum(1)
    assert [each.row for each in report.worst] == np.argsort(-losses).tolist()
    worst = report.worst[0]
    length = counts[worst.row].sum()
    assert isinstance(worst.output, Tokens)
    assert isinstance(worst.target, Tokens)
    assert worst.target.tokens == tuple(TAGS[label] for label in labels[worst.row][:length])
    assert worst.target.length == worst.output.length == length
    assert worst.output.tokens == tuple(TAGS[label] for label in said[worst.row][:length])
    np.testing.assert_allclose(worst.output.losses, nats[worst.row][:length], rtol=1e-4)
    assert (report.generated, report.random) == ("", ())


def test_masked_tokens_do_not_count() -> None:
    tokens = np.array([[4, 2, 0, 0], [3, 3, 3, 0]], np.int32)
    labels = np.array([[1, 1, 2, 2], [0, 1, 1, 2]], np.int32)
    model = keras.Sequential(
        [
            keras.Input((4,), dtype="int32"),
            keras.layers.Embedding(5, 2, mask_zero=True),
            keras.layers.LSTM(3, return_sequences=True),
            keras.layers.Dense(3, activation="softmax"),
        ]
    )
    data = dataset(tokens, labels, kind="tokens", class_names=TAGS)
    from accel_engine.data.structure import Batch
    from accel_engine.training.evaluation.reports.choice import report_for

    report = report_for(Task("sequence"), data, tf.TensorSpec((None, 4, 3)), "sparse_categorical_crossentropy")

    @tf.function
    def measure(tokens: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return report.measure(Batch(tokens, labels), model(tokens), tf.ones(2))

    values, totals = measure(tf.constant(tokens), tf.constant(labels))
    np.testing.assert_array_equal(values[:, 1], [2, 3])
    assert totals.numpy().sum() == 5


def test_a_language_model_writes_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence, "SECONDS", 600.0)
    vocabulary = tuple("abc ")
    order = {0: 1, 1: 2, 2: 3, 3: 0}  # abc abc ...
    inputs = np.array([[0, 1, 2, 3, 0, 1], [1, 2, 3, 0, 1, 2]], np.int32)
    targets = np.vectorize(order.get)(inputs).astype(np.int32)

    def model(tokens: Structure) -> Structure:
        tokens = np.asarray(tokens)
        assert tokens.shape == (1, 6)
        assert tokens.dtype == np.int32
        # A fifth of the probability is for no token, as the model has more units than tokens.
        return np.eye(5, dtype=np.float32)[np.vectorize(order.get)(tokens)] * 0.8 + np.eye(5, dtype=np.float32)[4] * 0.2

    data = dataset(inputs, targets, kind="tokens", vocabulary=vocabulary)
    outputs = np.eye(5, dtype=np.float32)[targets]
    (report,) = reports("sequence", data, outputs, "sparse_categorical_crossentropy", predict=model)

    assert isinstance(report, SequenceReport)
    assert (report.tokens, report.accuracy, report.counts) == (12, 1.0, None)
    assert report.perplexity == pytest.approx(1.0, abs=1e-5)
    text = report.prompt + report.generated
    assert len(report.generated) == 300
    assert text in "abc " * 100
    assert isinstance(report.worst[0].input, Tokens)
    target = report.worst[0].target
    assert isinstance(target, Tokens)
    assert target.tokens == tuple(vocabulary[token] for token in targets[report.worst[0].row])


def test_a_diverged_language_model_writes_nothing() -> None:
    inputs = np.ones((1, 5), np.int32)
    outputs = np.full((1, 5, 3), np.nan, np.float32)
    data = dataset(inputs, inputs, kind="tokens", vocabulary=("a", "b", "c"))
    (report,) = reports("sequence", data, outputs, "sparse_categorical_crossentropy", predict=lambda tokens: outputs)
    assert isinstance(report, SequenceReport)
    assert report.generated == ""
    assert np.isnan(report.worst[0].loss)


def test_tokens_are_drawn_by_their_probability() -> None:
    chances = np.array([0.5, 0.3, 0.2, 0.0])
    sharper = chances ** (1 / TEMPERATURE)
    generator = np.random.default_rng(0)
    expected = [int(generator.choice(4, p=sharper / sharper.sum())) for _ in range(LENGTH)]

    assert generate(lambda *_: chances, [1, 2], 8) == expected


@pytest.mark.parametrize("any_length", [False, True])
def test_a_model_is_given_the_last_tokens(monkeypatch: pytest.MonkeyPatch, any_length: bool) -> None:
    monkeypatch.setattr(sequence, "LENGTH", 4)
    given: list[tuple[list[int], int]] = []

    def after(tokens: npt.NDArray[Any], last: int) -> npt.NDArray[np.float64]:
        given.append((tokens.tolist(), last))
        return np.eye(9)[tokens[last] + 1]

    assert generate(after, [1, 2], 4, any_length=any_length) == [3, 4, 5, 6]
    padded = [([1, 2], 1), ([1, 2, 3], 2)] if any_length else [([1, 2, 0, 0], 1), ([1, 2, 3, 0], 2)]
    assert given == [*padded, ([1, 2, 3, 4], 3), ([2, 3, 4, 5], 3)]


def test_nothing_is_written_after_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([10.0, 10.0, 11.9, 12.0])
    monkeypatch.setattr(sequence, "time", SimpleNamespace(monotonic=lambda: next(times)))

    assert generate(lambda *_: np.array([1.0]), [0], 4) == [0, 0]
