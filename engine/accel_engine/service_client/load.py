"""Measures how fast a service answers single examples; without TensorFlow."""

from collections.abc import Sequence

from accel_engine.inference.measurement.connections import ConnectionsLoop
from accel_engine.inference.measurement.stability import measure
from accel_engine.inference.runtime import Arrays
from accel_engine.requests.check_service import ServiceLoad
from accel_engine.service_client.service_runtime import ServiceRuntime


def measured_load(service: ServiceRuntime, examples: Arrays, connections: int, seconds: float) -> ServiceLoad:
    """How fast a service answers single examples, over some connections at once.

    Args:
        service: The service.
        examples: Raw examples, an array ``[examples, ...]`` for each input.
        connections: How many are open.
        seconds: The time limit.
    """
    requests = single_requests(service, examples)
    found = measure(ConnectionsLoop(service.send, requests, connections), seconds)
    p50, p99 = (found.percentiles[name].value for name in ("p50", "p99"))
    return ServiceLoad(connections, found.throughput, p50, p99, found.requests, found.stable)


def single_requests(service: ServiceRuntime, examples: Arrays) -> Sequence[object]:
    """A request for each of some examples, as it is sent."""
    count = len(next(iter(examples.values())))
    return [service.prepare({name: array[row : row + 1] for name, array in examples.items()}) for row in range(count)]
