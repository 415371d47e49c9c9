"""The process of a user's script and its standard streams: a terminal where the user's are one, else pipes."""

import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from accel_engine.recording.every_fit import hook

STARTUP = Path(hook.__file__).parent / "startup"
"""Directory with the module that Python imports before the script."""


STDIN, STDOUT, STDERR = 0, 1, 2

TERMINAL = "terminal"
"""Name of the terminal's output; the output of pipes is ``stdout`` and ``stderr``."""


@dataclass(frozen=True, slots=True)
class Streams:
    """The two ends of a script's streams."""

    script: tuple[int, int, int]
    """The script's descriptors: standard input, output, error."""
    sources: dict[str, int]
    """This process's descriptors of the script's output, by :data:`TERMINAL`, ``stdout`` and ``stderr``."""
    terminal: int | None
    """This process's end of the script's terminal; ``None`` without one."""

    def close_script(self) -> None:
        """Close the script's ends, once it has started."""
        for descriptor in {*self.script} - {STDIN}:
            os.close(descriptor)

    def resize(self, rows: int, columns: int) -> None:
        """Set the size of the script's terminal, which tells the script."""
        if self.terminal is not None:
            with suppress(OSError, struct.error):
                fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def open_streams() -> Streams:
    """Open streams like the standard streams of this process.

    A terminal becomes the controlling terminal of this process, which must lead its session: so the script is not its
    leader, as in a shell.

    Raises:
        OSError: There are no more terminals.
    """
    terminals = [descriptor for descriptor in (STDIN, STDOUT, STDERR) if os.isatty(descriptor)]
    sources: dict[str, int] = {}
    master = slave = None
    if terminals:
        master, slave = os.openpty()
        sources[TERMINAL] = master
        with suppress(termios.error, OSError):
            termios.tcsetattr(slave, termios.TCSANOW, termios.tcgetattr(terminals[0]))
            size = fcntl.ioctl(terminals[0], termios.TIOCGWINSZ, bytes(8))
            fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    script = [STDIN if slave is None or STDIN not in terminals else slave]
    for name, descriptor in (("stdout", STDOUT), ("stderr", STDERR)):
        if slave is not None and descriptor in terminals:
            script.append(slave)
        else:
            sources[name], end = os.pipe()
            script.append(end)
    return Streams((script[0], script[1], script[2]), sources, master)


class ScriptProcess:
    """Runs a script as ``python`` does, in its own process group.

    Args:
        arguments: The arguments of ``python``.
        environment: The script's environment.
        streams: Its standard streams.

    Attributes:
        pid: Its process id.
        status: Its exit status, or the negative number of the signal that killed it; ``None`` while it runs.
        is_suspended: Whether a signal has suspended it, e.g. Ctrl-Z.

    Raises:
        OSError: The process cannot be started.
    """

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], streams: Streams) -> None:
        self._streams = streams
        stdin, stdout, stderr = streams.script
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=environment,
            close_fds=False,  # the user's own descriptors are the script's; this process's are not inherited
            preexec_fn=self._lead_group,
        )
        self.pid = self._process.pid
        self.status: int | None = None
        self.is_suspended = False
        streams.close_script()

    def poll(self) -> None:
        """Update :attr:`status` and :attr:`is_suspended`."""
        while self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            if not pid:
                return
            if os.WIFSTOPPED(status):
                self.is_suspended = True
            elif os.WIFCONTINUED(status):
                self.is_suspended = False
            else:
                self.status = self._process.returncode = os.waitstatus_to_exitcode(status)

    def send(self, number: int, *, group: bool = False) -> None:
        """Send a signal to the script, or to its process group, as a terminal does for Ctrl-C."""
        if self.status is None:
            with suppress(ProcessLookupError, PermissionError):
                (os.killpg if group else os.kill)(self.pid, number)

    def resume(self) -> None:
        """Resume after a suspension, in the foreground of its terminal."""
        self.send(signal.SIGCONT, group=True)

    def _lead_group(self) -> None:
        """Make the script's process group the terminal's foreground group; runs in the new process."""
        os.setpgid(0, 0)
        if self._streams.terminal is not None:
            terminal = max(self._streams.script, key=os.isatty)
            handler = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            os.tcsetpgrp(terminal, os.getpid())
            signal.signal(signal.SIGTTOU, handler)


def script_environment(address: str) -> dict[str, str]:
    """The environment of a script: this process's, with what records the script's training.

    Args:
        address: The supervisor's socket.
    """
    variables = {**os.environ, hook.SUPERVISOR: address}
    path = os.environ.get("PYTHONPATH")
    if path is not None:
        variables[hook.PATH] = path
    variables["PYTHONPATH"] = os.pathsep.join([str(STARTUP), *([path] if path else [])])
    return variables
