"""Which errors say that memory ran out."""

import errno
import os

import numpy as np
import pytest
import tensorflow as tf

from accel_engine.errors import DataError
from accel_engine.training.reporting.memory_errors import allocated, is_of_host, is_out_of_memory

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
