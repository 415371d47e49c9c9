"""How a run is deployed: the options of the command and of the form."""

import re
from dataclasses import dataclass, replace

from accel_engine.errors import UsageError
from accel_engine.formats import all_formats, target_name
from accel_engine.model_server.access import is_loopback
from accel_engine.plan.options import OptionSpec, option, parse_latency
from accel_engine.requests.check_service import TOKEN_FILE
from accel_engine.requests.protocol.model_reference import CHECKPOINT, DEVICE

SERVED_FORMATS = ("onnx", "tflite", "savedmodel")
"""The formats that the model server runs, in the order in which they are tried."""

TARGETS = {
    target_name(each.name, precision.name): (each.name, precision.name)
    for name in SERVED_FORMATS
    for each in all_formats()
    if each.name == name
    for precision in each.precisions
}
"""What can be served, by format and precision in a word: see :func:`accel_engine.formats.target_name`."""

AUTO = "auto"
"""The first of :data:`SERVED_FORMATS` that is equal to the trained model; in an update, the format of before."""

DEFAULT_PORT = 8501
"""The port of TensorFlow Serving's REST protocol."""

OF_SERVERS = ("port", "grpc_port", "host", "token_file", "tls_certificate", "tls_key", "max_queue")
"""Options of a server that is started here; the server of a folder gets them where it is started."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)

_PORT = OptionSpec(
    f"Port of HTTP; {DEFAULT_PORT} by default, or the next free one; of a stopped deployment, the one of before.",
    int,
    minimum=1,
    maximum=65535,
    optional=True,
    hint=f"{DEFAULT_PORT}, or the next free one",
)


def read_name(text: str) -> str:
    """Check the name of a deployment, which may be empty.

    Raises:
        UsageError: The name is too long or has other characters.
    """
    if text and not _NAME.fullmatch(text):
        raise UsageError(f"{text!r} is not a name: use up to 63 letters, digits, dots, dashes and underscores")
    return text


def _read_device(text: str) -> str:
    return DEVICE.value_of("device", text) if text.strip() else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployOptions:
    """How a run is deployed.

    Raises:
        UsageError: Two options contradict each other, or one lacks another that it needs.
    """

    name: str = option(
        "",
        OptionSpec(
            "Name of the deployment; the run's by default.",
            str,
            hint="the run's",
            read=read_name,
        ),
    )
    port: int | None = option(None, _PORT)
    grpc_port: int | None = option(
        None,
        replace(_PORT, doc="Port of gRPC; none by default.", hint="none", label="gRPC port"),
    )
    format: str = option(
        AUTO,
        OptionSpec(
            f"Format: {', '.join(TARGETS)}; auto: the first of {', '.join(SERVED_FORMATS)} that is equal.",
            str,
            choices=(AUTO, *TARGETS),
            notes={AUTO: f"the first of {', '.join(SERVED_FORMATS)} that is equal to the trained model"},
            metavar="FORMAT",
        ),
    )
    checkpoint: str = option("auto", CHECKPOINT)
    threads: int | None = option(
        None,
        OptionSpec(
            "Threads of a batch; as many as processors by default, one with --to.",
            int,
            hint="as many as processors; one in a folder",
            minimum=1,
            maximum=1024,
            optional=True,
        ),
    )
    device: str = option(
        "",
        replace(
            DEVICE,
            doc="Where a savedmodel computes: the CPU by default, in an update as before; other formats use the CPU.",
            hint="cpu; in an update as before",
            read=_read_device,
        ),
    )
    target_latency: float | None = option(
        None,
        OptionSpec(
            "The most that p99 may be: formats and threads are measured, and the fastest is deployed.",
            str,
            label="latency",
            metavar="20ms",
            hint="of p99, such as 20ms; measures all formats",
            read=parse_latency,
        ),
    )
    target_rate: float | None = option(
        None,
        OptionSpec(
            "Requests per second to be served: how many machines like this one?",
            float,
            label="rate",
            above=0,
            maximum=1e12,
            optional=True,
            metavar="500",
            hint="requests/s: how many machines?",
        ),
    )
    host: str = option("127.0.0.1", OptionSpec("Address to listen on; any but loopback needs a token.", str))
    token_file: str = option("", replace(TOKEN_FILE, doc="File with the token that requests need."))
    tls_certificate: str = option(
        "", OptionSpec("File with the certificate of HTTPS.", str, metavar="PEM", label="certificate")
    )
    tls_key: str = option("", OptionSpec("File with its key.", str, metavar="PEM", label="key"))
    max_queue: int = option(
        1024, OptionSpec("Examples that wait at most; more get 429.", int, minimum=1, label="queue")
    )

    @property
    def computes_on(self) -> str:
        """The device that the user wants."""
        return self.device or "cpu"

    def __post_init__(self) -> None:
        if bool(self.tls_certificate) != bool(self.tls_key):
            raise UsageError("HTTPS takes a certificate and its key: give --tls-certificate and --tls-key")
        if not is_loopback(self.host) and not self.token_file:
            raise UsageError(
                f"--host {self.host} lets other machines in: give --token-file FILE, whose token requests then need"
            )
        if self.target_rate is not None and self.target_latency is None:
            raise UsageError("--target-rate needs --target-latency: a rate without one says nothing of waiting")
        if self.port is not None and self.port == self.grpc_port:
            raise UsageError("HTTP and gRPC need two ports")
