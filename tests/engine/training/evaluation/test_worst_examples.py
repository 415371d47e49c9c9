"""The values of all examples, and which of them can be read again."""

from types import SimpleNamespace
from typing import cast

import numpy as np
import numpy.typing as npt
import pytest

from accel_engine.data.dataset import Split
from accel_engine.data.structure import Batch, Structure
from accel_engine.training.evaluation.task_report import TaskReport
from accel_engine.training.evaluation.worst_examples import WorstExamples

from ..core.streams import Recorded

REPORT = cast(TaskReport, SimpleNamespace(worst=2, first=1))


def doubled(inputs: Structure) -> Structure:
    return 2 * inputs


def values(*losses: float) -> npt.NDArray[np.float32]:
    """A loss and another value of each example."""
    return np.stack([losses, np.arange(len(losses))], axis=1).astype(np.float32)


def batch(*sides: int) -> Batch:
    """An example for each side, padded to the largest: as many ones."""
    return Batch(np.array([[1] * side + [0] * (max(sides) - side) for side in sides], np.float32))


def test_rows_have_their_values_in_the_order_of_the_data() -> None:
    split = Split(np.arange(10, dtype=np.float32).reshape(5, 2), np.arange(5))
    worst = WorstExamples(split, REPORT, doubled)
    worst.add(values(0, 1, 2, 3), 0, np.int32([[4, 1], [0, 2]]), None, repeated=False)
    worst.add(values(9, 0), 4, np.int32([[3], [3]]), None, repeated=True)

    np.testing.assert_array_equal(worst.values[:, 0], [2, 1, 3, 9, 0])
    examples, outputs = worst.read(np.int64([3, 0]))
    np.testing.assert_array_equal(examples.inputs, [[6, 7], [0, 1]])
    np.testing.assert_array_equal(examples.targets, [3, 0])
    np.testing.assert_array_equal(outputs, [[12, 14], [0, 2]])


def test_a_stream_keeps_the_worst_and_the_first_examples() -> None:
    worst = WorstExamples(Recorded(), REPORT, doubled)
    worst.add(values(0, 3, 5, 1), 0, None, batch(1, 2, 3, 4), repeated=False)
    worst.add(values(3, np.nan, 4), 4, None, batch(5, 6, 7), repeated=False)
    worst.add(values(5, 0), 7, None, batch(8), repeated=True)

    np.testing.assert_array_equal(worst.values[:, 0], [0, 3, 5, 1, 3, np.nan, 4, 5])
    examples, outputs = worst.read(np.int64([5, 2, 0]))  # of equal losses the first
    np.testing.assert_array_equal(examples.inputs.sum(axis=1), [6, 3, 1])
    assert examples.inputs.shape == (3, 7)
    np.testing.assert_array_equal(outputs, 2 * examples.inputs)
    for index in (1, 3, 4, 6, 7):
        with pytest.raises(KeyError):
            worst.read(np.int64([index]))


def test_another_validation_begins_without_examples() -> None:
    worst = WorstExamples(Recorded(), REPORT, doubled)
    worst.add(values(9, 9), 0, None, batch(1, 2), repeated=False)
    worst.examples = 2
    worst.clear()
    worst.add(values(1, 0), 0, None, batch(3, 4), repeated=False)

    assert worst.examples == 0
    np.testing.assert_array_equal(worst.values[:, 0], [1, 0])
    examples, _ = worst.read(np.int64([0, 1]))
    np.testing.assert_array_equal(examples.inputs.sum(axis=1), [3, 4])


def test_nothing_is_kept_without_a_report() -> None:
    worst = WorstExamples(Recorded(), None, doubled)
    worst.add(values(9, 9), 0, None, batch(1, 2), repeated=False)

    with pytest.raises(KeyError):
        worst.read(np.int64([0]))
