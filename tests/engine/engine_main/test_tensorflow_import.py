"""Importing TensorFlow ahead."""

import subprocess
import sys

PROGRAM = """
import gc, sys
from accel_engine.engine_main.tensorflow_import import MODULES, TensorFlowImport

tensorflow = TensorFlowImport()
assert not tensorflow.imported and "tensorflow" not in sys.modules
tensorflow.wait()
assert tensorflow.imported
assert gc.isenabled() and gc.get_freeze_count() > 100_000
print({"tensorflow", *MODULES} <= sys.modules.keys())
"""


def test_what_trains_a_run_is_imported_ahead() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
