"""What TensorFlow sees, asked in a process of its own: importing it may hang or abort."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE = 90.0
"""Seconds that TensorFlow may take: from a cold disk or over a network its import takes a minute."""

_FATAL = re.compile(r"(?:^F\d{4}|: F) .*?[\w/.]+:\d+\] ")
"""How a line begins in which native code says why it gives up."""

_TELLING = re.compile(rf"{_FATAL.pattern}|Check failed|\bFATAL\b|^[\w.]+(?:Error|Exception|Exit): ")

COMMAND = (sys.executable, "-m", "accel_engine.process.list_tf_devices")


@dataclass(frozen=True, slots=True)
class TensorFlowDevices:
    """What TensorFlow told before its process ended.

    Attributes:
        version: TensorFlow's; empty when the import did not come to its end.
        file: From where it was imported.
        keras: Keras' version.
        cuda: The CUDA that it was built for, such as ``12.5.1``; empty for a build without.
        gpus: The GPUs that it sees, by name.
        seconds: How long the import took.
        problem: What went wrong, in the last words of the process; empty when nothing did.
        signal: The signal that ended the process, such as ``SIGABRT``; empty when none did.
        late: Whether the process was ended because it took too long.
        log: What TensorFlow's native code said.
    """

    version: str = ""
    file: str = ""
    keras: str = ""
    cuda: str = ""
    gpus: tuple[str, ...] = ()
    seconds: float = 0.0
    problem: str = ""
    signal: str = ""
    late: bool = False
    log: str = ""


def probe_tensorflow(command: Sequence[str] = COMMAND, patience: float = PATIENCE) -> TensorFlowDevices:
    """Start the process that looks, and wait for what it tells.

    Args:
        command: Starts it; each line of its output is a JSON object with what became known.
        patience: Seconds after which it is killed.
    """
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0"}  # what it says of its GPUs is wanted here
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env=environment,
        )
        late = False
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            late = True
            process.kill()
            process.wait()
        output.seek(0)
        errors.seek(0)
        told = _facts(output.read())
        log = errors.read().decode(errors="replace")
    return TensorFlowDevices(
        version=told.get("version", ""),
        file=told.get("file", ""),
        keras=told.get("keras", ""),
        cuda=told.get("cuda", ""),
        gpus=tuple(told.get("gpus", ())),
        seconds=told.get("seconds", 0.0),
        problem=_last_words(log) if process.returncode else "",
        signal="" if late or process.returncode >= 0 else _signal_name(-process.returncode),
        late=late,
        log=log,
    )


def _facts(output: bytes) -> Mapping[str, Any]:
    facts: dict[str, Any] = {}
    for line in output.splitlines():
        with contextlib.suppress(ValueError, TypeError):  # a line that was cut off, or is somebody else's
            facts |= json.loads(line)
    return facts


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_words(log: str) -> str:
    """The line that tells most: native code's last check that failed, or Python's last error."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    telling = [line for line in lines if _TELLING.search(line)]
    words = (telling or lines or ["it ended without a word"])[-1]
    fatal = _FATAL.search(words)
    return words[fatal.end() :] if fatal else words


def is_beside(file: str, directory: Path) -> bool:
    """Whether a file is a module, or in a package, that lies in a directory itself."""
    return bool(file) and directory in (Path(file).parent, Path(file).parent.parent)
