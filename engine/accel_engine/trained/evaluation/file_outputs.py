"""Joins the outputs for the windows of a file, which is evaluated as one example."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from accel_engine.data.dataset import Examples, Split
from accel_engine.data.structure import only_array
from accel_engine.trained.evaluation.resampling import Floats
from accel_engine.trained.open_trained import TrainedModel
from accel_engine.trained.split_batches import batches
from accel_engine.training.core.task import Task

Rows = npt.NDArray[np.int32]


def first_windows(examples: Examples, task: Task) -> Rows | None:
    """The row of the first window of each file; ``None`` if each example is evaluated alone."""
    files = examples.file_of if isinstance(examples, Split) else None
    if files is None or task.name != "classification":
        return None
    first = np.flatnonzero(np.diff(files, prepend=-1)).astype(np.int32)
    return first if len(first) < len(files) else None


def outputs_of_files(source: TrainedModel, first: Rows, on_done: Callable[[int], object]) -> Floats:
    """The output of a classifier for each file, ``[files, units]``; see :func:`join_windows`.

    Args:
        source: The model and the windows.
        first: The row of the first window of each file.
        on_done: Called with the number of windows done.
    """
    found = []
    for rows, raw in batches(source.examples, source.plan.batch_size):
        found.append(np.asarray(only_array(source.outputs_of(raw.inputs)), np.float64))
        on_done(int(rows[-1]) + 1)
    return join_windows(np.concatenate(found), first, source.task)


def join_windows(outputs: Floats, first: Rows, task: Task) -> Floats:
    """Outputs whose probabilities are the means of the probabilities of each file's windows.

    Logits are joined as logits: one window's do not change; the softmax of several windows' logits is that mean.

    Args:
        outputs: For each window, ``[windows, units]``.
        first: The row of the first window of each file.
        task: Whether they are logits, and of how many classes.
    """
    counts = np.diff(first, append=len(outputs))[:, np.newaxis]
    are_logits = task.logits or not (task.binary or ((outputs >= 0) & (outputs <= 1)).all())
    if not are_logits:
        return np.add.reduceat(outputs, first) / counts
    logits = np.concatenate([np.zeros_like(outputs), outputs], 1) if task.binary else outputs
    total = np.logaddexp.reduce(logits, 1, keepdims=True)
    joined = np.logaddexp.reduceat(logits - total, first) - np.log(counts) + np.add.reduceat(total, first) / counts
    return joined[:, 1:] - joined[:, :1] if task.binary else joined
