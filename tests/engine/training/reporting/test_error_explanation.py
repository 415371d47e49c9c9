import errno
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from accel_engine.data.array_file import opened
from accel_engine.errors import AccelError, DatabaseError, DataError, ModelError, PlanError
from accel_engine.plan import Plan
from accel_engine.training.reporting.error_explanation import (
    allocated,
    explain_error,
    is_of_host,
    is_out_of_memory,
    print_traceback,
)
from accel_engine.user_code import UserFunction

OF_GPU = "OOM when allocating tensor with shape[64,1000] and type float on GPU:0 by allocator GPU_0_bfc"


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


@pytest.mark.parametrize(
    ("message", "variable", "words", "others"),
    [
        (OF_GPU, "", ("TF_GPU_ALLOCATOR=cuda_malloc_async",), ("XLA_FLAGS", "CUDNN")),
        (OF_GPU, "cuda_malloc_async", (), ("TF_GPU_ALLOCATOR",)),
        ("Autotuning failed on GPU:0: out of memory", "", ("XLA_FLAGS=--xla_gpu_autotune_level=0",), ("CUDNN",)),
        ("cudnn workspace: CUDA_ERROR_OUT_OF_MEMORY", "", ("TF_CUDNN_WORKSPACE_LIMIT_IN_MB",), ("XLA_FLAGS",)),
        ("OOM when allocating tensor on CPU:0 by allocator cpu", "", (), ("TF_GPU_ALLOCATOR",)),
        ("Ran out of memory in memory space hbm. Used 18.00G of 15.48G", "", (), ("TF_GPU_ALLOCATOR",)),
    ],
)
def test_memory_of_a_gpu_that_is_in_pieces_or_taken_for_a_moment(
    monkeypatch: pytest.MonkeyPatch, message: str, variable: str, words: tuple[str, ...], others: tuple[str, ...]
) -> None:
    monkeypatch.setenv("TF_GPU_ALLOCATOR", variable)
    _, advice = explain_error(tf.errors.ResourceExhaustedError(None, None, message), Plan())
    assert all(word in advice for word in words)
    assert not any(word in advice for word in others)


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


OOM = "OOM when allocating tensor with shape[64,1000] and type float on /device:GPU:0 by allocator GPU_0_bfc"


def raised_from(cause: BaseException) -> BaseException:
    error = DataError("the batch cannot be read")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        tf.errors.ResourceExhaustedError(None, None, OOM),
        tf.errors.ResourceExhaustedError(None, None, "Ran out of memory in memory space hbm. Used 18.00G of 15.48G"),
        tf.errors.InternalError(None, None, "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184"),
        tf.errors.InternalError(None, None, "CUDA_ERROR_OUT_OF_MEMORY: out of memory"),
        tf.errors.InternalError(None, None, "failed to create cublas handle: CUBLAS_STATUS_ALLOC_FAILED"),
        tf.errors.AbortedError(None, None, "exception:Status: 1, message: could not create a primitive, in file m.cc"),
        MemoryError(),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
        raised_from(MemoryError()),
    ],
    ids=str,
)
def test_memory_ran_out(error: BaseException) -> None:
    assert is_out_of_memory(error)


def test_numpy_has_an_error_of_its_own() -> None:
    with pytest.raises(MemoryError) as error:
        np.empty(1 << 55, np.uint8)
    assert is_out_of_memory(error.value)


@pytest.mark.parametrize(
    "error",
    [
        tf.errors.ResourceExhaustedError(None, None, f"step-3.data; {os.strerror(errno.ENOSPC)} [Op:SaveV2]"),
        tf.errors.ResourceExhaustedError(None, None, f"part-1.tfrecord; {os.strerror(errno.EMFILE)}"),
        tf.errors.ResourceExhaustedError(None, None, "Received message larger than max (9 vs. 4)"),
        tf.errors.InternalError(None, None, "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access"),
        tf.errors.InvalidArgumentError(None, None, "there is no room for a zoom"),
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        ValueError("out of memory"),
    ],
    ids=str,
)
def test_something_else_is_wrong(error: BaseException) -> None:
    assert not is_out_of_memory(error)


def test_the_memory_of_the_host_is_told_from_that_of_an_accelerator() -> None:
    assert not is_of_host(tf.errors.ResourceExhaustedError(None, None, OOM))
    assert is_of_host(tf.errors.ResourceExhaustedError(None, None, "OOM when allocating by allocator cpu"))
    assert is_of_host(MemoryError())


def test_what_could_not_be_allocated_is_named() -> None:
    assert allocated(tf.errors.ResourceExhaustedError(None, None, OOM)) == "a float tensor of 64x1000"
    assert allocated(raised_from(MemoryError())) == ""
