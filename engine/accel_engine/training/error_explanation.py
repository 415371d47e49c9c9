"""What went wrong, in words, and what could be done about it."""

import errno
import os
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf

from accel_engine.errors import AccelError
from accel_engine.models.user_code import one_line
from accel_engine.plan import Plan

_DISK_FULL = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT), "database or disk is full")
"""What the system and SQLite say; TensorFlow's type of it is that of a device out of memory."""

_NOT_THE_USERS = tuple(
    str(folder)
    for folder in (Path(__file__).parents[1], *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")))
)


def explain_error(error: BaseException, plan: Plan) -> tuple[str, str]:
    """Explain why a run failed.

    Returns:
        The reason, and a hint, which may be empty.
    """
    if isinstance(error, AccelError):
        return str(error), ""
    if any(words in str(error) for words in _DISK_FULL):
        return "the disk is full", "free disk space, then continue the run from its last checkpoint"
    if isinstance(error, tf.errors.ResourceExhaustedError | MemoryError):
        advice = [f"a smaller batch (it is {plan.batch_size}; try {max(1, plan.batch_size // 2)})"]
        parts = 2 * (plan.micro_batches or 1)
        if plan.batch_size % parts == 0:
            advice.insert(0, f"--micro-batches {parts}, which takes the same batch in less memory")
        if plan.policy == "float32":
            advice.append("--precision mixed_bfloat16")
        advice.append("a smaller model")
        return "out of memory", f"try {', '.join(advice)}"
    # What is raised while a graph is traced has its whole way through the code for a message.
    traced = getattr(error, "ag_error_metadata", None)
    text = traced.cause_message if traced else f"{type(error).__name__}: {error}"
    return f"{one_line(text)}{_user_line(error)}", "log.txt in the run's directory has the whole traceback"


def _user_line(error: BaseException) -> str:
    """Where in the user's own file it happened, if it did."""
    for name, line in _places(error):
        if not name.startswith(_NOT_THE_USERS) and Path(name).is_file():
            return f" ({name}, line {line})"
    return ""


def _places(error: BaseException) -> Iterator[tuple[str, int | None]]:
    """Files and lines that an exception came through, innermost first."""
    if traced := getattr(error, "ag_error_metadata", None):
        for frame in traced.translated_stack:
            yield frame.filename, frame.lineno
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        yield frame.filename, frame.lineno
