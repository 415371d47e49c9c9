"""Keeps a hangup (``SIGHUP``), such as that of a closed terminal, from ending a process that outlives the terminal."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held() -> Iterator[None]:
    """Hold hangups back from processes that this thread starts, until they call :func:`ignore` or :func:`survive`."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ignore() -> None:
    """Ignore hangups, those that were held back and in programs that this process starts included."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _release()


def survive() -> None:
    """Let hangups, those that were held back included, do nothing; what this process starts gets them as ever."""
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        signal.signal(signal.SIGHUP, lambda *_: None)
    _release()


def _release() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
