"""Requests over several connections at once."""

from collections import Counter
from threading import Barrier

import numpy as np
import pytest

from accel_engine.inference.measurement.connections import ArrivalConnections, ConnectionsLoop
from accel_engine.inference.measurement.rate_search import arrivals_at


def test_all_connections_send_at_once() -> None:
    together, sent = Barrier(4, timeout=120), Counter[str]()

    def send(request: str) -> None:
        together.wait()  # ends only if four requests are on their way
        sent[request] += 1

    window = ConnectionsLoop(send, ["a", "b"], 4).window(0.0)
    assert window.requests == window.examples == len(window.latencies) == sent.total() == 4
    assert sent == {"a": 2, "b": 2}


def test_each_request_that_arrives_is_answered_once() -> None:
    answered: list[int] = []
    loop = ArrivalConnections(answered.append, range(50), np.arange(50, dtype=np.int64) * 1_000_000, connections=3)
    windows = []
    while not loop.is_over:
        windows.append(loop.window(0.01))
    assert sorted(answered) == list(range(50))
    assert sum(each.requests for each in windows) == 50
    assert all((each.latencies >= 0).all() for each in windows)


def test_what_a_connection_raises_is_raised() -> None:
    def fail(_: object) -> None:
        raise ConnectionResetError("gone")

    with pytest.raises(ConnectionResetError, match="gone"):
        arrivals_at(1000, lambda schedule: ArrivalConnections(fail, [0], schedule, 2), bound=1.0, seconds=0.1)
