"""Errors that a client gets as an answer."""

from accel_engine.errors import AccelError


class RequestError(AccelError):
    """A request that is not answered with predictions.

    Args:
        message: What is wrong, and what is right.
        status: The HTTP status, such as 400 for what the client sent, 413 if it is too large, 429 if the server is
            busy, 503 if it cannot compute now, 504 if it took too long.
        retry_after: Seconds after which the client may try again; 0 for never.
    """

    def __init__(self, message: str, status: int = 400, retry_after: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
