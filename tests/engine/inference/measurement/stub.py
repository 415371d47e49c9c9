"""A clock that only moves as tests say, and a server with known times."""

from collections.abc import Callable, Iterator


class FakeTimer:
    """A clock that moves when something takes time, or is waited for."""

    def __init__(self) -> None:
        self.time = 0
        self.now: Callable[[], int] = lambda: self.time

    def wait_until(self, due: int) -> None:
        self.time = max(self.time, due)


class Stub:
    """Takes the given nanoseconds for its requests, one after the other; the last for all further ones."""

    def __init__(self, timer: FakeTimer, *times: int) -> None:
        self.served: list[object] = []
        self._timer = timer
        self._times: Iterator[int] = iter(times)
        self._time = 0

    def __call__(self, request: object) -> None:
        self.served.append(request)
        self._time = next(self._times, self._time)
        self._timer.time += self._time
