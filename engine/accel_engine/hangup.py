"""Keeps signals from ending a process that outlives its terminal: hangups (``SIGHUP``), and ``SIGUSR1``.

Batch systems send SIGUSR1 to all processes of a job before they end it. A trainer saves a checkpoint then; the others,
and a trainer that still imports TensorFlow, have nothing to do.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGHUP, signal.SIGUSR1)


@contextmanager
def deferred() -> Iterator[None]:
    """Block the signals in this thread, and in what it starts until it calls :func:`ignore` or :func:`survive`."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ignore() -> None:
    """Ignore the signals, those that were held back and in programs that this process starts included."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    _release()


def survive() -> None:
    """Let the signals, those that were held back included, do nothing; what this process starts gets them as ever."""
    for number in _SIGNALS:
        _let_pass(number)
    _release()


def survive_checkpoint_signal() -> None:
    """Let SIGUSR1 do nothing, in the main thread of a command; hangups end it."""
    _let_pass(signal.SIGUSR1)


def _let_pass(number: int) -> None:
    if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
        signal.signal(number, lambda *_: None)


def _release() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
