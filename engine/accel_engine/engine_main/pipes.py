"""Reserves standard input and output for the program that started this process."""

import os
from typing import TextIO


def claim_pipes() -> tuple[TextIO, TextIO]:
    """Return standard input and output as streams of requests and replies.

    Other output of this process goes to standard error, and its standard input is empty.
    """
    requests, replies = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w", buffering=1)
    null = os.open(os.devnull, os.O_RDONLY)
    redirect(0, null)
    os.dup2(2, 1)
    return requests, replies


def redirect(descriptor: int, file: int) -> None:
    """Make a descriptor refer to an open file, and close the file's own descriptor."""
    os.dup2(file, descriptor)
    os.close(file)
