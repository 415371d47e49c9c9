"""The metrics of a server, in Prometheus' format."""

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper limits of latencies."""

SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""Upper limits of batch sizes."""

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4


class ServerMetrics:
    """The metrics of a server."""

    def __init__(self) -> None:
        disable_created_metrics()
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self.requests = self._counter("requests", "Requests for predictions.", "protocol", "code")
        self.request_seconds = Histogram(
            *("model_server_request_seconds", "Time of a request in the server.", ["protocol"]),
            buckets=SECONDS,
            registry=self._registry,
        )
        self.examples = self._counter("examples", "Examples that were answered.")
        self.batch_size = Histogram(
            "model_server_batch_size", "Examples of a batch.", buckets=SIZES, registry=self._registry
        )
        self.batch_seconds = Histogram(
            *("model_server_batch_seconds", "Time of a batch in the back end, with its transfer."),
            buckets=SECONDS,
            registry=self._registry,
        )
        self.queue = self._gauge("queue_examples", "Examples that wait.")
        self.queue_limit = self._gauge("queue_limit", "Examples that wait at most.")
        self.rejected = self._counter("rejected", "Requests that were refused.", "reason")
        self.restarts = self._counter("backend_restarts", "Times that the back end was started again.")
        self.backend_memory = self._gauge("backend_resident_bytes", "Resident memory of the back end.")
        self.ready = self._gauge("ready", "Whether requests are answered.")
        self.reloads = self._counter("reloads", "Times that the folder was read again.")
        self.reload_failures = self._counter("reload_failures", "Times that this failed.")
        self.info = self._gauge("info", "The model that is served.", "name", "version", "run", "format")

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"model_server_{name}", about, labels, registry=self._registry)

    def _gauge(self, name: str, about: str, *labels: str) -> Gauge:
        return Gauge(f"model_server_{name}", about, labels, registry=self._registry)

    def text(self) -> bytes:
        """All metrics as text."""
        return generate_latest(self._registry)
