"""Handles signals while a command runs."""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

INTERRUPTED = 130
"""The exit status after Ctrl-C."""

Handler = Callable[..., object]
"""Takes the number of a signal and a stack frame."""


@contextmanager
def signal_handlers(handlers: Mapping[signal.Signals, Handler]) -> Iterator[None]:
    """Handle signals, and afterwards as before."""
    previous = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """An event that SIGINT, SIGTERM and SIGHUP set; they raise no exception, so that no process is left behind."""
    interrupted = threading.Event()
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    with signal_handlers(dict.fromkeys(signals, lambda *_: interrupted.set())):
        yield interrupted
