"""Reserves standard input and output for the program that started this process."""

import os

from accel_engine.requests.protocol.channel import Channel


def claim_pipes() -> Channel:
    """Return standard input and output as a channel.

    Other output of this process goes to standard error, and its standard input is empty.
    """
    channel = Channel(os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w"))
    null = os.open(os.devnull, os.O_RDONLY)
    redirect(0, null)
    os.dup2(2, 1)
    return channel


def redirect(descriptor: int, file: int) -> None:
    """Make a descriptor refer to an open file, and close the file's own descriptor."""
    os.dup2(file, descriptor)
    os.close(file)
