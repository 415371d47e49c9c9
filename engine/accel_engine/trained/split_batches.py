"""Reads the examples of a split batch by batch, and reports how many have been read."""

import time
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from accel_engine.data.dataset import Examples, Split, spread_rows, take_rows
from accel_engine.data.fingerprint import MAX_LAZY_ROWS, of_arrays
from accel_engine.data.structure import Batch, flatten
from accel_engine.requests.protocol.model_reference import EXAMPLES_AT_A_TIME

PROGRESS_SECONDS = 0.2
"""Seconds at least between two reports of progress."""


def batches(
    examples: Examples, size: int = EXAMPLES_AT_A_TIME, chosen: npt.NDArray[np.int32] | None = None
) -> Iterator[tuple[npt.NDArray[np.int32], Batch]]:
    """Yield the indices of the examples of each batch, and the batch.

    Args:
        examples: The examples.
        size: Examples of a batch; the batches of a stream have their own sizes.
        chosen: The indices of some examples of a split; all by default.
    """
    if isinstance(examples, Split):
        every = np.arange(len(examples), dtype=np.int32) if chosen is None else chosen
        for first in range(0, len(every), size):
            rows = every[first : first + size]
            yield rows, examples.take(rows)
        return
    first = 0
    for batch in examples.read(0, 0):
        count = len(flatten(batch)[0])
        yield np.arange(first, first + count, dtype=np.int32), batch
        first += count


def number_of_examples(examples: Examples) -> int:
    """The number of examples; 0 of a stream, where it is unknown."""
    return len(examples) if isinstance(examples, Split) else 0


def target_fingerprint(
    examples: Examples, chosen: npt.NDArray[np.int32] | None = None, *, has_inputs: bool = False
) -> str:
    """A fingerprint of the targets in their order; empty for a stream, whose examples are only counted.

    Args:
        examples: The examples.
        chosen: The indices of some examples of a split; all by default.
        has_inputs: Whether it is of the inputs, too; of large ones, of some of their rows.
    """
    if not isinstance(examples, Split):
        return ""
    if has_inputs and chosen is not None:
        chosen = chosen[spread_rows(len(chosen), MAX_LAZY_ROWS)]
    arrays = flatten((examples.targets, examples.inputs) if has_inputs else examples.targets)
    return of_arrays(arrays if chosen is None else [take_rows(each, chosen) for each in arrays])


class ProgressReports:
    """Reports the number of examples done, now and then.

    Args:
        on_progress: Called with the number of examples done, and of all.
        of: The number of all; 0 if unknown.
    """

    def __init__(self, on_progress: Callable[[int, int], object], of: int) -> None:
        self._on_progress, self._of = on_progress, of
        self._reported = time.monotonic()

    def add(self, done: int) -> None:
        """Report the examples done if a report is due."""
        if time.monotonic() - self._reported >= PROGRESS_SECONDS:
            self._on_progress(done, self._of)
            self._reported = time.monotonic()
