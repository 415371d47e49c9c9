"""A stream of batches that is read pass by pass, and can be read again from any position."""

import random
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from accel_engine.data.dataset import spec_of
from accel_engine.data.structure import ArraySpec, Batch, flatten, map_structure, named_leaves
from accel_engine.errors import DataError

Explained = Callable[[str], AbstractContextManager[None]]
"""Converts errors of the user's code to ``DataError``; its argument says what failed."""

PEEKED = 2
"""Batches that tell the spec: a dimension in which they differ may have any size."""

END: Any = object()
"""What :func:`next` returns at the end of a pass."""


class PassStream(ABC):
    """A stream that knows the position of the batch that is read next.

    Reading on from there costs nothing. Any other position is found by reading from the start of the pass or, where
    earlier passes have an effect on later ones, from the very start.

    Args:
        spec: The :class:`~accel_engine.data.structure.ArraySpec` of every array, without the batch.
        batches: Batches of a pass; ``None`` if unknown, or if the stream never ends.
        batch_size: Examples of a batch but the last; ``None`` if unknown.
        explained: Converts errors of the user's code.
    """

    batched_here = False
    """Whether the user's data is not in batches, so that these are made here."""

    read_again = ""
    """What is read again from its first batch to continue a run; empty if that is not needed."""

    def __init__(self, spec: Batch, batches: int | None, batch_size: int | None, explained: Explained) -> None:
        self.spec = spec
        self.batches = batches
        self.batch_size = batch_size
        self._explained = explained
        self._iterator: Iterator[Any] | None = None
        self._epoch = -1
        self._position = 0

    def read(self, epoch: int, position: int) -> Iterator[Batch]:
        """Yield the batches of a pass.

        Args:
            epoch: The pass over the stream, from 0; always 0 for a stream that never ends.
            position: Number of batches of the pass to leave out.

        Raises:
            DataError: The user's code failed, or gave something else than before.
        """
        self._seek(epoch, position)
        while (element := self._next()) is not END:
            yield self._batch(element)

    @abstractmethod
    def _restart(self, epoch: int) -> None:
        """Go back to the start of an earlier pass, or of this one, and set :attr:`_epoch` to it less 1."""

    @abstractmethod
    def _open(self, epoch: int) -> Iterator[Any]:
        """Start a pass; the passes before it were started and ended, unless they have no effect."""

    def _batch(self, element: Any) -> Batch:
        """Check an element, or convert it to a batch of arrays first."""
        batch: Batch = element
        paths = [path for path, _ in named_leaves(self.spec._asdict())]
        if paths != [path for path, _ in named_leaves(batch._asdict())]:
            raise DataError(f"batch {self._position} of pass {self._epoch + 1} has other arrays than the first one")
        for path, expected, array in zip(paths, flatten(self.spec), flatten(batch), strict=True):
            own = spec_of(array)
            if not expected.fits(own.shape) or (own.dtype == "string") != (expected.dtype == "string"):
                raise DataError(
                    f"batch {self._position} of pass {self._epoch + 1} has {path} of {own} in each example, and the "
                    f"first batches had {expected}; pad all batches to one length, or return a tf.data.Dataset"
                )
        return batch

    def _pass_over(self, epoch: int) -> None:
        """Go through a pass for its effects on later ones."""
        self._iterator = self._open(epoch)
        self._exhaust()

    def _seek(self, epoch: int, position: int) -> None:
        if self._iterator is None or (epoch, position) < (self._epoch, self._position):
            with self._explained("failed when it was read from the start"):
                self._restart(epoch)
            self._iterator, self._position = None, 0
        while self._epoch < epoch:
            if self._iterator is not None:
                self._exhaust()
            self._epoch, self._position = self._epoch + 1, 0
            with self._explained(f"failed at the start of pass {self._epoch + 1}"):
                if self._epoch < epoch:
                    self._pass_over(self._epoch)
                    self._iterator = None
                else:
                    self._iterator = self._open(epoch)
        while self._position < position and self._next() is not END:
            pass

    def _exhaust(self) -> None:
        while self._next() is not END:
            pass

    def _next(self) -> Any:
        assert self._iterator is not None  # noqa: S101 (a pass was opened)
        with self._explained(f"failed at batch {self._position + 1} of pass {self._epoch + 1}"):
            element = next(self._iterator, END)
        self._position += element is not END
        return element


def common_spec(batches: list[Batch]) -> Batch:
    """The spec of batches; a dimension in which they differ may have any size.

    Raises:
        DataError: The batches have different structures, or arrays of different ranks.
    """

    def common(*arrays: Any) -> ArraySpec:
        specs = [spec_of(array) for array in arrays]
        if len({len(spec.shape) for spec in specs}) > 1:
            raise DataError(f"the first batches have arrays of {' and '.join(map(str, specs))} per example")
        sides = zip(*(spec.shape for spec in specs), strict=True)
        return ArraySpec(tuple(each[0] if len(set(each)) == 1 else None for each in sides), specs[0].dtype)

    return map_structure(common, *batches)


_lock = threading.RLock()
"""Held while a source's states are the global ones: sources may be read by several threads."""


class OwnRandomState:
    """The global random states of Python, NumPy and, if it is imported, PyTorch, for one source.

    Args:
        seed: Numbers that the states depend on. A single one gives the states of ``keras.utils.set_random_seed``.
    """

    def __init__(self, *seed: int) -> None:
        number = seed[0] if len(seed) == 1 else int(np.random.SeedSequence(seed).generate_state(1)[0])
        with own_states():
            _seed(number)
            self._states = _states()

    @contextmanager
    def active(self) -> Iterator[None]:
        """Use these states, and keep what they have become."""
        with own_states():
            _set(self._states)
            try:
                yield
            finally:
                self._states = _states()


@contextmanager
def own_states() -> Iterator[None]:
    """Restore the global random states afterwards."""
    with _lock:
        before = _states()
        try:
            yield
        finally:
            _set(before)


def _seed(number: int) -> None:
    random.seed(number)
    np.random.seed(number)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(number)


def _states() -> tuple[Any, Any, Any]:
    torch = sys.modules.get("torch")
    return random.getstate(), np.random.get_state(), torch.get_rng_state() if torch else None


def _set(states: tuple[Any, Any, Any]) -> None:
    random.setstate(states[0])
    np.random.set_state(states[1])
    if states[2] is not None:
        sys.modules["torch"].set_rng_state(states[2])
