"""Tells errors of a device or host that is out of memory from all others."""

import errno
import os
import re
from collections.abc import Iterator

import tensorflow as tf

_OTHER_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EMLINK, errno.EUSERS)
_OTHER_RESOURCES = (*map(os.strerror, _OTHER_ERRORS), "database or disk is full", "message larger than max")
"""Messages of what TensorFlow reports by the same type of error as memory."""

_MESSAGES = re.compile(
    r"out of memory|out_of_memory|resource_exhausted|\boom\b|bad_alloc|_alloc_failed|failed to allocate"
    r"|unable to allocate|cannot allocate memory|could not execute a primitive|could not create a memory"
    r"|status: 1, message: could not create",
    re.IGNORECASE,
)
"""Messages of XLA, CUDA and its libraries, and of oneDNN, whose errors have various types.

oneDNN says no more than that a primitive failed, when it cannot allocate its scratch pad. Its status 1 is
``dnnl_out_of_memory``.
"""

_TYPES = (tf.errors.InternalError, tf.errors.UnknownError, tf.errors.AbortedError)
"""Types of the errors that may have such a message."""

_SHAPE = re.compile(r"tensor with shape\s*\[([\d,]+)\] and type (\w+)")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error, or one that caused it, says that the memory of a device or of the host does not suffice."""
    return any(_is_out_of_memory(each) for each in _causes(error))


def is_of_host(error: BaseException) -> bool:
    """Whether an error of this kind is about the memory of the host, not that of an accelerator."""
    return any(isinstance(each, MemoryError | OSError) or "allocator cpu" in str(each) for each in _causes(error))


def allocated(error: BaseException) -> str:
    """What could not be allocated, such as ``a float tensor of 64x1000``; empty if the error does not say so."""
    for each in _causes(error):
        if found := _SHAPE.search(str(each)):
            return f"a {found[2]} tensor of {found[1].replace(',', 'x')}"
    return ""


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, tf.errors.ResourceExhaustedError):
        return not any(words in str(error) for words in _OTHER_RESOURCES)
    return isinstance(error, _TYPES) and _MESSAGES.search(str(error)) is not None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error, and those that it was raised from."""
    cause: BaseException | None = error
    seen: list[BaseException] = []
    while cause is not None and cause not in seen:
        seen.append(cause)
        yield cause
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
