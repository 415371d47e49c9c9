import subprocess
import sys
import textwrap
from pathlib import Path

import pytest


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts the threads of Linux")
def test_the_number_of_threads_can_still_be_set() -> None:
    script = """
        from pathlib import Path
        from accel_engine.training.measure_model import warm_up
        import tensorflow as tf

        def threads():
            tasks = Path("/proc/self/task").iterdir()
            return {task for task in tasks if not (task / "comm").read_text().startswith("tf_")}

        warm_up()
        before = threads()
        tf.config.threading.set_intra_op_parallelism_threads(3)
        tf.matmul(tf.ones((300, 300)), tf.ones((300, 300)))
        print(len(threads() - before))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3\n"


@pytest.mark.campaign
def test_devices_can_still_be_configured() -> None:
    script = """
        from accel_engine.private_names.tensorflow_names import devices_are_configurable
        from accel_engine.training.measure_model import warm_up
        import sys
        import tensorflow as tf

        warm_up()
        assert devices_are_configurable()
        assert "accel_engine.data.built_in" in sys.modules or tf.test.is_built_with_gpu_support()
        (cpu,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
        print(len(tf.config.list_logical_devices("CPU")))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "2\n"
