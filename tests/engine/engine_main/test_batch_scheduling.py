"""The scheduling policy of engine processes."""

import os
import subprocess
import sys

import pytest

SET_BATCH_SCHEDULING = """
import os, threading
from accel_engine.engine_main.tensorflow_import import set_batch_scheduling
set_batch_scheduling()
policies = [os.sched_getscheduler(0)]
other = threading.Thread(target=lambda: policies.append(os.sched_getscheduler(threading.get_native_id())))
other.start()
other.join()
print(*policies, os.nice(0))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells such programs apart")
def test_all_threads_use_batch_scheduling_with_equal_priority() -> None:
    words = subprocess.run(
        [sys.executable, "-c", SET_BATCH_SCHEDULING], check=True, capture_output=True, text=True
    ).stdout
    assert words.split() == [str(os.SCHED_BATCH), str(os.SCHED_BATCH), str(os.nice(0))]
