"""Measures served models by format and number of threads: the highest rate within a latency, and what that takes.

Real servers are measured, with single examples that arrive at random times over several connections. The clients run
on the same machine, and take a part of its processors.
"""

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from accel_engine.deployment.deployments import DeployError
from accel_engine.deployment.server_metrics import figures_between, read_metrics
from accel_engine.errors import file_errors
from accel_engine.files import replacing
from accel_engine.inference.measurement.connections import ArrivalConnections
from accel_engine.inference.measurement.rate_search import (
    FEWEST_REQUESTS,
    Schedule,
    arrivals_at,
    highest_rate,
)
from accel_engine.inference.measurement.stability import Measured
from accel_engine.inference.runtime import Arrays
from accel_engine.json_values import decode_file, encode
from accel_engine.memory import resident_bytes
from accel_engine.service_client.rest_v2 import RestV2
from accel_engine.service_client.service_load import measured_load, single_requests
from accel_engine.service_client.transport import Transport
from accel_engine.words import numbers

FILE = "measured.json"
"""The file with the measurements of a model, in its folder."""

SECONDS = 2.0
"""How long each rate is measured."""

CONNECTIONS = 32
"""Connections at once, at most."""

SMALLER_BATCH, LARGER_BATCH = 8, 128
"""Other sizes of the largest batch that are tried; the larger one only where batches have more examples than the
smaller one on average."""


def batch_sizes_to(largest: int) -> tuple[int, ...]:
    """The sizes of batches up to a power of two: 1, 2, 4 and so on."""
    return tuple(1 << power for power in range(largest.bit_length()))


def other_batches(best: "Sizing") -> tuple[int, ...]:
    """The largest batches that may be better than what was measured to be the best."""
    sizes = (SMALLER_BATCH, LARGER_BATCH) if (best.batch or 0) > SMALLER_BATCH else (SMALLER_BATCH,)
    return tuple(each for each in sizes if each != best.largest_batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """Measurements of a served model; ``None`` for figures that were not measured."""

    format: str
    """Its format and precision in a word."""
    threads: int | None = None
    """Threads of a batch; ``None`` for the server's own number."""
    largest_batch: int | None = None
    """Examples of a batch at most."""
    load_seconds: float | None = None
    """From its start until it was ready."""
    memory_bytes: int | None = None
    """Resident bytes of the server and its back end, the most that was seen."""
    rate: float | None = None
    """The highest rate within the target latency, in requests per second; 0 if there is none, or if it was not
    searched, as the throughput is not higher than another rate."""
    p50: float | None = None
    """The median latency at this rate, in seconds. Without a rate: at the lowest one that was tried, or, if none was,
    with all connections busy."""
    p99: float | None = None
    """The 99th percentile of latencies there."""
    batch: float | None = None
    """Mean examples of a batch there."""
    cores: float | None = None
    """Processors that the server kept busy there."""
    connections: int | None = None
    """Connections at once, at most."""
    target_latency: float | None = None
    """Seconds that p99 may be at most."""
    target_rate: float | None = None
    """Requests per second that are to be served."""

    @property
    def replicas(self) -> int | None:
        """How many machines like this one the target rate takes; ``None`` without one."""
        return math.ceil(self.target_rate / self.rate) if self.target_rate and self.rate else None


def read_sizing(folder: Path) -> Sizing | None:
    """The measurements of the model of a folder; ``None`` if there are none."""
    return decode_file(folder / FILE, Sizing)


def write_sizing(folder: Path, sizing: Sizing) -> None:
    """Write the measurements of the model of a folder, with the number of replicas for other programs.

    Raises:
        DeployError: The file cannot be written.
    """
    with file_errors(f"cannot write {folder / FILE}", DeployError), replacing(folder / FILE) as temporary:
        temporary.write_text(encode(sizing) + "\n", "utf-8")


def _busy_seconds(process: psutil.Process) -> float:
    """Seconds of processors that a process and those that it has started have used."""
    found = 0.0
    with suppress(psutil.Error):
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                times = each.cpu_times()
                found += times.user + times.system
    return found


class ServerSizing:
    """Measures one server.

    Args:
        transport: Sends requests to it.
        model: The name of its model.
        process: Its process.
        examples: Raw examples, an array ``[examples, ...]`` for each input.
        max_queue: Examples that wait in the server at most; more connections would be refused.
    """

    def __init__(
        self, transport: Transport, model: str, process: psutil.Process, examples: Arrays, max_queue: int
    ) -> None:
        self._transport, self._process, self._examples = transport, process, examples
        self._connections = min(CONNECTIONS, max_queue)
        self._service = RestV2(transport, model, binary=True)
        self._seen: dict[float, tuple[float, float | None]] = {}

    def measured(self, known: Sizing, latency: float, at_least: float) -> Sizing:
        """Search the highest rate within a latency.

        Args:
            known: What is known of it.
            latency: Seconds that p99 may be at most.
            at_least: The best rate of other servers; if the throughput is not higher, no rate is searched.
        """
        load = measured_load(self._service, self._examples, self._connections, SECONDS / 2)
        memory = resident_bytes(self._process.pid)
        known = replace(known, connections=self._connections, target_latency=latency, memory_bytes=memory)
        if load.rate <= at_least:
            return replace(known, rate=0.0, p50=load.p50, p99=load.p99)
        found = highest_rate(lambda rate: self._at(rate, latency), load.rate, latency, lowest=FEWEST_REQUESTS / SECONDS)
        cores, batch = self._seen.get(found.rate, (None, None))
        percentiles = found.measured.percentiles
        return replace(
            known,
            rate=found.rate,
            p50=percentiles["p50"].value if percentiles else None,
            p99=percentiles["p99"].value if percentiles else None,
            cores=cores,
            batch=batch,
            memory_bytes=max(known.memory_bytes or 0, resident_bytes(self._process.pid)),
        )

    def _at(self, rate: float, latency: float) -> Measured:
        """Measure a rate, and what the server does meanwhile."""
        requests = single_requests(self._service, self._examples)

        def make_loop(schedule: Schedule) -> ArrivalConnections:
            return ArrivalConnections(self._service.send, requests, schedule, self._connections)

        busy, metrics, began = _busy_seconds(self._process), read_metrics(self._transport), time.monotonic()
        found = arrivals_at(rate, make_loop, bound=latency, seconds=SECONDS)
        seconds = time.monotonic() - began
        cores = (_busy_seconds(self._process) - busy) / seconds
        self._seen[rate] = cores, figures_between(metrics, read_metrics(self._transport), seconds).batch
        return found


def choose(measured: Sequence[Sizing], latency: float, problems: Mapping[str, str]) -> Sizing:
    """Choose the measurements with the highest rate within the latency.

    Args:
        measured: What was measured.
        latency: Seconds that p99 may be at most.
        problems: Why other formats were not measured.

    Raises:
        DeployError: None of the measurements is within the latency.
    """
    best = max(measured, key=lambda each: each.rate or 0.0, default=None)
    if best is not None and best.rate:
        return best
    timed = [each for each in measured if each.p99 is not None]
    fastest = min(timed, key=lambda each: each.p99 or math.inf, default=None)
    words = "; ".join(f"{name}: {why}" for name, why in problems.items())
    if fastest is None or fastest.p99 is None:
        raise DeployError(f"nothing could be measured: {words}")
    raise DeployError(
        f"no format answers within {numbers.latency(latency)} at p99 on this machine: the fastest is {fastest.format}, "
        f"with {numbers.latency(fastest.p99)}"
    )
