"""A real pseudo-terminal with a terminal emulator on it: what a person at a terminal would see and type."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
import pyte

KEYS = {
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "shift+tab": "\x1b[Z",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "ctrl+c": "\x03",
    "ctrl+q": "\x11",
    "ctrl+s": "\x13",
    "ctrl+u": "\x15",
    "ctrl+z": "\x1a",
    "end": "\x1b[F",
    "space": " ",
}
"""What a terminal sends for keys that are no characters."""

TYPING_SECONDS = 0.02
"""Between two keys, as a person's are: Textual drops text that arrives in one read with a control character."""

SETTINGS = {
    "alternate screen": (1049, False),
    "cursor": (25, True),
    "mouse": (1000, False),
    "mouse drag": (1002, False),
    "mouse movement": (1003, False),
    "mouse coordinates": (1006, False),
    "focus reports": (1004, False),
    "bracketed paste": (2004, False),
    "pixel mouse": (1016, False),
}
"""Settings of a terminal that programs change, by DEC's private number, and how a shell wants them."""

_NOT_PASSED_ON = ("NO_COLOR", "TEXTUAL", "COLUMNS", "LINES")
"""Variables that would have the program paint for another terminal."""


class _Screen(pyte.Screen):
    """pyte's screen, which takes no private form of some sequences that Textual sends."""

    def report_device_attributes(self, mode: int = 0, **kwargs: Any) -> None:
        """Answer nothing: the program must do without."""

    def report_device_status(self, mode: int = 0, **kwargs: Any) -> None:
        """Answer nothing: the program must do without."""

    def select_graphic_rendition(self, *attributes: int, private: bool = False) -> None:
        """Take colours and styles, but not what ``CSI > ... m`` asks of xterm's keyboard."""
        if not private:
            super().select_graphic_rendition(*attributes)


class Terminal:
    """A program in a pseudo-terminal.

    Args:
        arguments: The command.
        columns: Width in cells.
        rows: Height in cells.
        environment: Variables to add to the test's.
        directory: Where the program starts.
    """

    def __init__(
        self,
        arguments: Sequence[str | Path],
        *,
        columns: int = 100,
        rows: int = 30,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        self._screen = _Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._news = threading.Condition()
        self._raw = bytearray()
        self._master, self._slave = pty.openpty()
        self._set_size(columns, rows)
        self.modes_before = termios.tcgetattr(self._slave)
        variables = {name: value for name, value in os.environ.items() if name not in _NOT_PASSED_ON}
        self.process = subprocess.Popen(
            [str(argument) for argument in arguments],
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            cwd=directory,
            env={**variables, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(environment or {})},
            start_new_session=True,
            # The terminal becomes the program's own, as a login shell's is: a hang-up or Ctrl-C reaches it.
            preexec_fn=_take_terminal,
        )
        self._reader = threading.Thread(target=self._read, name="terminal", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def text(self) -> str:
        """What stands on the screen, a line a row, without trailing blanks."""
        with self._news:
            return "\n".join(line.rstrip() for line in self._screen.display)

    @property
    def cells(self) -> list[list[pyte.screens.Char]]:
        """What stands in each cell of the screen, with its colours, row by row."""
        with self._news:
            rows = [self._screen.buffer[line] for line in range(self._screen.lines)]
            return [[row[column] for column in range(self._screen.columns)] for row in rows]

    @property
    def raw(self) -> bytes:
        """Everything that the program has written so far."""
        with self._news:
            return bytes(self._raw)

    @property
    def modes(self) -> list[Any]:
        """The modes of the terminal's line, as :func:`termios.tcgetattr` gives them."""
        return termios.tcgetattr(self._slave)

    @property
    def altered(self) -> list[str]:
        """The names of the settings that the program has changed and not set back."""
        names = []
        for name, (number, wanted) in SETTINGS.items():
            on, off = self.raw.rfind(b"\x1b[?%dh" % number), self.raw.rfind(b"\x1b[?%dl" % number)
            if on != off and (on > off) != wanted:
                names.append(name)
        return names

    def send(self, *keys: str) -> None:
        """Type keys: names of :data:`KEYS`, or text as it is."""
        for key in keys:
            time.sleep(TYPING_SECONDS)
            os.write(self._master, KEYS.get(key, key).encode())

    def send_bytes(self, data: bytes) -> None:
        """Send what no key sends."""
        os.write(self._master, data)

    def click(self, text: str, right: int = 0) -> None:
        """Press and release the mouse's button on a text that is on the screen.

        Args:
            text: The text; its first appearance is taken.
            right: How many cells to the right of its beginning.

        Raises:
            AssertionError: It is not there.
        """
        for row, line in enumerate(self.text.splitlines(), start=1):
            if (column := line.find(text)) >= 0:
                at = f"{column + 1 + right};{row}"
                self.send(f"\x1b[<0;{at}M\x1b[<0;{at}m")
                return
        raise AssertionError(f"no {text!r} on the screen:\n{self.text}")

    def wait_for(self, wanted: str | Callable[[str], Any], timeout: float = 300.0) -> str:
        """Wait until a text is on the screen, or a function of the screen's text is true.

        Returns:
            The screen's text then.

        Raises:
            AssertionError: It did not come in time, or the program ended before; with what is on the screen.
        """
        there = wanted if callable(wanted) else lambda text: wanted in text
        deadline = time.monotonic() + timeout
        with self._news:
            while not there(text := self.text):
                left = deadline - time.monotonic()
                ended = self.process.poll() is not None
                if left <= 0 or ended:
                    why = "the program ended" if ended else f"waited {timeout:g} s"
                    raise AssertionError(f"{why}; no {wanted!r} on the screen:\n{text}")
                self._news.wait(min(left, 0.5))
            return text

    def wait_closed(self, timeout: float = 300.0) -> int:
        """Wait until the program has ended.

        Returns:
            Its exit status.

        Raises:
            AssertionError: It goes on.
        """
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still there after {timeout:g} s:\n{self.text}") from None
        self._drain()
        return status

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal's window another size."""
        with self._news:
            self._screen.resize(rows, columns)
        self._set_size(columns, rows)
        self.process.send_signal(signal.SIGWINCH)

    def kill(self) -> None:
        """End the program as nobody can refuse; the processes that it started go on."""
        self.process.kill()
        self.process.wait()

    def hang_up(self) -> None:
        """Take the terminal away, as a lost connection does."""
        self.process.send_signal(signal.SIGHUP)

    def close(self) -> None:
        """End the program, and everything that it started, and the terminal."""
        if self.process.poll() is None:
            family = psutil.Process(self.process.pid).children(recursive=True)
            self.kill()
            for process in family:
                try:
                    process.kill()
                except psutil.NoSuchProcess:
                    continue
        if self._slave >= 0:
            os.close(self._slave)
            self._slave = -1
            self._reader.join(120)
            os.close(self._master)

    def _read(self) -> None:
        while True:
            try:
                data = self._take()
            except OSError:  # Linux: nobody has the other end open any more
                data = b""
            with self._news:
                if data:
                    self._raw += data
                    # pyte would print the end of what restores the keyboard's protocol.
                    self._stream.feed(data.replace(b"\x1b[<u", b""))
                self._news.notify_all()
            if not data:
                return

    def _take(self) -> bytes:
        return os.read(self._master, 65536)

    def _drain(self) -> None:
        """Wait until what the ended program wrote has all been read: a mark of our own comes back last."""
        mark = b"\x1b]0;drained\x07"
        os.write(self._slave, mark)
        with self._news:
            self._news.wait_for(lambda: self._raw.endswith(mark), 120)
            del self._raw[-len(mark) :]

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
