"""What waits to be written, and what there is no room for."""

import threading

import numpy as np
import pytest

from accel_engine.devices.device_types import Sample
from accel_engine.recording import write_queue
from accel_engine.recording.write_queue import PendingSteps, QueueItem, WriteQueue


def steps(count: int) -> PendingSteps:
    return PendingSteps(0.0, 1.0, count, {"loss": np.zeros(count), "accuracy": np.zeros(count)})


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
