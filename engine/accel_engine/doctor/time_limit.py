"""Calls functions in threads, as a driver, a disk or a network may hang."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_Result = TypeVar("_Result")


def call_in_thread(function: Callable[[], _Result], name: str) -> "Future[_Result]":
    """Call a function in a thread of its own, which the end of the program does not wait for.

    Returns:
        The call's future, whose ``result`` takes a time limit.
    """
    future: Future[_Result] = Future()

    def call() -> None:
        try:
            future.set_result(function())
        except Exception as error:  # noqa: BLE001 (raised again by the future)
            future.set_exception(error)

    threading.Thread(target=call, name=name, daemon=True).start()
    return future
