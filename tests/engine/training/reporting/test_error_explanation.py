import errno
import os

import pytest
import tensorflow as tf

from accel_engine.errors import DatabaseError, ModelError
from accel_engine.plan import Plan
from accel_engine.training.reporting.error_explanation import explain_error


@pytest.mark.parametrize(
    "error",
    [
        tf.errors.ResourceExhaustedError(None, None, "/runs/step-3.data; No space left on device [Op:SaveV2]"),
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        DatabaseError("database or disk is full"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_full_disk_is_distinguished_from_full_memory(error: Exception) -> None:
    reason, hint = explain_error(error, Plan())

    assert reason == "the disk is full"
    assert "continue" in hint


def test_out_of_memory_comes_with_suggestions() -> None:
    reason, hint = explain_error(
        tf.errors.ResourceExhaustedError(None, None, "OOM when allocating"), Plan(batch_size=64)
    )

    assert reason == "out of memory"
    assert "--micro-batches 2" in hint
    assert "(32 instead of 64)" in hint
    assert "mixed_bfloat16" in hint


def test_suggested_micro_batches_divide_the_batch() -> None:
    error = tf.errors.ResourceExhaustedError(None, None, "OOM when allocating")

    assert "--micro-batches 8" in explain_error(error, Plan(batch_size=1000, micro_batches=4))[1]
    assert "micro-batches" not in explain_error(error, Plan(batch_size=100, micro_batches=4))[1]


def test_errors_for_the_user_are_unchanged() -> None:
    assert explain_error(ModelError("it takes images"), Plan()) == ("it takes images", "")
    assert explain_error(DatabaseError("the database is locked"), Plan()) == ("the database is locked", "")


def test_other_errors_are_shortened_to_one_line() -> None:
    assert explain_error(ValueError("so\n  and so"), Plan())[0] == "ValueError: so and so"
