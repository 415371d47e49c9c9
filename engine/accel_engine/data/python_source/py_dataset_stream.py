"""Streams of a ``keras.utils.PyDataset``, read by index."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count

import keras

from accel_engine.data.python_source.as_arrays import as_batch
from accel_engine.data.python_source.pass_stream import PEEKED, Explained, PassStream, common_spec
from accel_engine.data.python_source.random_state import OwnRandomState
from accel_engine.data.structure import Batch, flatten
from accel_engine.errors import DataError


class PyDatasetStream(PassStream):
    """Batches of a ``PyDataset``.

    The batch at an index is read with random states of its own, so that it does not depend on those before it;
    ``on_epoch_begin`` and ``on_epoch_end`` are called once for every pass before it.

    Args:
        dataset: The ``PyDataset``.
        again: Makes it once more.
        seed: The plan's seed.
        explained: Converts errors of the user's code.
    """

    def __init__(
        self,
        dataset: keras.utils.PyDataset,
        again: Callable[[], keras.utils.PyDataset],
        seed: int,
        explained: Explained,
    ) -> None:
        self._dataset, self._again, self._seed = dataset, again, seed
        self._calls = OwnRandomState(seed)
        self._begun, self._first = -1, 0
        with explained("failed at its first batch"):
            batches = dataset.num_batches
            peeked = [self._item(0, index) for index in range(min(PEEKED, PEEKED if batches is None else batches))]
            if not peeked:
                raise DataError("the data has no examples")
        super().__init__(common_spec(peeked), batches, len(flatten(peeked[0])[0]), explained)

    def _seek(self, epoch: int, position: int) -> None:
        """Go to a batch by its index, without those before it."""
        if epoch < self._begun:
            with self._explained("failed when it was made again"):
                self._dataset = self._again()
            self._begun, self._calls = -1, OwnRandomState(self._seed)
        with self._explained(f"failed at the start of pass {epoch + 1}"), self._calls.active():
            while self._begun < epoch:
                if self._begun >= 0:
                    self._dataset.on_epoch_end()
                self._begun += 1
                if hasattr(self._dataset, "on_epoch_begin"):  # not in all versions of Keras
                    self._dataset.on_epoch_begin()
        self._epoch, self._position, self._first = epoch, position, position
        self._iterator = self._open(epoch)

    def _restart(self, epoch: int) -> None:
        raise NotImplementedError  # every pass is found by its index

    def _open(self, epoch: int) -> Iterator[Batch]:
        indices = count(self._first) if self.batches is None else iter(range(self._first, self.batches))
        if self._dataset.workers < 2:
            return (self._item(epoch, index) for index in indices)
        return self._read_ahead(indices)

    def _read_ahead(self, indices: Iterator[int]) -> Iterator[Batch]:
        """Read in threads, as many as the ``PyDataset`` asks for."""
        with ThreadPoolExecutor(self._dataset.workers) as pool:
            waiting: deque[Future[Batch]] = deque()
            for index in indices:
                waiting.append(pool.submit(lambda index: as_batch(self._dataset[index]), index))
                if len(waiting) > self._dataset.workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def _item(self, epoch: int, index: int) -> Batch:
        with OwnRandomState(self._seed, epoch, index).active():
            return as_batch(self._dataset[index])
