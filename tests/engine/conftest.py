"""What tests with TensorFlow in this process share."""

import pytest

from accel_engine.process import environment

environment.prepare()  # so that tests train with the kernels that engines use


@pytest.fixture(scope="session")
def two_cpus() -> None:
    """Four logical CPUs, fixed before TensorFlow's first use in this process, whichever test is first."""
    import tensorflow as tf

    host = tf.config.list_physical_devices("CPU")[0]
    if tf.config.get_logical_device_configuration(host) is None:
        tf.config.set_logical_device_configuration(host, [tf.config.LogicalDeviceConfiguration()] * 4)
