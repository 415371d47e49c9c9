"""A fake TPU runtime: a real gRPC server with the runtime's metric service.

It encodes messages with the Protocol Buffers library, to test our own decoder against it.
"""

import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from accel_engine.devices.tpu_metrics import DUTY_CYCLE, MEMORY_TOTAL, MEMORY_USED

PACKAGE = "tpu.monitoring.runtime"

GIB = 2**30

_MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "MetricRequest": {"metric_name": (1, "string")},
    "MetricResponse": {"metric": (1, "TPUMetric")},
    "TPUMetric": {"name": (1, "string"), "description": (2, "string"), "metrics": (3, "repeated Metric")},
    "Metric": {"attribute": (1, "Attribute"), "timestamp": (2, "Timestamp"), "gauge": (3, "Gauge")},
    "Attribute": {"key": (1, "string"), "value": (2, "AttrValue")},
    "Timestamp": {"seconds": (1, "int64"), "nanos": (2, "int32")},
    "AttrValue": {"string_attr": (1, "string"), "int_attr": (3, "int64")},
    "Gauge": {"as_double": (1, "double"), "as_int": (2, "int64")},
}
"""The service's messages, as far as they are used here."""

_ONE_OF = {"AttrValue": "attr", "Gauge": "value"}
"""The oneof of messages in which exactly one field is set, even to 0."""


def _messages() -> Mapping[str, Any]:
    """Create the message classes."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="stand_in.proto", package=PACKAGE, syntax="proto3")
    for message, fields in _MESSAGES.items():
        described = file.message_type.add(name=message)
        if message in _ONE_OF:
            described.oneof_decl.add(name=_ONE_OF[message])
        for name, (number, kind) in fields.items():
            label = kinds.LABEL_REPEATED if kind.startswith("repeated") else kinds.LABEL_OPTIONAL
            field = described.field.add(name=name, number=number, label=label)
            kind = kind.removeprefix("repeated ")
            if kind in _MESSAGES:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".{PACKAGE}.{kind}"
            else:
                field.type = getattr(kinds, f"TYPE_{kind.upper()}")
            if message in _ONE_OF:
                field.oneof_index = 0
    return message_factory.GetMessages([file], pool=descriptor_pool.DescriptorPool())


CLASSES = {name.rpartition(".")[2]: made for name, made in _messages().items()}


class Runtime:
    """A metric service whose responses can be changed.

    Args:
        duty: Duty cycle of each chip, or of each device if they are reported separately, in %.
        used: Used memory of each device, in bytes.
        total: Total memory of each device, in bytes.
        port: Its port; any free one by default.
    """

    def __init__(
        self, duty: Sequence[float] = (), used: Sequence[int] = (), total: Sequence[int] = (), port: int = 0
    ) -> None:
        self.values: dict[str, dict[int, float]] = {
            DUTY_CYCLE: dict(enumerate(map(float, duty))),
            MEMORY_USED: dict(enumerate(used)),
            MEMORY_TOTAL: dict(enumerate(total)),
        }
        """By metric, then by the runtime's device id."""
        self.instead: bytes | grpc.StatusCode | None = None
        """Returned instead of any response."""
        self.questions = 0
        """Number of requests."""
        self._flowing = threading.Event()
        self._flowing.set()
        self._threads = ThreadPoolExecutor(max_workers=4)
        self._server = grpc.server(self._threads)
        handler = grpc.unary_unary_rpc_method_handler(self._answer)
        service = grpc.method_handlers_generic_handler(f"{PACKAGE}.RuntimeMetricService", {"GetRuntimeMetric": handler})
        self._server.add_generic_rpc_handlers((service,))
        self.port = self._server.add_insecure_port(f"localhost:{port}")
        self._server.start()

    def stall(self) -> None:
        """Block all responses until :meth:`flow`."""
        self._flowing.clear()

    def flow(self) -> None:
        """Respond again."""
        self._flowing.set()

    def stop(self) -> None:
        """Stop immediately, like a program that exits."""
        stopped = self._server.stop(None)
        self._flowing.set()
        stopped.wait()
        self._threads.shutdown()

    def _answer(self, request: bytes, context: Any) -> bytes:
        self.questions += 1
        self._flowing.wait()
        if isinstance(self.instead, grpc.StatusCode):
            context.abort(self.instead, "as it was told")
        if isinstance(self.instead, bytes):
            return self.instead
        name = CLASSES["MetricRequest"].FromString(request).metric_name
        if name not in self.values:
            context.abort(grpc.StatusCode.NOT_FOUND, f"no metric {name}")
        return response(name, self.values[name])


@contextmanager
def kept(port: int) -> Iterator[None]:
    """Reserve a runtime's port while none listens there."""
    with socket.socket() as held:
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            held.setsockopt(socket.SOL_SOCKET, option, 1)
        held.bind(("127.0.0.1", port))
        yield


def response(name: str, values: Mapping[int, float]) -> bytes:
    """Encode a ``MetricResponse`` as the runtime does, with integers as ``as_int``."""
    whole = CLASSES["MetricResponse"]()
    whole.metric.name, whole.metric.description = name, "for tests"
    for device, value in values.items():
        metric = whole.metric.metrics.add()
        metric.attribute.key, metric.attribute.value.int_attr = "device-id", device
        metric.timestamp.seconds, metric.timestamp.nanos = 1_700_000_000, 5
        if isinstance(value, float):
            metric.gauge.as_double = value
        else:
            metric.gauge.as_int = value
    return bytes(whole.SerializeToString())
