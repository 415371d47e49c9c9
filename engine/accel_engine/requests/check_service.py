"""Asks whether a service answers as a trained model does, how fast, and with which metrics."""

from dataclasses import dataclass, field
from typing import ClassVar

from accel_engine.plan.options import OptionSpec, option
from accel_engine.requests.export_model import MeasuredModel
from accel_engine.requests.protocol.model_reference import CHECKPOINT, SPLIT, ModelReference
from accel_engine.requests.protocol.request import EngineRequest, ExamplesDone

PROTOCOLS = {
    "auto": "the first of these that the service speaks",
    "v2": "the Open Inference Protocol over HTTP, with JSON",
    "v2-binary": "the same with raw bytes",
    "v1": "TensorFlow Serving's protocol over HTTP",
    "grpc": "the Open Inference Protocol over gRPC",
}
"""How a service can be asked."""

TOKEN_FILE = OptionSpec(
    "File with the token that the service wants.", str, metavar="FILE", suffixes=None, label="token"
)
"""The option for a file with a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """How a service is checked.

    Attributes:
        protocol: One of :data:`PROTOCOLS`.
        tolerance: How far outputs may be from the trained model's; ``None`` for what the service's format allows.
        checkpoint: The weights that it should have.
        split: The examples.
        connections: Connections that are open at once while its rate is measured.
        seconds: Time limit of each measurement; 0 for none.
        token_file: A file with a token; empty for none.
        ca: A file with the certificates that are trusted; empty for the system's.
    """

    protocol: str = option(
        "auto", OptionSpec("How to ask the service.", str, choices=tuple(PROTOCOLS), notes=PROTOCOLS)
    )
    tolerance: float | None = option(
        None, OptionSpec("Largest difference of outputs.", float, minimum=0, optional=True, hint="by format")
    )
    checkpoint: str = option("auto", CHECKPOINT)
    split: str = option("auto", SPLIT)
    connections: int = option(16, OptionSpec("Connections for the rate.", int, minimum=1, maximum=1024))
    seconds: float = option(
        3.0, OptionSpec("Time limit of each measurement; 0 measures nothing.", float, minimum=0, maximum=3600)
    )
    token_file: str = option("", TOKEN_FILE)
    ca: str = option("", OptionSpec("File with the certificates to trust.", str, metavar="FILE", label="certificates"))


@dataclass(frozen=True, slots=True)
class ServiceLoad:
    """What was measured of a service with single examples.

    Attributes:
        connections: Connections that were open at once.
        rate: Requests answered in a second.
        p50: The median latency in seconds.
        p99: The 99th percentile.
        requests: Requests that these figures are of.
        is_stable: Whether the last windows agree.
    """

    connections: int
    rate: float
    p50: float
    p99: float
    requests: int
    is_stable: bool


@dataclass(frozen=True, slots=True)
class ServiceCheck:
    """How a service compares with a trained model.

    Attributes:
        name: The run's id, or the file's name.
        step: Steps that the model was trained for.
        split: The examples.
        examples: Their number.
        notes: Warnings for the user.
        protocol: How the service was asked.
        model: The name of its model.
        version: Its version; empty if unknown.
        platform: What runs it; empty if unknown.
        server: The server's name and version; empty if unknown.
        tolerance: How far its outputs may be from the trained model's.
        by_mean: Whether that limits the mean over the examples.
        original: The trained model.
        served: The service's; its ``problem`` says why it is not equal.
        loads: How fast it is.
    """

    name: str
    step: int
    split: str
    examples: int
    notes: tuple[str, ...]
    protocol: str
    model: str
    version: str
    platform: str
    server: str
    tolerance: float
    by_mean: bool
    original: MeasuredModel
    served: MeasuredModel
    loads: tuple[ServiceLoad, ...] = ()


@dataclass(frozen=True, slots=True)
class MeasuringService:
    """A part of an answer: the service's speed is measured.

    Attributes:
        connections: Connections that are open at once.
    """

    connections: int


@dataclass(frozen=True, slots=True)
class CheckServiceRequest(EngineRequest[ServiceCheck]):
    """A request to check a service.

    Attributes:
        reference: The model that it should serve.
        url: The service.
        options: How.
        token: Sent as a bearer token; empty for none.
    """

    function: ClassVar = "accel_engine.model_export.service_check:check_service"
    result: ClassVar = ServiceCheck
    parts: ClassVar = (ExamplesDone, MeasuringService)
    is_batch: ClassVar = False

    reference: ModelReference
    url: str
    options: CheckOptions = field(default_factory=CheckOptions)
    token: str = ""

    def check(self) -> None:
        """See :meth:`EngineRequest.check`.

        Raises:
            RunError: The run has no checkpoint.
        """
        self.reference.check()


REQUEST = CheckServiceRequest
