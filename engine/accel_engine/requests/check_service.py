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
    "grpc-v1": "TensorFlow Serving's protocol over gRPC",
}
"""How a service can be asked."""

TOKEN_FILE = OptionSpec(
    "File with the token that the service wants.", str, metavar="FILE", suffixes=None, label="token"
)
"""The option for a file with a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """How a service is checked."""

    protocol: str = option(
        "auto", OptionSpec("How to ask the service.", str, choices=tuple(PROTOCOLS), notes=PROTOCOLS)
    )
    """One of :data:`PROTOCOLS`."""
    tolerance: float | None = option(
        None, OptionSpec("Largest difference of outputs.", float, minimum=0, optional=True, hint="by format")
    )
    """How far outputs may be from the trained model's; ``None`` for what the service's format allows."""
    checkpoint: str = option("auto", CHECKPOINT)
    """The weights that it should have."""
    split: str = option("auto", SPLIT)
    """The examples."""
    connections: int = option(16, OptionSpec("Connections for the rate.", int, minimum=1, maximum=1024))
    """Connections that are open at once while its rate is measured."""
    seconds: float = option(
        3.0, OptionSpec("Time limit of each measurement; 0 measures nothing.", float, minimum=0, maximum=3600)
    )
    """Time limit of each measurement; 0 for none."""
    token_file: str = option("", TOKEN_FILE)
    """A file with a token; empty for none."""
    ca: str = option("", OptionSpec("File with the certificates to trust.", str, metavar="FILE", label="certificates"))
    """A file with the certificates that are trusted; empty for the system's."""


@dataclass(frozen=True, slots=True)
class ServiceLoad:
    """The measurements of a service with single examples."""

    connections: int
    """Connections that were open at once."""
    rate: float
    """Requests answered in a second."""
    p50: float
    """The median latency in seconds."""
    p99: float
    """The 99th percentile."""
    requests: int
    """Requests that these figures are of."""
    is_stable: bool
    """Whether the last windows agree."""


@dataclass(frozen=True, slots=True)
class ServiceCheck:
    """How a service compares with a trained model."""

    name: str
    """The run's id, or the file's name."""
    step: int
    """Steps that the model was trained for."""
    split: str
    """The examples."""
    examples: int
    """Their number."""
    notes: tuple[str, ...]
    """Warnings for the user."""
    protocol: str
    """How the service was asked."""
    model: str
    """The name of its model."""
    version: str
    """Its version; empty if unknown."""
    platform: str
    """The platform that runs it; empty if unknown."""
    server: str
    """The server's name and version; empty if unknown."""
    tolerance: float
    """How far its outputs may be from the trained model's."""
    by_mean: bool
    """Whether that limits the mean over the examples."""
    original: MeasuredModel
    """The trained model."""
    served: MeasuredModel
    """The service's; its ``problem`` says why it is not equal."""
    loads: tuple[ServiceLoad, ...] = ()
    """How fast it is."""


@dataclass(frozen=True, slots=True)
class MeasuringService:
    """A part of an answer: the service's speed is measured."""

    connections: int
    """Connections that are open at once."""


@dataclass(frozen=True, slots=True)
class CheckServiceRequest(EngineRequest[ServiceCheck]):
    """A request to check a service."""

    function: ClassVar = "accel_engine.model_export.service_check:check_service"
    result: ClassVar = ServiceCheck
    parts: ClassVar = (ExamplesDone, MeasuringService)
    is_batch: ClassVar = False

    reference: ModelReference
    """The model that it should serve."""
    url: str
    options: CheckOptions = field(default_factory=CheckOptions)
    token: str = ""
    """Sent as a bearer token; empty for none."""

    def check(self) -> None:
        """See :meth:`EngineRequest.check`.

        Raises:
            RunError: The run has no checkpoint.
        """
        self.reference.check()


REQUEST = CheckServiceRequest
