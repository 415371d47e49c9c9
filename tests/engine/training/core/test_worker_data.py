"""Reading examples on a worker, with coordinator and worker in one process."""

from concurrent.futures import Future
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tensorflow as tf

from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.structure import Batch, map_structure
from accel_engine.errors import DataError
from accel_engine.training.core.worker_data import WorkerDataFeed, WorkerDataSource, data_error
from accel_engine.training.model_analysis.flops import count_flops

X = np.arange(40, dtype=np.uint8).reshape(10, 2, 2)
Y = np.arange(10, dtype=np.int32)


class Lazy:
    """Examples that are read lazily."""

    shape, dtype, nbytes = X.shape, X.dtype, X.nbytes

    def take(self, indices: npt.NDArray[np.integer[Any]]) -> npt.NDArray[Any]:
        return X[indices]

    def __len__(self) -> int:
        return len(X)


def read_by(train: Split, validation: Split | None = None) -> "Future[Dataset]":
    future: Future[Dataset] = Future()
    future.set_result(Dataset("numbers", train, validation, class_names=tuple("0123456789")))
    return future


def batches(feed: WorkerDataFeed, order: npt.NDArray[np.int32]) -> list[Batch]:
    """The batches that a graph on the worker reads, step by step."""

    @tf.function
    def take(rows: tf.Tensor) -> Any:
        source = feed.open(rows)
        return [feed.examples(*feed.arguments(source, tf.constant(step))) for step in range(len(order))]

    return [map_structure(lambda values: values.numpy(), batch) for batch in take(tf.constant(order))]


@pytest.mark.parametrize(("x", "kind"), [(X, "resident"), (Lazy(), "streamed")])
def test_batches_are_the_rows_of_the_order(x: Any, kind: str) -> None:
    split = Split(x, Y)
    offer = WorkerDataSource(read_by(split), "worker 0")
    feed = WorkerDataFeed(split, "training")
    order = np.array([[[3, 1, 4]], [[1, 5, 9]]], np.int32)

    assert feed.kind == kind
    for batch, rows in zip(batches(feed, order), order[:, 0], strict=True):
        np.testing.assert_array_equal(batch.inputs, X[rows])
        np.testing.assert_array_equal(batch.targets, Y[rows])
        assert batch.weights is None
    del offer


def test_a_worker_reads_structures_of_arrays() -> None:
    words = np.array([f"w{row}" for row in range(10)])
    split = Split({"x": X, "words": words}, (Y, Y.astype(np.float32)), np.linspace(0, 1, 10, dtype=np.float32))
    offer = WorkerDataSource(read_by(split), "worker 0")

    (batch,) = batches(WorkerDataFeed(split, "training"), np.array([[[3, 1]]], np.int32))

    np.testing.assert_array_equal(batch.inputs["x"], X[[3, 1]])
    assert batch.inputs["words"].tolist() == [b"w3", b"w1"]
    np.testing.assert_array_equal(batch.targets[0], [3, 1])
    assert batch.targets[1].dtype == np.float32
    np.testing.assert_array_equal(batch.weights, split.weights[[3, 1]])
    del offer


def test_training_and_validation_data_are_distinguished() -> None:
    train, validation = Split(Lazy(), Y), Split(X + 100, Y)
    offer = WorkerDataSource(read_by(train, validation), "worker 0")
    order = np.array([[[3]]], np.int32)

    for use, split, expected in (("training", train, X), ("validation", validation, X + 100)):
        (batch,) = batches(WorkerDataFeed(split, use), order)
        np.testing.assert_array_equal(batch.inputs, expected[[3]])
    del offer


@pytest.mark.parametrize("other", [Split(X[:9], Y[:9]), Split(X, Y[::-1].copy()), Split(X.astype(np.float32), Y)])
def test_data_that_differ_from_the_coordinator_s_are_rejected(other: Split) -> None:
    offer = WorkerDataSource(read_by(other), "worker 1 (b:2)")

    with pytest.raises(tf.errors.OpError) as refused:
        batches(WorkerDataFeed(Split(X, Y), "training"), np.array([[[0]]], np.int32))

    assert str(data_error(refused.value)) == "worker 1 (b:2) has different data from the coordinator"
    del offer


def test_a_workers_data_error_contains_its_name() -> None:
    unread: Future[Dataset] = Future()
    unread.set_exception(DataError("mine.npz is not there"))
    offer = WorkerDataSource(unread, "worker 1 (b:2)")

    with pytest.raises(tf.errors.OpError) as refused:
        batches(WorkerDataFeed(Split(X, Y), "training"), np.array([[[0]]], np.int32))

    assert str(data_error(refused.value)) == "worker 1 (b:2): mine.npz is not there"
    del offer


def test_reading_examples_does_not_count_as_flops() -> None:
    feed = WorkerDataFeed(Split(X, Y), "training")

    @tf.function
    def product(order: tf.Tensor) -> Any:
        batch = feed.examples(*feed.arguments(feed.open(order), tf.constant(0)))
        return tf.matmul(tf.cast(batch.inputs, tf.float32), tf.ones((5, 2, 7)))

    graph = product.get_concrete_function(tf.TensorSpec((1, 1, 5), tf.int32)).graph
    assert count_flops(graph, chunk=True).flops == 5 * 2 * 2 * 2 * 7


def test_other_errors_are_not_data_errors() -> None:
    assert data_error(tf.errors.UnavailableError(None, None, "gone")) is None
