"""A pseudo-terminal that answers like a real one, keeps when each byte came, and can be read slowly.

It has truecolor, and says when asked that it takes a frame at a time (mode 2026). A thread of its own reads it, so
that a program is never kept waiting, unless :attr:`Terminal.rate` makes a slow link of it.
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
"""What ends a frame, of a program that found that the terminal takes one at a time."""

GAP_SECONDS = 0.003
"""Without a byte for this long, what has come is looked at: a frame comes in several reads."""

SLOW_TICK_SECONDS = 0.05
"""How often a slow link is read."""

_NOT_PASSED_ON = ("NO_COLOR", "TEXTUAL", "TERM_PROGRAM", "TMUX", "STY", "COLUMNS", "LINES")

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
    """What a terminal says to a question."""
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
    """What one read of the terminal gave.

    Attributes:
        time: When, as :func:`time.perf_counter` counts.
        data: At most as much as the system hands over at once, 4 KiB on Linux.
    """

    time: float
    data: bytes


@dataclass(frozen=True, slots=True)
class Usage:
    """What a program has used up to a time, with the processes that it started where those count.

    Attributes:
        time: When, as :func:`time.perf_counter` counts.
        sent: Bytes to the terminal.
        frames: Frames among them.
        cpu: Seconds of processor time.
        memory: Bytes resident now.
    """

    time: float
    sent: int
    frames: int
    cpu: float
    memory: int


class Terminal:
    """A program in a pseudo-terminal of its own.

    Args:
        command: The program and its arguments.
        columns: Width in cells.
        rows: Height in cells.
        environment: Variables to add to those of the benchmark.
    """

    rate: float | None = None
    """Bytes a second that are read from now on; as fast as they come when ``None``."""

    def __init__(
        self,
        command: Sequence[str | Path],
        columns: int = 200,
        rows: int = 50,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._size = (columns, rows)
        self._news = threading.Condition()
        self._reads: list[Read] = []
        self._sent = self._frames = 0
        self._master, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        variables = {name: value for name, value in os.environ.items() if name not in _NOT_PASSED_ON}
        self.started = time.perf_counter()
        """When the program was started, as :func:`time.perf_counter` counts."""
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
        """Type; return when, as :func:`time.perf_counter` counts."""
        now = time.perf_counter()
        os.write(self._master, keys.encode())
        return now

    def viewer(self) -> "Viewer":
        """Somebody who sees what is on the screen, from the program's first byte on."""
        return Viewer(self, *self._size)

    def reads_from(self, first: int, wait: float) -> list[Read]:
        """The reads after the first so many; waits for some, and for a gap after them, but no longer than ``wait``."""
        deadline = time.perf_counter() + wait
        with self._news:
            while (left := deadline - time.perf_counter()) > 0:
                if len(self._reads) == first:
                    self._news.wait(left)
                elif (young := self._reads[-1].time + GAP_SECONDS - time.perf_counter()) > 0:
                    self._news.wait(min(left, young))
                else:
                    break
            return self._reads[first:]

    def usage(self, *, family: bool = False) -> Usage:
        """What the program has used, and with ``family`` the processes that it started as well.

        Raises:
            psutil.NoSuchProcess: It has ended.
        """
        program = psutil.Process(self.process.pid)
        cpu, memory = 0.0, 0
        for process in (program, *program.children(recursive=True)) if family else (program,):
            with contextlib.suppress(psutil.NoSuchProcess) if process is not program else contextlib.nullcontext():
                times = process.cpu_times()
                cpu += times.user + times.system
                memory += process.memory_info().rss
        with self._news:
            return Usage(time.perf_counter(), self._sent, self._frames, cpu, memory)

    def check(self) -> None:
        """Make sure that the program goes on.

        Raises:
            RuntimeError: It has ended; with the last of what it wrote.
        """
        if self.process.poll() is not None:
            with self._news:
                words = b"".join(read.data for read in self._reads)[-2000:].decode(errors="replace")
            words = _STYLE.sub("", words).strip()
            raise RuntimeError(f"ended with status {self.process.returncode}; it wrote last:\n{words}")

    def close(self) -> None:
        """End the program, and whatever it started, and the terminal."""
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
            except OSError:  # nobody has the other end open any more
                return
            now = time.perf_counter()
            # Both may be cut in two by the end of a read.
            joined = tail + data
            for query in _QUERY.finditer(joined):
                if query.end() > len(tail):
                    os.write(self._master, _answer(query))
            ends = sum(end.end() > len(tail) for end in re.finditer(re.escape(FRAME_END), joined))
            tail = joined[-_LONGEST_QUERY:]
            with self._news:
                self._reads.append(Read(now, data))
                self._sent += len(data)
                self._frames += ends
                self._news.notify_all()


class Viewer:
    """Sees a terminal's screen, through an emulator; a real one is faster, so its own time is not counted."""

    def __init__(self, terminal: Terminal, columns: int, rows: int) -> None:
        import pyte

        class Screen(pyte.Screen):
            """pyte's screen, without its mistakes about the private forms of some sequences."""

            def report_device_attributes(self, mode: int = 0, **kwargs: Any) -> None:
                """Answer nothing: the terminal does."""

            def report_device_status(self, mode: int = 0, **kwargs: Any) -> None:
                """Answer nothing: the terminal does."""

            def select_graphic_rendition(self, *attributes: int, private: bool = False) -> None:
                """Take colours, but not what ``CSI > ... m`` asks of a keyboard."""
                if not private:
                    super().select_graphic_rendition(*attributes)

        self._terminal = terminal
        self._screen = Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._seen = 0
        self._last = 0.0

    @property
    def text(self) -> str:
        """What was on the screen at the last look, a line a row."""
        rows, columns = range(self._screen.lines), range(self._screen.columns)
        return "\n".join("".join(self._screen.buffer[row][column].data for column in columns) for row in rows)

    def wait_for(self, there: Callable[[str], object], patience: float = 60.0) -> float:
        """Look until something is there in the screen's text.

        Returns:
            When the last byte of what made it so had come, as :func:`time.perf_counter` counts.

        Raises:
            TimeoutError: It did not come in time.
            RuntimeError: The program has ended.
        """
        deadline = time.perf_counter() + patience
        while not there(self.text):
            self._terminal.check()
            left = deadline - time.perf_counter()
            if left <= 0:
                raise TimeoutError(f"not on the screen; there is:\n{self.text}")
            for read in self._terminal.reads_from(self._seen, min(left, 0.5)):
                self._seen += 1
                self._last = read.time
                self._stream.feed(read.data)
                if FRAME_END in read.data and there(self.text):
                    break
        return self._last
