"""Random states that belong to one source of data, so that its random numbers do not depend on anything else."""

import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

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
