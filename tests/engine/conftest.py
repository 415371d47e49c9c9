"""What tests with TensorFlow in this process share."""

import sys
from collections.abc import Iterator

import pytest

from accel_engine.engine_main import tensorflow_import
from accel_engine.training.distributed.peers import reserve_port

tensorflow_import.prepare()  # so that tests train with the kernels that engines use


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port on which nothing listens, nor will before a test does: it is given to nobody who wants any."""
    with reserve_port() as held:
        yield held.getsockname()[1]


@pytest.fixture
def address(silent_port: int) -> str:
    """A local address that refuses connections."""
    return f"127.0.0.1:{silent_port}"


@pytest.fixture(autouse=True)
def _float32() -> None:
    """Begin no test with the precision or the determinism of the one before, which a process keeps."""
    if keras := sys.modules.get("keras"):
        keras.config.set_dtype_policy("float32")
    if (tensorflow := sys.modules.get("tensorflow")) and hasattr(tensorflow, "config"):
        from tensorflow.python.framework.config import disable_op_determinism

        tensorflow.config.experimental.enable_tensor_float_32_execution(True)
        disable_op_determinism()
