"""Turns signals that end a command into an event, so that it can end what it has started."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTED = 130
"""The exit status after Ctrl-C."""


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """An event that SIGINT, SIGTERM and SIGHUP set; they raise no exception, so that no process is left behind."""
    interrupted = threading.Event()
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    previous = [signal.signal(each, lambda *_: interrupted.set()) for each in signals]
    try:
        yield interrupted
    finally:
        for each, handler in zip(signals, previous, strict=True):
            signal.signal(each, handler)
