"""Probes TensorFlow in a separate process, as importing it may hang or abort."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accel_engine.devices.tpu_chips import find_chips
from accel_engine.errors import UsageError
from accel_engine.json_values import convert_or_none, parse_object
from accel_engine.measure.cache import Cache, key_of, of_user
from accel_engine.run.directory.log_file import FATAL, fatal_message

PROBE_TIMEOUT = 90.0
"""Timeout in seconds: from a cold disk or over a network, the import takes a minute."""

_ERROR = re.compile(rf"{FATAL.pattern}|Check failed|\bFATAL\b|^[\w.]+(?:Error|Exception|Exit): ")

COMMAND = (sys.executable, "-m", "accel_engine.engine_main.list_tf_devices")


@dataclass(frozen=True, slots=True)
class TensorFlowDevices:
    """The result of the probe."""

    version: str = ""
    """TensorFlow's version; empty if the import did not finish."""
    file: str = ""
    """File that it was imported from."""
    keras: str = ""
    """Keras' version."""
    cuda: str = ""
    """CUDA version of the build, e.g. ``12.5.1``; empty without CUDA."""
    gpus: tuple[str, ...] = ()
    """Names of the visible GPUs."""
    seconds: float = 0.0
    """Duration of the import."""
    problem: str = ""
    """The last error in the log; empty if there was none."""
    signal: str = ""
    """The signal that ended the process, e.g. ``SIGABRT``; empty if none did."""
    timed_out: bool = False
    """Whether the process timed out."""
    log: str = ""
    """The log of TensorFlow's native code."""
    capabilities: tuple[str, ...] = ()
    """Compute capabilities of the GPUs, such as ``9.0``; an empty text where unknown."""
    built: tuple[str, ...] = ()
    """The capabilities for which the build has code, such as ``sm_90``."""
    trying: str = ""
    """What a device computed last, if that did not end."""
    computed: tuple[str, ...] = ()
    """What the devices have computed, with the seconds it took."""


def probe_devices() -> TensorFlowDevices:
    """Run the probe process, and let every device compute something of each kind, which may take a minute."""
    return probe_tensorflow((*COMMAND, "--deep"))


XLA_VARIABLES = ("XLA_FLAGS", "TF_XLA_FLAGS")
"""Variables with flags that XLA reads when it is used first, and of which an unknown one ends the process.

TensorFlow reads the second one before any operation, whether XLA is used or not.
"""

_FLAGS = Cache[str]("xla_flags", str)
"""Why XLA ends processes with some flags; empty if it does not."""


def xla_flags_problem() -> str | None:
    """Why XLA would end this process because of flags that the user has set: XLA tries them in another one.

    That takes some seconds; what was found is remembered.

    Returns:
        The reason; empty if it would not; ``None`` if that is unknown, as on a TPU, which one process has at a time.
    """
    values = {name: value for name in XLA_VARIABLES if (value := of_user(name))}
    if not values:
        return ""
    if find_chips():
        return None
    key = key_of((), files=[_file_of_flags(value) for value in values.values()])
    if (known := _FLAGS.load(key)) is not None:
        return known
    tensorflow = probe_tensorflow((*COMMAND, "--xla"))
    if not tensorflow.trying and not tensorflow.computed:
        return None
    if problem := fatal_message(tensorflow.log):
        if not any(name in problem for name in values):
            flag = problem.split()[-1]
            those = {name: value for name, value in values.items() if flag in value} or values
            problem = f"{problem} ({', '.join(f'{name}={value}' for name, value in those.items())})"
    elif not tensorflow.computed:
        return None  # it was killed, or XLA fails for another reason
    _FLAGS.save({key: problem})
    return problem


def refuse_xla_flags(*, with_xla: bool = True) -> None:
    """Refuse flags that the user has set and with which TensorFlow would end this process, before it does anything.

    Args:
        with_xla: Whether this process will surely use XLA; otherwise only ``TF_XLA_FLAGS`` matters.

    Raises:
        UsageError: An option is unknown or wrong; the message names it.
    """
    problem = xla_flags_problem() if with_xla or of_user("TF_XLA_FLAGS") else ""
    if problem and (with_xla or "TF_XLA_FLAGS" in problem):
        raise UsageError(f"TensorFlow would end the process: {problem}; correct or unset it")


def _file_of_flags(value: str) -> str:
    """The flags in the file that a variable may name instead of flags."""
    with contextlib.suppress(OSError, UnicodeError):
        return "" if value.startswith("-") else Path(value).read_text()
    return ""


def probe_tensorflow(command: Sequence[str] = COMMAND, timeout: float = PROBE_TIMEOUT) -> TensorFlowDevices:
    """Run the probe process.

    Args:
        command: Its command; each line of its output is a JSON object with some of the results.
        timeout: Seconds after which it is killed.
    """
    # Log messages about GPUs are needed, and the names of libraries that cannot be loaded.
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE": "dso_loader=1"}
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=environment)
        timed_out = False
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
            process.kill()
            process.wait()
        output.seek(0)
        errors.seek(0)
        found = _parse(output.read())
        log = errors.read().decode(errors="replace")
    return replace(
        found,
        problem=_last_error(log) if process.returncode else "",
        signal="" if timed_out or process.returncode >= 0 else _signal_name(-process.returncode),
        timed_out=timed_out,
        log=log,
    )


def _parse(output: bytes) -> TensorFlowDevices:
    facts: dict[str, Any] = {}
    for line in output.decode(errors="replace").splitlines():
        with contextlib.suppress(ValueError):  # a truncated line, or another library's output
            facts |= parse_object(line)
    return convert_or_none(facts, TensorFlowDevices) or TensorFlowDevices()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_error(log: str) -> str:
    """The last failed check of native code, or the last Python error; else the last line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.search(line)]
    line = (errors or lines or ["it exited unexpectedly, without output"])[-1]
    fatal = FATAL.search(line)
    return line[fatal.end() :] if fatal else line


def shadows(file: str, directory: Path) -> bool:
    """Whether a file is a module of, or in a package in, a directory."""
    return bool(file) and directory in (Path(file).parent, Path(file).parent.parent)
