"""A channel to a service that speaks gRPC, for messages that are bytes."""

from pathlib import Path
from typing import Any

from accel_engine.errors import ModelError, UsageError, file_errors
from accel_engine.service_client.transport import SECONDS, TOO_LARGE, ServiceError, UnreachableError

MAX_BYTES = 1 << 28
"""Bytes of an answer at most; gRPC's own limit is 4 MiB."""

_LARGE = ("larger than max", "exceeds maximum size")
"""What gRPC's libraries say of a message that is too large, in C++ and Go, and in Java."""


class GrpcChannel:
    """A channel. Usable from several threads.

    Args:
        address: Host and port.
        token: Sent as a bearer token, if there is one.
        is_secure: Whether the connection is encrypted.
        ca: A file with the certificates that are trusted; empty for the system's.

    Raises:
        UsageError: gRPC is not installed, or the certificates cannot be read.
    """

    def __init__(self, address: str, *, token: str = "", is_secure: bool = False, ca: str = "") -> None:
        try:
            import grpc  # slow to import, and optional

            from accel_engine.model_server import grpc_messages
        except ImportError as error:
            raise UsageError(f"gRPC needs {error.name}: pip install 'accel-tui[deploy]'") from error
        self._grpc, self._address, self._messages = grpc, address, grpc_messages
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        options = [("grpc.max_receive_message_length", MAX_BYTES), ("grpc.max_send_message_length", MAX_BYTES)]
        self._channel = (
            grpc.secure_channel(address, grpc.ssl_channel_credentials(_certificates(ca)), options)
            if is_secure
            else grpc.insecure_channel(address, [*options, ("grpc.enable_http_proxy", 0)])
        )
        self._has_answered = False

    def call(self, service: str, method: str, request: bytes) -> bytes:
        """The answer to a call.

        Raises:
            UnreachableError: The server does not answer, and never has.
            ServiceError: The service refuses the call; the status is 501 if it has no such method, 413 if the request
                is too large, 429 if it is busy, or has answered before and does not now.
        """
        try:
            answer: bytes = self._channel.unary_unary(f"/{service}/{method}")(
                request, timeout=SECONDS, metadata=self._metadata
            )
        except self._grpc.RpcError as error:
            name, details = error.code().name, " ".join((error.details() or "").split())
            if name == "UNAVAILABLE" and not self._has_answered:
                raise UnreachableError(f"grpc://{self._address} cannot be reached: {details}") from error
            is_large = name == "OUT_OF_RANGE" or any(words in details.lower() for words in _LARGE)
            busy = name in ("RESOURCE_EXHAUSTED", "UNAVAILABLE") and not is_large
            status = TOO_LARGE if is_large else 429 if busy else 501 if name == "UNIMPLEMENTED" else 0
            raise ServiceError(f"{method}: {name}: {details}", status, 0.1 if busy else None) from error
        self._has_answered = True
        return answer

    def ask(self, service: str, method: str, **fields: Any) -> Any:
        """The answer to a call with some fields, as a message; see :meth:`call`.

        Raises:
            ServiceError: The answer is not a message of the protocol.
        """
        try:
            return self.parsed(service, method, self.call(service, method, self.request(service, method, **fields)))
        except ModelError as error:
            raise ServiceError(str(error)) from error

    def request(self, service: str, method: str, **fields: Any) -> bytes:
        """The encoded message of a call with some fields."""
        return self._messages.methods(service)[method][0](**fields).SerializeToString()

    def parsed(self, service: str, method: str, answer: bytes) -> Any:
        """The message of an answer.

        Raises:
            ModelError: The answer is not a message of the protocol.
        """
        try:
            return self._messages.methods(service)[method][1].FromString(answer)
        except self._messages.DecodeError as error:
            raise ModelError(f"the answer is not a message of the protocol: {error}") from error


def _certificates(ca: str) -> bytes | None:
    with file_errors(f"{ca} has no certificates", UsageError):
        return Path(ca).read_bytes() if ca else None
