"""Standard input and output, for talking with the program that started this process."""

import os
from typing import TextIO


def claim_pipes() -> tuple[TextIO, TextIO]:
    """Requests and replies: standard input and output, kept for them alone.

    What anybody else prints goes where errors go, and there is nothing to read.
    """
    requests, replies = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w", buffering=1)
    null = os.open(os.devnull, os.O_RDONLY)
    redirect(0, null)
    os.dup2(2, 1)
    return requests, replies


def redirect(descriptor: int, file: int) -> None:
    """Let a descriptor be an open file, and close the file's own."""
    os.dup2(file, descriptor)
    os.close(file)
