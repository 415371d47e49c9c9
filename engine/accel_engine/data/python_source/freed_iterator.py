"""Frees iterators of ``tf.data`` without waiting for TensorFlow.

An iterator has a thread that tunes its pipeline, and sleeps for up to as long as the iterator exists, a minute at most.
When the iterator is freed, TensorFlow wakes this thread and waits for its end. But it wakes it before it tells it to
end (``CancellationManager::StartCancelWithStatus`` sets ``is_cancelled_`` after it has called the callbacks), so that
the thread may go to sleep again. Seen in TensorFlow 2.21, in one of five pauses of a run.
"""

import _thread
import ctypes
import sys
from collections.abc import Iterator
from typing import Any


class FreedIterator(Iterator[Any]):
    """An iterator of a ``tf.data.Dataset`` that is freed in a thread of its own.

    Args:
        iterator: The iterator, to which nothing else refers then.
    """

    def __init__(self, iterator: Any) -> None:
        self._held = [iterator]

    @property
    def inner(self) -> Any:
        """TensorFlow's iterator; keep no reference to it."""
        return self._held[0]

    def __next__(self) -> Any:
        """The next element."""
        return next(self._held[0])

    def __del__(self) -> None:
        """Free the iterator, unless Python ends: the process will free it."""
        if sys.is_finalizing():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._held))
        else:  # without a lock, unlike threading.Thread, as this may be called anywhere
            _thread.start_new_thread(self._held.clear, ())
