"""Reads the metrics of a model server: requests a second, latencies, batches, errors and memory.

Source: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from accel_engine.service_client.transport import Transport

_LINE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*")
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ScrapedMetrics:
    """The samples of a server, by the name of the metric."""

    samples: Mapping[str, Sequence[tuple[Labels, float]]] = field(default_factory=dict)

    def total(self, name: str, wanted: Callable[[Labels], bool] = lambda _: True) -> float:
        """The sum of a metric over its labels; 0 if there is none."""
        return math.fsum(value for labels, value in self.samples.get(name, ()) if wanted(labels))

    def buckets(self, name: str) -> dict[float, float]:
        """The cumulative counts of a histogram by the upper ends of its buckets, over its labels."""
        found: dict[float, float] = {}
        for labels, value in self.samples.get(f"{name}_bucket", ()):
            try:
                end = float(labels.get("le", ""))
            except ValueError:
                continue
            found[end] = found.get(end, 0.0) + value
        return dict(sorted(found.items()))


def parse_metrics(text: str) -> ScrapedMetrics:
    """Parse the text of ``/metrics``; lines that are not samples are left out."""
    samples: dict[str, list[tuple[Labels, float]]] = {}
    for line in text.splitlines():
        found = None if line.startswith("#") else _LINE.fullmatch(line)
        if found is None:
            continue
        try:
            value = float(found[3])
        except ValueError:
            continue
        samples.setdefault(found[1], []).append((dict(_LABEL.findall(found[2] or "")), value))
    return ScrapedMetrics(samples)


def read_metrics(transport: Transport) -> ScrapedMetrics:
    """Read the metrics of a server.

    Raises:
        ServiceError: The server does not answer, or refuses.
    """
    return parse_metrics(transport.get("/metrics").body.decode(errors="replace"))


@dataclass(frozen=True, slots=True)
class ServerFigures:
    """The figures of a server in a stretch of time; ``None`` for figures without a request."""

    rate: float
    """Requests a second."""
    errors: int
    """Requests that were answered with an error, or refused."""
    p50: float | None
    """The median latency in seconds, within the bounds of the histogram."""
    p99: float | None
    """The 99th percentile."""
    batch: float | None
    """The mean number of examples of a batch."""
    queue: int
    """Examples that wait now."""
    memory: int
    """Bytes that the server and its back end hold in memory now."""
    requests: int
    """All requests since it was started."""
    failed: int
    """Number of these requests that were answered with an error, or refused."""
    is_ready: bool


def figures_between(before: ScrapedMetrics, now: ScrapedMetrics, seconds: float) -> ServerFigures:
    """The figures of a server between two readings.

    Args:
        before: The first one; an empty one for all since it was started.
        now: The second one.
        seconds: Between them.
    """
    requests, failed = _requests(now), _failed(now)
    earlier, failed_earlier = _requests(before), _failed(before)
    if earlier > requests:  # another server has taken the place of the first one
        return figures_between(ScrapedMetrics(), now, seconds)
    counts = _less(now.buckets("model_server_request_seconds"), before.buckets("model_server_request_seconds"))
    batches = now.total("model_server_batch_size_count") - before.total("model_server_batch_size_count")
    examples = now.total("model_server_batch_size_sum") - before.total("model_server_batch_size_sum")
    return ServerFigures(
        rate=(requests - earlier) / seconds if seconds > 0 else 0.0,
        errors=round(failed - failed_earlier),
        p50=quantile(counts, 0.5),
        p99=quantile(counts, 0.99),
        batch=examples / batches if batches > 0 else None,
        queue=round(now.total("model_server_queue_examples")),
        memory=round(now.total("process_resident_memory_bytes") + now.total("model_server_backend_resident_bytes")),
        requests=round(requests),
        failed=round(failed),
        is_ready=now.total("model_server_ready") > 0,
    )


def _requests(metrics: ScrapedMetrics) -> float:
    return metrics.total("model_server_requests_total")


def _failed(metrics: ScrapedMetrics) -> float:
    return metrics.total("model_server_requests_total", lambda labels: not _is_success(labels.get("code", "")))


def _is_success(code: str) -> bool:
    """Whether a request was answered: an HTTP status of 2xx, or OK of gRPC."""
    return code.upper() == "OK" or (code.isdecimal() and (code == "0" or code.startswith("2")))


def _less(now: Mapping[float, float], before: Mapping[float, float]) -> dict[float, float]:
    return {end: value - before.get(end, 0.0) for end, value in now.items()}


def quantile(buckets: Mapping[float, float], share: float) -> float | None:
    """A quantile of a histogram, linear within its bucket; ``None`` without values.

    Args:
        buckets: Cumulative counts by the upper ends, in order; the last end is infinite.
        share: 0 to 1. Above the last finite end, that end is returned.
    """
    ends, counts = list(buckets), list(buckets.values())
    if not counts or counts[-1] <= 0:
        return None
    wanted = share * counts[-1]
    place = min(bisect_left(counts, wanted), len(counts) - 1)
    low, below = (ends[place - 1], counts[place - 1]) if place else (0.0, 0.0)
    if math.isinf(ends[place]):
        return low
    inside = counts[place] - below
    return low + (ends[place] - low) * ((wanted - below) / inside if inside > 0 else 1.0)
