"""Windows over the rows of a time series, made when they are read."""

from typing import Any

import numpy as np
import numpy.typing as npt


class Windows:
    """Consecutive rows of a matrix, one window for each example.

    Args:
        values: Rows of the series, ``[rows, columns]``.
        starts: First row of each example's window, ``[examples]``.
        shape: Shape of an example: that of a window, ``[length, columns]``, or of another array of the same values.
    """

    def __init__(self, values: npt.NDArray[Any], starts: npt.NDArray[np.integer[Any]], shape: tuple[int, ...]) -> None:
        self.shape = (len(starts), *shape)
        self.dtype = values.dtype
        # Copying windows of the flat matrix is several times as fast as indexing each of their rows.
        self._windows = np.lib.stride_tricks.sliding_window_view(values.reshape(-1), int(np.prod(shape)))
        self._starts = starts * values.shape[1]

    @property
    def nbytes(self) -> int:
        """Bytes of all windows, each of which repeats most rows of the one before."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[Any]:
        """Copy some examples, ``[len(rows), *shape]``."""
        windows: npt.NDArray[Any] = self._windows[self._starts[rows]]
        return windows.reshape(len(rows), *self.shape[1:])

    def __len__(self) -> int:
        return len(self._starts)


def window_starts(run: npt.NDArray[np.integer[Any]], span: int) -> npt.NDArray[np.intp]:
    """First rows of all windows that are within one run of rows.

    Args:
        run: Number of the run that each row belongs to, ascending; negative for rows that no window may have.
        span: Rows of an example, its horizon included.
    """
    last = run[span - 1 :]
    return np.flatnonzero((run[: len(last)] == last) & (last >= 0))
