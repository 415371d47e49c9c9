"""A stand-in for the runtime of a program that uses TPU chips: a real gRPC server with its metric service.

It writes its messages with Protocol Buffers' own library, so that our reading of them is held to that.
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
"""The service's messages, as far as anything here writes or reads them."""

_ONE_OF = {"AttrValue": "attr", "Gauge": "value"}
"""The messages of which one field is set, though it be 0."""


def _messages() -> Mapping[str, Any]:
    """The classes of the messages."""
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
    """Answers until it is told to refuse, to stall or to answer something else.

    Args:
        duty: Of each chip, or of each device where the runtime counts them apart, in %.
        used: Memory in use of each device, in bytes.
        total: Memory of each device, in bytes.
        port: Where it listens; any free one when left out.
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
        """What is given instead of any answer."""
        self.questions = 0
        """How often it was asked for a metric."""
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
        """Answer nothing until :meth:`flow`."""
        self._flowing.clear()

    def flow(self) -> None:
        """Answer again."""
        self._flowing.set()

    def stop(self) -> None:
        """End, as with the program, in the middle of whatever it was about to answer."""
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
    """Have a runtime's port given to nobody else while none listens there."""
    with socket.socket() as held:
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            held.setsockopt(socket.SOL_SOCKET, option, 1)
        held.bind(("127.0.0.1", port))
        yield


def response(name: str, values: Mapping[int, float]) -> bytes:
    """A ``MetricResponse`` as the runtime writes it, with whole numbers as such."""
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
