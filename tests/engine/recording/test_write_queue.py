"""What waits to be written, and what there is no room for."""

import queue
import threading

import numpy as np
import pytest

from accel_engine.devices.device_types import Sample
from accel_engine.events import Outcome, RunEnded, Warned
from accel_engine.recording import write_queue
from accel_engine.recording.write_queue import PendingSteps, QueueItem, WriteQueue


def steps(count: int) -> PendingSteps:
    return PendingSteps(0.0, 1.0, count, {"loss": np.zeros(count), "accuracy": np.zeros(count)})


WARNED = Warned(time=1.0, message="m")
ENDED = RunEnded(time=1.0, outcome=Outcome.FINISHED, steps=5, epochs=0, seconds=1.0)


def items(waiting: WriteQueue) -> list[QueueItem]:
    found: list[QueueItem] = []
    while True:
        try:
            found.append(waiting.get(timeout=0.0))
        except queue.Empty:
            return found


def test_what_is_dropped_is_counted_and_the_next_steps_tell_how_many_came_before_them() -> None:
    waiting = WriteQueue()
    assert (waiting.dropped, waiting.dropped_steps, waiting.dropped_items) == (0, 0, 0)
    for item in (steps(3), WARNED, steps(2)):
        waiting.drop(item)
    waiting.put(WARNED)
    waiting.put(steps(1))
    waiting.put(steps(1))

    assert (waiting.dropped, waiting.dropped_steps, waiting.dropped_items) == (6, 5, 1)
    found = items(waiting)
    assert found[0] is WARNED
    assert [item.dropped for item in found[1:] if isinstance(item, PendingSteps)] == [5, 0]


@pytest.mark.parametrize("last", [ENDED, None, ValueError("fault")], ids=["end", "left", "fault"])
def test_steps_that_were_dropped_at_the_end_are_told_before_it(last: QueueItem) -> None:
    whole, short = WriteQueue(), WriteQueue()
    short.drop(steps(3))
    for waiting in (whole, short):
        assert waiting.ends_run(last)
        waiting.put(last)
        waiting.put(last)

    assert items(whole) == [last, last]
    (dropped, *rest) = items(short)
    assert dropped == PendingSteps(0.0, 0.0, 0, {}, 3)
    assert rest == [last, last]


def test_an_empty_queue_has_room_for_all_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_queue, "MAX_VALUES", 10)

    assert WriteQueue().has_room(PendingSteps(0.0, 1.0, 10, {"loss": np.zeros(10)}))
    assert not WriteQueue().has_room(PendingSteps(0.0, 1.0, 11, {"loss": np.zeros(11)}))


def test_items_have_room_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_queue, "MAX_ITEMS", 2)
    waiting = WriteQueue()
    waiting.put(WARNED)
    assert waiting.has_room(WARNED)
    waiting.put(WARNED)

    assert not waiting.has_room(WARNED)
    assert not waiting.ends_run(WARNED)
    assert not waiting.ends_run(steps(1))


def test_steps_that_are_put_in_while_another_thread_puts_in_something_else_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting, count = WriteQueue(), write_queue._values
    samples: tuple[Sample, ...] = ()

    def count_interrupted(item: QueueItem) -> int:
        values = count(item)
        if item is samples:  # just then, the other thread goes on
            training = threading.Thread(target=waiting.put, args=[steps(3)])
            training.start()
            training.join()
        return values

    monkeypatch.setattr(write_queue, "_values", count_interrupted)
    waiting.put(samples)
    monkeypatch.setattr(write_queue, "_values", count)
    monkeypatch.setattr(write_queue, "MAX_VALUES", 10)

    assert waiting.has_room(steps(2))
    assert not waiting.has_room(steps(3))
    for _ in range(2):
        waiting.get(timeout=0.0)
    assert waiting.has_room(steps(5))
    assert not waiting.has_room(steps(6))
