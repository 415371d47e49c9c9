import subprocess
import sys
import textwrap


def test_devices_can_still_be_configured() -> None:
    script = """
        from accel_engine.private_names.tensorflow_names import devices_are_configurable
        from accel_engine.training.warm_up import warm_up
        import sys
        import tensorflow as tf

        warm_up()
        assert devices_are_configurable()
        assert "accel_engine.data.digits" in sys.modules or tf.test.is_built_with_gpu_support()
        (cpu,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
        print(len(tf.config.list_logical_devices("CPU")))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "2\n"
