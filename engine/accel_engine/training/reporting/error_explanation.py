"""Explains why a run failed, such as for lack of memory, with a hint for the user and the cause's traceback."""

import errno
import os
import re
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf

from accel_engine import strategies
from accel_engine.errors import AccelError, DatabaseError, frames_in, is_disk_full
from accel_engine.plan import Plan
from accel_engine.plan.changed_plan import options_text
from accel_engine.plan.memory_remedies import MIXED, MemoryFacts, advised
from accel_engine.user_code import one_line

_LIBRARY_FOLDERS = tuple(
    str(folder)
    for folder in (Path(__file__).parents[2], *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")))
)


def explain_error(error: BaseException, plan: Plan) -> tuple[str, str]:
    """Explain why a run failed.

    Args:
        error: What training raised.
        plan: The plan, with the changes of what was tried.

    Returns:
        The reason and a hint, which may be empty.
    """
    if isinstance(error, AccelError) and not isinstance(error, DatabaseError):
        return str(error), ""
    if is_disk_full(error):
        return "the disk is full", "free some space and continue the run from its last checkpoint"
    if isinstance(error, AccelError):
        return str(error), ""
    if is_out_of_memory(error):
        return "out of memory", _memory_advice(plan, error)
    return f"{message_of(error)}{_user_line(error)}", "the full traceback is in log.txt in the run's directory"


def _memory_advice(plan: Plan, error: BaseException) -> str:
    """The remedies that did not help a run that is out of memory, and others that may."""
    several = strategies.find(plan.strategy).processes  # none of them changes the plan by itself
    is_left = plan.on_oom == "fail" or several
    gpus = len(tf.config.list_physical_devices("GPU"))
    facts = MemoryFacts(
        batch=plan.batch_size,
        can_split=True,
        can_recompute=True,
        mixed=MIXED["tpu"],
        can_place_state=True,
        on_host=gpus == 0,
        pipeline_devices=gpus,
    )
    advice = ["--on-oom adapt, which changes what is needed by itself"] if is_left and not several else []
    for remedy, value in advised(plan, facts):
        if is_left or not remedy.by_itself:
            again = ", which accel-tui continue takes from the last checkpoint on" if remedy.field == "strategy" else ""
            advice.append(f"{remedy.words}: {options_text({remedy.field: value})}{again}")
    advice += [*_allocator_advice(error), "a smaller model"]
    split = f"{plan.micro_batches} micro-batches" if (plan.micro_batches or 1) > 1 else ""
    done = " and ".join(filter(None, (split, "rematerialization" if plan.remat == "on" else "")))
    return f"{f'{done} did not help; ' if done else ''}try {', '.join(advice)}"


_OF_GPU = re.compile(r"allocator gpu|\bgpu:\d|gpu_\d+_bfc|cuda|cudnn", re.IGNORECASE)

_SCRATCH = (
    (re.compile("autotun", re.IGNORECASE), "XLA_FLAGS=--xla_gpu_autotune_level=0, without XLA's trials of kernels"),
    (
        re.compile("cudnn|workspace|scratch", re.IGNORECASE),
        "TF_CUDNN_WORKSPACE_LIMIT_IN_MB=512, not cuDNN's 4 GiB",
    ),
)
"""Messages about memory that libraries take for a moment, and the variable of the environment that limits it."""


def _allocator_advice(error: BaseException) -> Iterator[str]:
    """Variables of the environment with which the memory of a GPU may suffice."""
    text = " ".join(str(each) for each in _causes(error))
    if not _OF_GPU.search(text):
        return
    if not os.environ.get("TF_GPU_ALLOCATOR"):
        yield "TF_GPU_ALLOCATOR=cuda_malloc_async, if the log shows more free memory than was asked for, in pieces"
    yield from (words for pattern, words in _SCRATCH if pattern.search(text))


def print_traceback(error: BaseException) -> None:
    """Print the traceback of an error to standard error, which is the run's log.

    For an error with a message for the user, only the exception that caused it is printed, if there is one: from the
    user's own code on, or as a whole if it was raised elsewhere.
    """
    cause: BaseException | None = error
    seen: list[BaseException | None] = []
    while isinstance(cause, AccelError) and cause not in seen:  # an error raised again may be its own cause
        seen.append(cause)
        cause = cause.__cause__ if cause.__cause__ not in seen else cause.__context__
    if cause is error:
        traceback.print_exception(error)
    elif cause is not None and not isinstance(cause, AccelError):
        frames = cause.__traceback__
        while frames and _user_line(cause) and not _is_users(frames.tb_frame.f_code.co_filename):
            frames = frames.tb_next
        traceback.print_exception(type(cause), cause, frames)


def message_of(error: BaseException) -> str:
    """The message of an exception on one line; an exception raised while tracing has the whole traceback in it."""
    traced = getattr(error, "ag_error_metadata", None)
    return one_line(traced.cause_message if traced else f"{type(error).__name__}: {error}")


def _user_line(error: BaseException) -> str:
    """The file and line in the user's own code, in parentheses; empty if it was raised elsewhere."""
    for name, line in _frames(error):
        if _is_users(name):
            return f" ({name}, line {line})"
    return ""


def _is_users(file: str) -> bool:
    return not file.startswith(_LIBRARY_FOLDERS) and Path(file).is_file()


def _frames(error: BaseException) -> Iterator[tuple[str, int | None]]:
    """Files and lines of an exception's traceback, innermost first."""
    if traced := getattr(error, "ag_error_metadata", None):
        for frame in traced.translated_stack:
            yield frame.filename, frame.lineno
    yield from reversed(frames_in(str(error)))  # of the code that built the part of the graph that failed
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        yield frame.filename, frame.lineno


_OTHER_RESOURCES = (
    *map(os.strerror, (errno.EMFILE, errno.ENFILE, errno.EMLINK, errno.EUSERS)),
    "message larger than max",
)
"""Messages of what TensorFlow reports by the same type of error as memory, besides a full disk."""

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
    """Whether an error of this kind is about the memory of the host, not of an accelerator."""
    return any(isinstance(each, MemoryError | OSError) or "allocator cpu" in str(each) for each in _causes(error))


def allocated(error: BaseException) -> str:
    """The tensor that could not be allocated, such as ``a float tensor of 64x1000``; empty if the error has none."""
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
        return not is_disk_full(error) and not any(words in str(error) for words in _OTHER_RESOURCES)
    return isinstance(error, _TYPES) and _MESSAGES.search(str(error)) is not None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error, and those that it was raised from."""
    cause: BaseException | None = error
    seen: list[BaseException] = []
    while cause is not None and cause not in seen:
        seen.append(cause)
        yield cause
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
