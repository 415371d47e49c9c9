"""Streams of a ``keras.utils.PyDataset``, of generators, PyTorch's ``DataLoader`` and other iterables."""

import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, count, islice
from typing import Any

import keras
import numpy as np

from accel_engine.data.python_source.pass_stream import (
    PEEKED,
    Explained,
    OwnRandomState,
    PassStream,
    common_spec,
    own_states,
)
from accel_engine.data.python_source.returned import as_batch
from accel_engine.data.structure import Batch, flatten, map_structure
from accel_engine.errors import DataError


class IterableStream(PassStream):
    """Batches of an iterable of ``x``, ``(x, y)`` or ``(x, y, sample_weight)``.

    Elements that are not batches, as one of their arrays is a single number or their first dimensions differ, are
    batched.

    Args:
        start: Starts a pass.
        again: Makes the next pass the first one once more.
        seed: The plan's seed; random numbers of the iterable depend on it only.
        batch_size: The plan's batch size, for elements that are not batches.
        explained: Converts errors of the user's code.
        length: Number of elements of a pass; ``None`` if unknown.
        keeps_state: Whether passes depend on earlier ones. Otherwise each begins with its own seed.
    """

    def __init__(
        self,
        start: Callable[[int], Iterator[Any]],
        again: Callable[[], None],
        seed: int,
        batch_size: int,
        explained: Explained,
        *,
        length: int | None = None,
        keeps_state: bool = True,
    ) -> None:
        self._start, self._again, self._seed, self._keeps_state = start, again, seed, keeps_state
        self._random = OwnRandomState(seed)
        self._size: int | None = None
        self.read_again = "the batches of the function's data" if keeps_state else ""
        with explained("failed at its first batches"):
            elements = self._begin(0)
            peeked = list(islice(elements, PEEKED))
            if not peeked:
                raise DataError("the data has no examples")
            if not _are_batches(peeked[0]):
                self._size = batch_size
                self._peeked: Iterator[Any] | None = self._batched(chain(peeked, elements))
                peeked = list(islice(self._peeked, PEEKED))
                self._peeked = chain(peeked, self._peeked)
            else:
                self._peeked = chain(peeked, elements)
        self.batched_here = self._size is not None
        count = length if self._size is None or length is None else -(-length // self._size)
        super().__init__(common_spec(peeked), count, len(flatten(peeked[0])[0]), explained)

    def _restart(self, epoch: int) -> None:
        if not self._keeps_state:
            self._epoch = epoch - 1
            return
        if self._iterator is not None:
            with own_states():
                self._again()
        self._epoch = -1

    def _open(self, epoch: int) -> Iterator[Any]:
        peeked, self._peeked = self._peeked, None
        return peeked if peeked is not None and epoch == 0 else self._whole(self._begin(epoch))

    def _begin(self, epoch: int) -> Iterator[Batch]:
        """Start a pass with the source's own random states."""
        if epoch == 0 or not self._keeps_state:
            self._random = OwnRandomState(self._seed) if epoch == 0 else OwnRandomState(self._seed, epoch)
        with self._random.active():
            iterator = self._start(epoch)

        def elements() -> Iterator[Batch]:
            while True:
                with self._random.active():
                    element = next(iterator, _END)
                if element is _END:
                    return
                yield as_batch(element)

        return elements()

    def _whole(self, elements: Iterator[Batch]) -> Iterator[Batch]:
        return elements if self._size is None else self._batched(elements)

    def _batched(self, elements: Iterator[Batch]) -> Iterator[Batch]:
        assert self._size is not None  # noqa: S101 (the elements are no batches)
        while group := list(islice(elements, self._size)):
            yield map_structure(lambda *rows: np.stack(rows), *group)


_END: Any = object()


def set_pass(loader: Any, epoch: int) -> None:
    """Tell a PyTorch ``DataLoader`` and its sampler the pass, so that its order depends on nothing else."""
    if generator := getattr(loader, "generator", None):
        generator.manual_seed(epoch)
    for sampler in (getattr(loader, "sampler", None), getattr(loader, "batch_sampler", None)):
        if (set_epoch := getattr(sampler, "set_epoch", None)) is not None:
            set_epoch(epoch)
        if own := getattr(sampler, "generator", None):
            own.manual_seed(epoch)


def is_data_loader(value: Any) -> bool:
    """Whether a value is PyTorch's ``DataLoader``."""
    torch = sys.modules.get("torch.utils.data")
    return torch is not None and isinstance(value, torch.DataLoader)


def _are_batches(batch: Batch) -> bool:
    shapes = [array.shape for array in flatten(batch)]
    return all(shapes) and len({shape[0] for shape in shapes}) == 1


class PyDatasetStream(PassStream):
    """Batches of a ``PyDataset``.

    The batch at an index is read with its own random states, unless the ``PyDataset`` has several workers. So it does
    not depend on earlier batches. ``on_epoch_begin`` is called once per pass, ``on_epoch_end`` at the next one.

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
