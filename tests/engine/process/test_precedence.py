"""The engine does not push aside what somebody waits for."""

import os
import subprocess
import sys

import pytest

GIVING_WAY = """
import os, threading
from accel_engine.process.precedence import give_way
give_way()
policies = [os.sched_getscheduler(0)]
other = threading.Thread(target=lambda: policies.append(os.sched_getscheduler(threading.get_native_id())))
other.start()
other.join()
print(*policies, os.nice(0))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells such programs apart")
def test_all_threads_give_way_at_their_full_share() -> None:
    words = subprocess.run([sys.executable, "-c", GIVING_WAY], check=True, capture_output=True, text=True).stdout
    assert words.split() == [str(os.SCHED_BATCH), str(os.SCHED_BATCH), str(os.nice(0))]
