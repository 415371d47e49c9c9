"""What the runtime of a program that uses TPU chips tells of them, over its gRPC metric service.

The service and its messages are those of Google's ``tpu-info``. ``libtpu``, which could tell more, is
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
"""Names the ports, with commas between them, where each program that uses chips of this machine has one."""

DEFAULT_PORTS = "8431"

METHOD = "/tpu.monitoring.runtime.RuntimeMetricService/GetRuntimeMetric"

DUTY_CYCLE = "tpu.runtime.tensorcore.dutycycle.percent"
"""The share of time in which a chip's TensorCores were at work, in %."""

MEMORY_USED = "tpu.runtime.hbm.memory.usage.bytes"
MEMORY_TOTAL = "tpu.runtime.hbm.memory.total.bytes"

METRICS = (DUTY_CYCLE, MEMORY_USED, MEMORY_TOTAL)

PATIENCE = 0.3
"""Seconds that all services together may take to answer; less than half of the sampler's interval."""

LONGEST_PAUSE = 60.0
"""Seconds, at most, that a service which did not answer is left alone."""

TOTAL_EVERY = 30.0
"""Seconds between questions for all the memory there is, which changes only with the program."""

_VERBOSITY = "GRPC_VERBOSITY"

_RECONNECT = 5000
"""Milliseconds between attempts to connect where nothing listens; an attempt in between fails at once."""


@dataclass(frozen=True, slots=True)
class MetricValues:
    """What is known of one metric.

    Attributes:
        values: Of the runtime's devices in their order, over all services; empty when there are none.
        reason: Why there are none.
        served: Whether anything listens where the runtime's service is looked for.
    """

    values: tuple[float, ...] = ()
    reason: str = ""
    served: bool = True


_LATE = MetricValues(reason="the TPU runtime could not be asked in time")


class RuntimeMetrics:
    """Asks all metric services of this machine. Nothing is asked, or imported, before the first reading.

    Args:
        ports: As in :data:`PORTS_VARIABLE`; the usual one where it is empty.
        clock: Tells the time in seconds.
    """

    def __init__(self, ports: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self._ports = ports.strip() or DEFAULT_PORTS
        self._clock = clock
        self._services: tuple[_Service, ...] = ()
        self._broken = ""

    @property
    def addresses(self) -> str:
        """Where the services are looked for, in words."""
        words = [port.strip() for port in self._ports.split(",")]
        return f"localhost:{words[0]}" + (f" to {words[-1]}" if len(words) > 1 else "")

    def open(self) -> None:
        """Get ready to ask; what stands in the way becomes the reason of all answers."""
        words = [word.strip() for word in self._ports.split(",")]
        if not all(word.isdecimal() and 0 < int(word) < 65536 for word in words):
            self._broken = f"{PORTS_VARIABLE} is {self._ports!r}; it must be ports such as 8431,8432"
            return
        with _hushed():
            try:
                import grpc  # not before there are chips: it is slow to import
            except ImportError:
                self._broken = "needs the package grpcio, which is not installed: pip install grpcio"
                return
            self._services = tuple(_Service(grpc, f"localhost:{word}") for word in words)

    def read(self) -> Mapping[str, MetricValues]:
        """Ask for every metric; takes :data:`PATIENCE` at most."""
        if self._broken:
            return dict.fromkeys(METRICS, MetricValues(reason=self._broken))
        deadline = self._clock() + PATIENCE
        # Those that answered are asked first, so that those that do not cannot keep them waiting.
        for service in sorted(self._services, key=lambda service: service.pause):
            service.read(deadline, self._clock)
        return {name: _pooled([service.answers[name] for service in self._services]) for name in METRICS}

    def close(self) -> None:
        """Let go of the connections."""
        for service in self._services:
            service.close()
        self._services = ()


class _Service:
    """One address that may have the service."""

    def __init__(self, grpc: Any, address: str) -> None:
        self._grpc = grpc
        self._address = address
        # A proxy is for the world outside, never for this machine.
        options = [("grpc.enable_http_proxy", 0), ("grpc.max_reconnect_backoff_ms", _RECONNECT)]
        self._channel = grpc.insecure_channel(address, options=options)
        self._call = self._channel.unary_unary(METHOD)
        self._silent_until = self._total_due = 0.0
        self.pause = 0.0
        self.answers = dict.fromkeys(METRICS, _LATE)

    def read(self, deadline: float, clock: Callable[[], float]) -> None:
        if clock() < self._silent_until:
            return
        before, self.answers = self.answers, dict.fromkeys(METRICS, _LATE)
        for name in METRICS:
            if name == MEMORY_TOTAL and before[name].values and clock() < self._total_due:
                self.answers[name] = before[name]
                continue
            if (left := deadline - clock()) <= 0:
                return
            try:
                self.answers[name] = self._ask(name, left)
            except TimeoutError:
                self.pause = min(max(1.0, 2 * self.pause), LONGEST_PAUSE)
                self._silent_until = clock() + self.pause
                silence = MetricValues(reason=f"no answer from the TPU runtime at {self._address}")
                self.answers = {name: answer if answer.values else silence for name, answer in self.answers.items()}
                return
            if not self.answers[name].served:
                self.answers = dict.fromkeys(METRICS, self.answers[name])
                break
            if name == MEMORY_TOTAL:
                self._total_due = clock() + TOTAL_EVERY
        self.pause = 0.0

    def close(self) -> None:
        self._channel.close()

    def _ask(self, name: str, timeout: float) -> MetricValues:
        """Ask for a metric; raises :class:`TimeoutError` where no answer comes in time."""
        try:
            values = decode(self._call(text_field(1, name), timeout=timeout))
        except MalformedError as error:
            return MetricValues(reason=f"the answer of {self._address} cannot be read: {error}")
        except self._grpc.RpcError as error:
            return self._refused(name, error)
        if not values:
            return MetricValues(reason="the TPU runtime tells nothing before a program runs on the chip")
        return MetricValues(tuple(value for _, value in sorted(values.items())))

    def _refused(self, name: str, error: Any) -> MetricValues:
        codes, code, details = self._grpc.StatusCode, error.code(), error.details() or ""
        if code is codes.DEADLINE_EXCEEDED:
            raise TimeoutError
        if code is codes.UNAVAILABLE and "http" not in details.lower():
            return MetricValues(reason=f"no program serves TPU readings at {self._address}", served=False)
        if code in {codes.UNAVAILABLE, codes.UNIMPLEMENTED}:
            return MetricValues(reason=f"what listens at {self._address} is no TPU runtime; set {PORTS_VARIABLE}")
        if code in {codes.NOT_FOUND, codes.INVALID_ARGUMENT}:
            return MetricValues(reason=f"the TPU runtime does not know {name}")
        said = f": {details.splitlines()[0]}" if details else ""
        return MetricValues(reason=f"the TPU runtime at {self._address} says {code.name}{said}")


@contextlib.contextmanager
def _hushed() -> Iterator[None]:
    """Keep gRPC, which looks only here, from ever writing to standard error: that is the dashboard's screen.

    The variable is set for native code alone, and for this long: TensorFlow heeds it too, in its own processes.
    """
    if _VERBOSITY in os.environ:
        yield
        return
    os.putenv(_VERBOSITY, "NONE")
    try:
        yield
    finally:
        os.unsetenv(_VERBOSITY)


def decode(answer: bytes) -> dict[int, float]:
    """Read a ``MetricResponse``.

    Returns:
        The values by the runtime's device id.

    Raises:
        MalformedError: The answer is no such message, or a value in it makes no sense.
    """
    values: dict[int, float] = {}
    for metric in Message(answer).message(1).messages(3):
        device, gauge = metric.message(1).message(2).integer(3), metric.message(3)
        value = gauge.double(1) if gauge.double(1) is not None else gauge.integer(2)
        if device is None or value is None:
            raise MalformedError("a value lacks its device or its number")
        if not math.isfinite(value) or value < 0:
            raise MalformedError(f"{value} cannot be")
        values[device] = float(value)
    return values


def _pooled(answers: list[MetricValues]) -> MetricValues:
    """All values there are; else the most telling reason."""
    values = tuple(value for answer in answers for value in answer.values)
    return MetricValues(values) if values else max(answers, key=lambda answer: answer.served)
