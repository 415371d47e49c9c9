"""Loads PyArrow, which reads tables, where it can be loaded beside TensorFlow.

On macOS, TensorFlow 2.20 and some versions of PyArrow crash a process that loads both, or block it for ever
(https://github.com/tensorflow/tensorflow/issues/98563). A separate process tries it there.
"""

import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from accel_engine.errors import DataError

COMMAND = (sys.executable, "-c", "import tensorflow, pyarrow.compute")

TIMEOUT = 60.0
"""Seconds after which the two count as blocking each other; to load both takes about 5."""

CURE = "pip install 'tensorflow>=2.19,<2.20', or give the data as .npy or .npz"


def import_pyarrow(path: Path) -> Any:
    """Import PyArrow.

    Args:
        path: What it shall read, for errors.

    Raises:
        DataError: PyArrow is not installed, or it would end this process.
    """
    if sys.platform == "darwin" and "tensorflow" in sys.modules and "pyarrow" not in sys.modules:
        if problem := problem_beside_tensorflow():
            raise DataError(f"{path} cannot be read here: {problem}: {CURE}")
    try:
        return import_module("pyarrow")
    except ImportError as error:
        raise DataError(
            f"reading {path.name} needs PyArrow: pip install 'accel-tui[cpu]' (or pip install pyarrow)"
        ) from error


@cache
def problem_beside_tensorflow() -> str:
    """Why a process cannot load TensorFlow and PyArrow; empty if one can. The first call takes seconds."""
    quiet = subprocess.DEVNULL
    try:
        status = subprocess.run(COMMAND, stdin=quiet, stdout=quiet, stderr=quiet, timeout=TIMEOUT).returncode
    except subprocess.TimeoutExpired:
        return "TensorFlow and PyArrow block each other in one process"
    return "TensorFlow and PyArrow crash a process that loads both" if status else ""
