import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import tensorflow as tf

from accel_engine.data.array_file import opened
from accel_engine.errors import AccelError, DatabaseError, DataError, ModelError, PlanError
from accel_engine.plan import Plan
from accel_engine.training.reporting.error_explanation import explain_error, print_traceback
from accel_engine.user_code import UserFunction


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


@pytest.mark.parametrize("plan", [Plan(on_oom="fail"), Plan(strategy="multi-worker", local_workers=2)])
def test_out_of_memory_comes_with_suggestions(plan: Plan) -> None:
    reason, hint = explain_error(tf.errors.ResourceExhaustedError(None, None, "OOM when allocating"), plan)

    assert reason == "out of memory"
    assert "--micro-batches 2" in hint
    assert "--remat on" in hint
    assert "--batch-size 32" in hint
    assert "mixed_bfloat16" in hint
    assert ("--on-oom adapt" in hint) == (plan.on_oom == "fail")


def test_what_was_tried_because_memory_ran_out_is_not_suggested() -> None:
    error, plan = tf.errors.ResourceExhaustedError(None, None, "OOM when allocating"), Plan(micro_batches=4, remat="on")

    assert explain_error(error, plan) == (
        "out of memory",
        "4 micro-batches and rematerialization did not help; try keep activations in half the bytes: "
        "--precision mixed_bfloat16, a smaller batch: --batch-size 32, a smaller model",
    )


def test_suggested_micro_batches_divide_the_batch() -> None:
    error = tf.errors.ResourceExhaustedError(None, None, "OOM when allocating")

    assert "--micro-batches 8" in explain_error(error, Plan(batch_size=1000, micro_batches=4, on_oom="fail"))[1]
    assert "--micro-batches 10" in explain_error(error, Plan(batch_size=100, micro_batches=4, on_oom="fail"))[1]
    assert "--micro-batches" not in explain_error(error, Plan(batch_size=97, micro_batches=97, on_oom="fail"))[1]


def test_errors_for_the_user_are_unchanged() -> None:
    assert explain_error(ModelError("it takes images"), Plan()) == ("it takes images", "")
    assert explain_error(DatabaseError("the database is locked"), Plan()) == ("the database is locked", "")


def test_other_errors_are_shortened_to_one_line() -> None:
    assert explain_error(ValueError("so\n  and so"), Plan())[0] == "ValueError: so and so"


def fail_in_user_code() -> None:
    raise KeyError("age")


def caught(work: Callable[[], object]) -> AccelError:
    with pytest.raises(AccelError) as error:
        work()
    return error.value


def test_an_error_for_the_user_has_no_traceback_but_that_of_its_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_traceback(PlanError("epochs", 0, "must be at least 1"))
    assert capsys.readouterr().err == ""
    (archive := tmp_path / "data.npz").write_bytes(b"no archive")
    print_traceback(caught(lambda: opened(archive).__enter__()))

    written = capsys.readouterr().err
    assert written.startswith("Traceback (most recent call last):")
    assert "zipfile.py" in written
    assert "DataError" not in written
    assert written.endswith("BadZipFile: File is not a zip file\n")


def test_an_exception_in_the_users_code_has_its_own_traceback_only(capsys: pytest.CaptureFixture[str]) -> None:
    user = UserFunction(__file__, "fail_in_user_code", "data of mine", DataError)
    print_traceback(caught(lambda: user.call(fail_in_user_code, {})))

    written = capsys.readouterr().err
    assert written.startswith(f'Traceback (most recent call last):\n  File "{__file__}"')
    assert "in fail_in_user_code" in written
    assert written.endswith("KeyError: 'age'\n")


def test_other_errors_have_their_whole_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        fail_in_user_code()
    except KeyError as error:
        print_traceback(error)

    written = capsys.readouterr().err
    assert "test_other_errors_have_their_whole_traceback" in written
    assert "fail_in_user_code" in written


def test_an_error_that_is_its_own_cause_ends(capsys: pytest.CaptureFixture[str]) -> None:
    error = DataError("the function fails")
    error.__cause__ = error
    print_traceback(error)

    assert capsys.readouterr().err == ""
