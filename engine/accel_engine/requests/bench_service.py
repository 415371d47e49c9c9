"""Asks how fast a service answers the examples of a folder, by the number of connections."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from accel_engine.requests.check_service import MeasuringService, ServiceLoad
from accel_engine.requests.protocol.request import EngineRequest


@dataclass(frozen=True, slots=True)
class ServiceLoads:
    """How fast a service answers."""

    loads: tuple[ServiceLoad, ...]
    """By the number of connections."""


@dataclass(frozen=True, slots=True)
class BenchServiceRequest(EngineRequest[ServiceLoads]):
    """A request to measure a service; what was measured of each number of connections is a part of the answer."""

    function: ClassVar = "accel_engine.service_client.service_load:bench_service"
    result: ClassVar = ServiceLoads
    parts: ClassVar = (MeasuringService, ServiceLoad)
    is_batch: ClassVar = False

    url: str
    """The service, with the model in its path."""
    folder: Path
    """The folder that it serves, whose held-out examples are sent."""
    connections: tuple[int, ...]
    """Connections at once, one number after the other."""
    seconds: float
    """The time limit of each."""
    token: str = ""
    """Sent as a bearer token; empty for none."""
    ca: str = ""
    """A file with the certificate of this machine's server; empty for none."""


REQUEST = BenchServiceRequest
