"""What all followers share: news that are awaited, of a thread that ends with who awaits them."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace

from accel_tui.follower import Follower, NewState, Unreadable

APP = SimpleNamespace(is_running=True)


class Counter(Follower[int]):
    """Counts, until it fails at 3."""

    has_ended = False

    def run(self) -> None:
        while self.is_wanted:
            self.put(self._latest + 1)
            if self._latest == 3:
                self.has_ended = True
                raise ValueError("it cannot count further")
            self.wait(0.001)
        self.has_ended = True


async def test_each_state_is_told_once_it_was_taken_and_so_is_an_end_that_nobody_foresaw() -> None:
    counter, told = Counter(0), []
    async for news in counter.news(APP):
        told.append(counter.latest() if isinstance(news, NewState) else news)
        if isinstance(news, Unreadable):
            break
    assert told[-1] == Unreadable("cannot be read: ValueError: it cannot count further")
    assert told[-2] == 3


async def test_who_awaits_no_longer_ends_the_thread(wait_until: Callable[..., None]) -> None:
    counter = Counter(10)

    async def listen() -> None:
        async for _ in counter.news(APP):
            pass

    task = asyncio.create_task(listen())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await asyncio.to_thread(wait_until, lambda: counter.has_ended)
