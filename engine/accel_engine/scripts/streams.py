"""The standard streams of a script: a terminal where the user's are one, else pipes.

Standard input that is no terminal, such as a file, is the script's as it is.
"""

import fcntl
import os
import struct
import termios
from contextlib import suppress
from dataclasses import dataclass

STDIN, STDOUT, STDERR = 0, 1, 2

TERMINAL = "terminal"
"""Name of the terminal's output; that of pipes is ``stdout`` and ``stderr``."""


@dataclass(frozen=True, slots=True)
class Streams:
    """The two ends of a script's streams.

    Attributes:
        script: The script's descriptors: standard input, output, error.
        sources: This process's descriptors of the script's output, by :data:`TERMINAL`, ``stdout`` and ``stderr``.
        terminal: This process's end of the script's terminal; ``None`` without one.
    """

    script: tuple[int, int, int]
    sources: dict[str, int]
    terminal: int | None

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
