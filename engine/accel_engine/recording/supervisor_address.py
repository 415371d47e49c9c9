"""Where the process is that writes what this one records: ``accel-tui run`` has started it, or the first recorder does.

No database is opened in a script's process: whatever the script does to its descriptors, its signals and its children,
only its link to that process can be lost.
"""

import os
import subprocess

given_address = ""
"""Path of the socket of the supervisor that ``accel-tui run`` has started; empty if it has not."""

START_SECONDS = 30.0
"""How long a supervisor may take to start, which usually takes less than a second."""

_started_address = ""
"""Path of the socket of the supervisor that this process, or one that it was forked from, has started last."""


def known_address() -> str:
    """Path of the supervisor's socket, which may have ended; empty if none was started."""
    return given_address or _started_address


def start_supervisor() -> str:
    """Start a supervisor, which is not a child of this process, so that no ``wait`` of the script meets it.

    Returns:
        Path of its socket.

    Raises:
        RunError: The process cannot be started, or has failed.
        TimeoutError: The process has not started in time.
    """
    global _started_address
    from accel_engine.errors import RunError
    from accel_engine.process.detached import start_detached

    name = "the supervisor of the run"
    command = ("-P", "-m", "accel_engine.scripts.recorder_supervisor", str(os.getpid()))
    with start_detached(name, *command, log=None, streams=subprocess.PIPE) as process:
        try:
            address, problem = process.communicate(timeout=START_SECONDS)
        except subprocess.TimeoutExpired as error:
            process.kill()
            raise TimeoutError(f"it has not started within {START_SECONDS:g} s") from error
    if not address:
        *_, reason = problem.strip().splitlines() or [f"exit status {process.returncode}"]
        raise RunError(f"{name} cannot start: {reason}")
    _started_address = address
    return address
