"""Measures how fast a service answers single examples; without TensorFlow."""

from collections.abc import Sequence

from accel_engine.inference.measurement.connections import ConnectionsLoop
from accel_engine.inference.measurement.stability import measure
from accel_engine.inference.runtime import Arrays
from accel_engine.model_server.service import load_examples
from accel_engine.requests.bench_service import BenchServiceRequest, ServiceLoads
from accel_engine.requests.check_service import MeasuringService, ServiceLoad
from accel_engine.requests.protocol.request import Send, unheard
from accel_engine.service_client.find_service import parse_url
from accel_engine.service_client.rest_v2 import RestV2
from accel_engine.service_client.service_runtime import ServiceRuntime
from accel_engine.service_client.transport import Transport


def bench_service(request: BenchServiceRequest, send: Send = unheard) -> ServiceLoads:
    """Measure a service of this machine by the number of connections.

    Args:
        request: The service, and how it is measured.
        send: Takes that a number of connections begins, and what was measured of it.

    Raises:
        ServiceError: The service does not answer, or refuses.
        UsageError: The folder has no examples.
    """
    url = parse_url(request.url)
    inputs, _ = load_examples(request.folder)
    transport = Transport(f"{url.scheme}://{url.address}", request.token, request.ca, checks_name=False)
    service = RestV2(transport, url.model, binary=True)
    found = []
    for connections in request.connections:
        send(MeasuringService(connections))
        found.append(measured_load(service, inputs, connections, request.seconds))
        send(found[-1])
    return ServiceLoads(tuple(found))


def measured_load(service: ServiceRuntime, examples: Arrays, connections: int, seconds: float) -> ServiceLoad:
    """How fast a service answers single examples, over some connections at once.

    Args:
        service: The service.
        examples: Raw examples, an array ``[examples, ...]`` for each input.
        connections: How many are open.
        seconds: The time limit.

    Raises:
        ServiceError: The service does not answer, or refuses.
    """
    requests = single_requests(service, examples)
    found = measure(ConnectionsLoop(service.send, requests, connections), seconds)
    p50, p99 = (found.percentiles[name].value for name in ("p50", "p99"))
    return ServiceLoad(connections, found.throughput, p50, p99, found.requests, found.stable)


def single_requests(service: ServiceRuntime, examples: Arrays) -> Sequence[object]:
    """A prepared request for each example."""
    count = len(next(iter(examples.values())))
    return [service.prepare({name: array[row : row + 1] for name, array in examples.items()}) for row in range(count)]
