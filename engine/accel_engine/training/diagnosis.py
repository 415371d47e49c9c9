"""What went wrong, in words, and what could be done about it."""

import traceback

import tensorflow as tf

from accel_engine.errors import AccelError
from accel_engine.plan import Plan


def diagnose(error: BaseException, plan: Plan) -> tuple[str, str]:
    """Explain why a run failed.

    Returns:
        The reason, and a hint, which may be empty.
    """
    if isinstance(error, AccelError):
        return str(error), ""
    if isinstance(error, tf.errors.ResourceExhaustedError | MemoryError):
        advice = [f"a smaller batch (it is {plan.batch_size}; try {max(1, plan.batch_size // 2)})"]
        if plan.precision == "float32":
            advice.append("--precision mixed_bfloat16")
        advice.append("a smaller model")
        return "out of memory", f"try {', '.join(advice)}"
    place = _user_line(error)
    text = " ".join(str(error).split()) or type(error).__name__
    return f"{type(error).__name__}: {text[:400]}{place}", "log.txt in the run's directory has the whole traceback"


def _user_line(error: BaseException) -> str:
    """Where in the user's own file it happened, if it did."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if "site-packages" not in frame.filename and "accel_engine" not in frame.filename:
            return f" ({frame.filename}, line {frame.lineno})"
    return ""
