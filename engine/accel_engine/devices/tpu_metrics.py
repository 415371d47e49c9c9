"""Reads TPU metrics from the gRPC service of the TPU runtime.

The service and its messages are the ones of Google's ``tpu-info``. ``libtpu``, which has more metrics, is
never loaded here: a second process that loads it may take the chips from the first.
"""

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from accel_engine.protobuf import MalformedError, Message, text_field

PORTS_VARIABLE = "TPU_RUNTIME_METRICS_PORTS"
"""Environment variable with the comma-separated ports of the runtimes of this machine."""

DEFAULT_PORTS = "8431"

METHOD = "/tpu.monitoring.runtime.RuntimeMetricService/GetRuntimeMetric"

DUTY_CYCLE = "tpu.runtime.tensorcore.dutycycle.percent"
"""The share of time in which a chip's TensorCores were busy, in %."""

MEMORY_USED = "tpu.runtime.hbm.memory.usage.bytes"
MEMORY_TOTAL = "tpu.runtime.hbm.memory.total.bytes"

METRICS = (DUTY_CYCLE, MEMORY_USED, MEMORY_TOTAL)

NOT_SERVED = "serves no metrics (TensorFlow may not serve them)"
"""Said of a program that holds a chip: Google's ``tpu-info`` names only JAX and PyTorch as servers of the metrics.

Newer metrics, such as ``tensorcore_util`` and the queue of HLO programs, are given by ``libtpu.sdk`` only.
"""

READ_TIMEOUT = 0.3
"""Seconds to wait for all services together; less than half of the sampler's interval."""

MAX_BACKOFF = 60.0
"""Maximum seconds before a service that did not respond is queried again."""

TOTAL_INTERVAL = 30.0
"""Seconds between queries of the total memory, which changes only with the program."""

_VERBOSITY = "GRPC_VERBOSITY"

_RECONNECT = 5000
"""Milliseconds between connection attempts if nothing listens; calls in between fail at once."""


@dataclass(frozen=True, slots=True)
class MetricValues:
    """The values of one metric."""

    values: tuple[float, ...] = ()
    """Values of the runtime's devices in order, over all services; empty if there are none."""
    reason: str = ""
    """Why there are none."""
    served: bool = True
    """Whether anything listens at the service's address."""


_LATE = MetricValues(reason="the TPU runtime was not queried in time")


class RuntimeMetrics:
    """Queries all metric services of this machine. Nothing is imported or queried before :meth:`open`.

    Args:
        ports: Value of :data:`PORTS_VARIABLE`; the default port if empty.
        clock: Returns the time in seconds.
    """

    def __init__(self, ports: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self._ports = ports.strip() or DEFAULT_PORTS
        self._clock = clock
        self._services: tuple[_Service, ...] = ()
        self._error = ""

    @property
    def addresses(self) -> str:
        """The addresses of the services, for messages."""
        ports = [port.strip() for port in self._ports.split(",")]
        return f"localhost:{ports[0]}" + (f" to {ports[-1]}" if len(ports) > 1 else "")

    def open(self) -> None:
        """Create the channels; an error becomes the reason of all missing values."""
        ports = [port.strip() for port in self._ports.split(",")]
        if not all(port.isdecimal() and 0 < int(port) < 65536 for port in ports):
            self._error = f"{PORTS_VARIABLE} is {self._ports!r}; it must be ports such as 8431,8432"
            return
        with _grpc_silenced():
            try:
                import grpc  # only if there are chips: it is slow to import
            except ImportError:
                self._error = "needs the package grpcio, which is not installed: pip install grpcio"
                return
            self._services = tuple(_Service(grpc, f"localhost:{port}") for port in ports)

    def read(self) -> Mapping[str, MetricValues]:
        """Read every metric, within :data:`READ_TIMEOUT`."""
        if self._error:
            return dict.fromkeys(METRICS, MetricValues(reason=self._error))
        deadline = self._clock() + READ_TIMEOUT
        # Those that responded are queried first, so that the others do not delay them.
        for service in sorted(self._services, key=lambda service: service.backoff):
            service.read(deadline, self._clock)
        return {name: _merged([service.metrics[name] for service in self._services]) for name in METRICS}

    def close(self) -> None:
        """Close the channels."""
        for service in self._services:
            service.close()
        self._services = ()


class _Service:
    """One address that may have the service."""

    def __init__(self, grpc: Any, address: str) -> None:
        self._grpc = grpc
        self._address = address
        # Never use a proxy for this machine.
        options = [("grpc.enable_http_proxy", 0), ("grpc.max_reconnect_backoff_ms", _RECONNECT)]
        self._channel = grpc.insecure_channel(address, options=options)
        self._call = self._channel.unary_unary(METHOD)
        self._paused_until = self._total_due = 0.0
        self.backoff = 0.0
        self.metrics = dict.fromkeys(METRICS, _LATE)

    def read(self, deadline: float, clock: Callable[[], float]) -> None:
        if clock() < self._paused_until:
            return
        before, self.metrics = self.metrics, dict.fromkeys(METRICS, _LATE)
        for name in METRICS:
            if name == MEMORY_TOTAL and before[name].values and clock() < self._total_due:
                self.metrics[name] = before[name]
                continue
            if (remaining := deadline - clock()) <= 0:
                return
            try:
                self.metrics[name] = self._query(name, remaining)
            except TimeoutError:
                self.backoff = min(max(1.0, 2 * self.backoff), MAX_BACKOFF)
                self._paused_until = clock() + self.backoff
                missing = MetricValues(reason=f"no response from the TPU runtime at {self._address}")
                self.metrics = {name: metric if metric.values else missing for name, metric in self.metrics.items()}
                return
            if not self.metrics[name].served:
                self.metrics = dict.fromkeys(METRICS, self.metrics[name])
                break
            if name == MEMORY_TOTAL:
                self._total_due = clock() + TOTAL_INTERVAL
        self.backoff = 0.0

    def close(self) -> None:
        self._channel.close()

    def _query(self, name: str, timeout: float) -> MetricValues:
        """Query a metric.

        Raises:
            TimeoutError: There was no response in time.
        """
        try:
            values = decode_metric_response(self._call(text_field(1, name), timeout=timeout))
        except MalformedError as error:
            return MetricValues(reason=f"cannot read the response of {self._address}: {error}")
        except self._grpc.RpcError as error:
            return self._failed(name, error)
        if not values:
            return MetricValues(reason="the TPU runtime has no metrics before a program runs on the chip")
        return MetricValues(tuple(value for _, value in sorted(values.items())))

    def _failed(self, name: str, error: Any) -> MetricValues:
        codes, code, details = self._grpc.StatusCode, error.code(), error.details() or ""
        if code is codes.DEADLINE_EXCEEDED:
            raise TimeoutError
        if code is codes.UNAVAILABLE and "http" not in details.lower():
            return MetricValues(reason=f"no program serves TPU metrics at {self._address}", served=False)
        if code in {codes.UNAVAILABLE, codes.UNIMPLEMENTED}:
            return MetricValues(reason=f"another service listens at {self._address}; set {PORTS_VARIABLE}")
        if code in {codes.NOT_FOUND, codes.INVALID_ARGUMENT}:
            return MetricValues(reason=f"the TPU runtime does not support {name}")
        message = f": {details.splitlines()[0]}" if details else ""
        return MetricValues(reason=f"error of the TPU runtime at {self._address}: {code.name}{message}")


@contextlib.contextmanager
def _grpc_silenced() -> Iterator[None]:
    """Keep gRPC, which reads its verbosity at import, from writing to standard error, the dashboard's screen.

    The variable is set for native code only, and only during the import, as TensorFlow's processes would read it, too.
    """
    if _VERBOSITY in os.environ:
        yield
        return
    os.putenv(_VERBOSITY, "NONE")
    try:
        yield
    finally:
        os.unsetenv(_VERBOSITY)


def decode_metric_response(response: bytes) -> dict[int, float]:
    """Decode a ``MetricResponse``.

    Returns:
        Values by the runtime's device id.

    Raises:
        MalformedError: The message is invalid, or has an invalid value.
    """
    values: dict[int, float] = {}
    for metric in Message(response).message(1).messages(3):
        device, gauge = metric.message(1).message(2).integer(3), metric.message(3)
        value = gauge.double(1) if gauge.double(1) is not None else gauge.integer(2)
        if device is None or value is None:
            raise MalformedError("a value without a device or number")
        if not math.isfinite(value) or value < 0:
            raise MalformedError(f"invalid value {value}")
        values[device] = float(value)
    return values


def _merged(metrics: list[MetricValues]) -> MetricValues:
    """The values of all services; if there are none, the reason of one that responded."""
    values = tuple(value for metric in metrics for value in metric.values)
    return MetricValues(values) if values else max(metrics, key=lambda metric: metric.served)
