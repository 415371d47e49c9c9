"""Runs a program in a pseudo-terminal that answers queries, times each read and can simulate a slow link.

It supports truecolor and synchronized output (mode 2026). A thread reads it, so that the program never waits unless
:attr:`Terminal.rate` limits the link.
"""

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

FRAME_END = b"\x1b[?2026l"
"""End of a frame in synchronized output."""

GAP_SECONDS = 0.003
"""Pause after which the output read so far is processed, as a frame takes several reads."""

SLOW_TICK_SECONDS = 0.05
"""How often a slow link is read."""

_REMOVED_VARIABLES = ("NO_COLOR", "TEXTUAL", "TERM_PROGRAM", "TMUX", "STY", "COLUMNS", "LINES")

_QUERY = re.compile(
    rb"\x1b\[\?(?P<mode>\d+)\$p"
    rb"|(?:\x1b\[(?P<place>\d+;\d+)H)?(?P<cursor>\x1b\[6n)"
    rb"|(?P<status>\x1b\[5n)"
    rb"|(?P<attributes>\x1b\[0?c)"
    rb"|(?P<version>\x1b\[>0?q)"
    rb"|(?P<secondary>\x1b\[>0?c)"
    rb"|(?P<keyboard>\x1b\[\?u)"
    rb"|(?P<cell>\x1b\[16t)"
    rb"|\x1b\](?P<colour>1[012]);\?(?:\x07|\x1b\\)"
)
_LONGEST_QUERY = 12
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


def _answer(query: "re.Match[bytes]") -> bytes:
    """A terminal's answer to a query."""
    match query.lastgroup:
        case "mode":
            return b"\x1b[?%s;%d$y" % (query["mode"], 2 if query["mode"] == b"2026" else 0)
        case "colour":
            return b"\x1b]%s;rgb:%s\x1b\\" % (
                query["colour"],
                b"0000/0000/0000" if query["colour"] == b"11" else b"ffff/ffff/ffff",
            )
        case kind:
            return {
                "cursor": b"\x1b[%sR" % (query["place"] or b"24;1"),
                "status": b"\x1b[0n",
                "attributes": b"\x1b[?62;22c",
                "version": b"\x1bP>|benchmark 1\x1b\\",
                "secondary": b"\x1b[>0;10;1c",
                "keyboard": b"\x1b[?0u",
                "cell": b"\x1b[6;20;10t",
            }[str(kind)]


@dataclass(frozen=True, slots=True)
class Read:
    """One read of the terminal.

    Attributes:
        time: When, by :func:`time.perf_counter`.
        data: The bytes, at most 4 KiB on Linux.
    """

    time: float
    data: bytes


@dataclass(frozen=True, slots=True)
class Usage:
    """What a program has used up to a time, optionally with its child processes.

    Attributes:
        time: When, by :func:`time.perf_counter`.
        sent: Bytes written to the terminal.
        frames: Frames written to the terminal.
        cpu: CPU seconds.
        memory: RSS in bytes.
    """

    time: float
    sent: int
    frames: int
    cpu: float
    memory: int


class Terminal:
    """A program in a pseudo-terminal.

    Args:
        command: The program and its arguments.
        columns: Width in cells.
        rows: Height in cells.
        environment: Environment variables to add.
    """

    rate: float | None = None
    """Bytes read per second; ``None`` for no limit."""

    def __init__(
        self,
        command: Sequence[str | Path],
        columns: int = 200,
        rows: int = 50,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._size = (columns, rows)
        self._changed = threading.Condition()
        self._reads: list[Read] = []
        self._sent = self._frames = 0
        self._master, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        variables = {name: value for name, value in os.environ.items() if name not in _REMOVED_VARIABLES}
        self.started = time.perf_counter()
        """When the program was started, by :func:`time.perf_counter`."""
        self.process = subprocess.Popen(
            [str(part) for part in command],
            stdin=side,
            stdout=side,
            stderr=side,
            env={**variables, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(environment or {})},
            start_new_session=True,
        )
        os.close(side)
        self._reader = threading.Thread(target=self._read, name="terminal", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(self, keys: str) -> float:
        """Type keys; returns when, by :func:`time.perf_counter`."""
        now = time.perf_counter()
        os.write(self._master, keys.encode())
        return now

    def viewer(self) -> "Viewer":
        """An emulator of the screen, from the program's first byte."""
        return Viewer(self, *self._size)

    @property
    def count(self) -> int:
        """How many reads there were."""
        with self._changed:
            return len(self._reads)

    def reads_from(self, first: int, wait: float) -> list[Read]:
        """The reads from number ``first`` on; waits up to ``wait`` seconds for some, followed by a gap."""
        deadline = time.perf_counter() + wait
        with self._changed:
            while (left := deadline - time.perf_counter()) > 0:
                if len(self._reads) == first:
                    self._changed.wait(left)
                elif (young := self._reads[-1].time + GAP_SECONDS - time.perf_counter()) > 0:
                    self._changed.wait(min(left, young))
                else:
                    break
            return self._reads[first:]

    def usage(self, *, family: bool = False) -> Usage:
        """Return what the program has used, with ``family`` including its child processes.

        Raises:
            psutil.NoSuchProcess: It has exited.
        """
        program = psutil.Process(self.process.pid)
        cpu, memory = 0.0, 0
        for process in (program, *program.children(recursive=True)) if family else (program,):
            with contextlib.suppress(psutil.NoSuchProcess) if process is not program else contextlib.nullcontext():
                times = process.cpu_times()
                cpu += times.user + times.system
                memory += process.memory_info().rss
        with self._changed:
            return Usage(time.perf_counter(), self._sent, self._frames, cpu, memory)

    def check(self) -> None:
        """Check that the program is running.

        Raises:
            RuntimeError: It has exited; the message contains its last output.
        """
        if self.process.poll() is not None:
            with self._changed:
                words = b"".join(read.data for read in self._reads)[-2000:].decode(errors="replace")
            words = _STYLE.sub("", words).strip()
            raise RuntimeError(f"exited with status {self.process.returncode}; its last output:\n{words}")

    def close(self) -> None:
        """Kill the program and its children, and close the terminal."""
        family = []
        with contextlib.suppress(psutil.NoSuchProcess):
            family = psutil.Process(self.process.pid).children(recursive=True)
        self.process.kill()
        self.process.wait()
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.rate = None
        self._reader.join(5)
        os.close(self._master)

    def _read(self) -> None:
        tail = b""
        while True:
            rate, most = self.rate, 1 << 16
            if rate is not None:
                time.sleep(SLOW_TICK_SECONDS)
                most = max(1, int(rate * SLOW_TICK_SECONDS))
            try:
                data = os.read(self._master, most)
            except OSError:  # the other end is closed
                return
            now = time.perf_counter()
            # Both may be split between two reads.
            joined = tail + data
            for query in _QUERY.finditer(joined):
                if query.end() > len(tail):
                    os.write(self._master, _answer(query))
            ends = sum(end.end() > len(tail) for end in re.finditer(re.escape(FRAME_END), joined))
            tail = joined[-_LONGEST_QUERY:]
            with self._changed:
                self._reads.append(Read(now, data))
                self._sent += len(data)
                self._frames += ends
                self._changed.notify_all()


class Viewer:
    """Emulates a terminal's screen; the emulator's own time is not counted, as a real one is faster."""

    def __init__(self, terminal: Terminal, columns: int, rows: int) -> None:
        import pyte

        class Screen(pyte.Screen):
            """pyte's screen, with fixes for the private forms of some sequences."""

            def report_device_attributes(self, mode: int = 0, **kwargs: Any) -> None:
                """Do nothing: :class:`Terminal` answers."""

            def report_device_status(self, mode: int = 0, **kwargs: Any) -> None:
                """Do nothing: :class:`Terminal` answers."""

            def select_graphic_rendition(self, *attributes: int, private: bool = False) -> None:
                """Set colours, and ignore ``CSI > ... m``, which configures the keyboard."""
                if not private:
                    super().select_graphic_rendition(*attributes)

        self._terminal = terminal
        self._screen = Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._seen = 0
        self._last = 0.0

    @property
    def text(self) -> str:
        """The screen's text, one line per row."""
        rows, columns = range(self._screen.lines), range(self._screen.columns)
        return "\n".join("".join(self._screen.buffer[row][column].data for column in columns) for row in rows)

    def wait_for(self, condition: Callable[[str], object], timeout: float = 60.0) -> float:
        """Wait until a condition on the screen's text holds.

        Returns:
            When the last byte of the matching screen was read, by :func:`time.perf_counter`.

        Raises:
            TimeoutError: It did not hold in time.
            RuntimeError: The program has exited.
        """
        deadline = time.perf_counter() + timeout
        while not condition(self.text):
            self._terminal.check()
            left = deadline - time.perf_counter()
            if left <= 0:
                raise TimeoutError(f"not on the screen, which shows:\n{self.text}")
            for read in self._terminal.reads_from(self._seen, min(left, 0.5)):
                self._seen += 1
                self._last = read.time
                self._stream.feed(read.data)
                if FRAME_END in read.data and condition(self.text):
                    break
        return self._last
