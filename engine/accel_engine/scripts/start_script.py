"""Starts a user's script as a run, under a supervisor that outlives the terminal."""

import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from accel_engine.devices.cuda_visible_devices import gpu_variables_for
from accel_engine.devices.device_types import Device
from accel_engine.errors import RunError, UsageError
from accel_engine.process.detached import leave, start_detached
from accel_engine.run.runs.creation import assign_process, create_recorded
from accel_engine.text import shell_command


@dataclass(frozen=True, slots=True)
class Script:
    """A script to run."""

    path: str
    """The script, or the module's name."""
    arguments: tuple[str, ...] = ()
    module: bool = False
    """Whether ``path`` names a module, as with ``python -m``."""

    def check(self) -> None:
        """Check that the file exists; only Python can find a module.

        Raises:
            UsageError: There is no such file, or it is a folder without ``__main__.py``.
        """
        if not self.module and not os.path.exists(self.path):
            hint = "; leave 'python' out" if os.path.basename(self.path).startswith("python") else ""
            raise UsageError(f"no script {self.path!r} in {os.getcwd()}{hint}")
        if not self.module and os.path.isdir(self.path) and not os.path.exists(os.path.join(self.path, "__main__.py")):
            raise UsageError(f"{self.path} is a folder without a __main__.py: name the script in it")

    @property
    def name(self) -> str:
        """A short name: the file's, or the module's."""
        return self.path if self.module else Path(self.path).name

    @property
    def python_arguments(self) -> tuple[str, ...]:
        """The arguments of ``python`` that run it."""
        return (*(("-m",) if self.module else ()), self.path, *self.arguments)


def create_script_run(script: Script, name: str, options: Sequence[str]) -> Path:
    """Create the run of a script.

    Args:
        script: The script.
        name: The run's name; the script's if empty.
        options: The options of ``accel-tui run``, for the command that starts the script again.

    Raises:
        UsageError: There is no such script.
        RunError: The directory of runs cannot be written.
    """
    script.check()
    words = ("accel-tui", "run", *options, *(("-m",) if script.module else ()), script.path)
    command = shell_command((*words, *(("--", *script.arguments) if script.arguments else ())))
    values = {"name": name or script.name, "model": "", "data": script.name, "strategy": "", "epochs": 0}
    return create_recorded(values, command, launched=True)


def start_script(
    directory: Path,
    script: Script,
    *,
    patterns: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    attach: socket.socket | None = None,
) -> None:
    """Start a script under a detached supervisor.

    Args:
        directory: The script's run, from :func:`create_script_run`.
        script: The script.
        patterns: Patterns of values in its output; see :mod:`accel_engine.scripts.output_parser`.
        environment: Additional environment variables.
        attach: Connects the supervisor with this process, which shows the output; without one, the script gets no
            input, and its output goes to the log only.

    Raises:
        RunError: The system cannot start a process.
    """
    words = ["--run", str(directory), *(word for pattern in patterns for word in ("--parse", pattern))]
    if attach:
        attach.set_inheritable(True)
        words += ["--attach", str(attach.fileno())]
    try:
        process = start_detached(
            "the script",
            # -P: the supervisor imports nothing from the current directory, where a file may have any name
            *("-P", "-m", "accel_engine.scripts", *words, "--", *script.python_arguments),
            log=None,
            environment=environment,
            streams=None if attach else subprocess.DEVNULL,
            close_fds=False,  # the user's own descriptors are the script's
        )
    finally:
        if attach:
            attach.close()
    with suppress(RunError):  # it runs already, and writes this itself
        assign_process(directory, process.pid)
    leave(process)


def environment_for(wanted: Sequence[str], devices: Sequence[Device]) -> dict[str, str]:
    """Environment variables that restrict TensorFlow, JAX and PyTorch to some devices.

    Args:
        wanted: Ids of devices, e.g. ``gpu:1``; all if empty.
        devices: The devices of this machine.

    Raises:
        UsageError: A device does not exist, or cannot be chosen for a script.
    """
    if not wanted:
        return {}
    known = [device.id for device in devices]
    if unknown := [name for name in wanted if name not in known]:
        raise UsageError(f"--devices: no device {', '.join(unknown)}; available: {', '.join(known)}")
    kinds = {name.partition(":")[0] for name in wanted}
    if len(kinds) > 1:
        raise UsageError(f"--devices: {','.join(wanted)} must be of the same kind; a script always sees the CPU, too")
    if kinds == {"tpu"}:
        raise UsageError("--devices: the cores of a TPU are chosen by the script itself; leave --devices out")
    if kinds == {"cpu"}:
        return {"CUDA_VISIBLE_DEVICES": "-1", "JAX_PLATFORMS": os.environ.get("JAX_PLATFORMS", "cpu")}
    gpus = [device for device in devices if device.kind == "gpu"]
    for gpu in gpus:
        if gpu.id in wanted and gpu.problem:
            raise UsageError(f"--devices: {gpu.id} cannot be used, {gpu.problem}; choose another device")
    return gpu_variables_for(wanted, gpus)
