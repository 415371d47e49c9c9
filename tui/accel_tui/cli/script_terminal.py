"""Connects this terminal with a script: its output here, keys and signals there."""

import fcntl
import os
import selectors
import signal
import socket
import struct
import termios
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NoReturn, Self

from accel_engine.errors import RunError
from accel_engine.recording.recorder_messages import FORWARDED, MessageReader, pack_message
from accel_tui.cli.output import print_to_stderr
from accel_tui.cli.signals import Handler, signal_handlers


class ScriptTerminal:
    """Shows a script's output and forwards keys, signals and the terminal's size, until the script ends.

    While it is in the foreground, the terminal passes every key on unchanged: the script's own terminal handles Ctrl-C,
    Ctrl-Z and line editing.

    Args:
        connection: Connected with the script's supervisor.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader = MessageReader(connection)
        self._selector = selectors.DefaultSelector()
        self._wakeup_reader, self._wakeup_writer = os.pipe()
        os.set_blocking(self._wakeup_writer, False)
        self._signals = ExitStack()
        self._original: list[Any] | None = None
        self._status: int | None = None
        self._is_output_open = False
        self._notices: list[str] = []
        self._terminal = next((fd for fd in (1, 2, 0) if os.isatty(fd)), 1)
        self._shown = {"stdout": 1, "stderr": 2, "terminal": self._terminal}

    def __enter__(self) -> Self:
        """Forward signals from now on, also before the script has started."""
        self._signals.enter_context(self._handling_signals())
        return self

    def __exit__(self, *_: object) -> None:
        self._signals.close()
        self._connection.close()

    def run(self) -> int:
        """Connect until the script ends.

        If a process that the script has left behind still has its output open, a child of this process shows that, as
        the process itself would without accel-tui.

        Returns:
            The script's exit status, or the negative number of the signal that killed it.

        Raises:
            RunError: The supervisor is gone.
        """
        self._selector.register(self._connection, selectors.EVENT_READ)
        self._selector.register(self._wakeup_reader, selectors.EVENT_READ)
        try:
            while self._status is None:
                for key, _ in self._selector.select():
                    if key.fileobj is self._connection:
                        self._receive()
                    elif key.fileobj == self._wakeup_reader:
                        os.read(self._wakeup_reader, 1 << 10)
                    else:
                        self._send_keys()
        finally:
            self._release()
            for notice in self._notices:  # not in the middle of the script's output
                print_to_stderr(notice)
        if self._is_output_open and not os.fork():
            self._show_rest()
        return self._status

    def _show_rest(self) -> NoReturn:
        """Show output until its end."""
        self._selector.unregister(self._wakeup_reader)
        with suppress(BaseException):
            while True:
                self._receive()  # ends with an error when the supervisor does
                self._selector.select()
        os._exit(0)

    @contextmanager
    def _handling_signals(self) -> Iterator[None]:
        handlers: dict[signal.Signals, Handler] = {
            **dict.fromkeys(FORWARDED, self._forward),
            signal.SIGTSTP: lambda *_: self._send({"signal": signal.SIGSTOP, "group": True}),
            signal.SIGWINCH: lambda *_: self._send_size(),
            signal.SIGCONT: lambda *_: self._continue(),
        }
        # A signal may be ignored, as after nohup, or in the background of a script.
        heeded = {each: handler for each, handler in handlers.items() if signal.getsignal(each) is not signal.SIG_IGN}
        with signal_handlers(heeded):
            wakeup = signal.set_wakeup_fd(self._wakeup_writer, warn_on_full_buffer=False)
            try:
                yield
            finally:
                signal.set_wakeup_fd(wakeup)

    def _forward(self, number: int, _frame: object) -> None:
        """Forward a signal: Ctrl-C to the script's whole process group, as a terminal does."""
        self._send({"signal": number, "group": number in (signal.SIGINT, signal.SIGQUIT)})

    def _continue(self) -> None:
        """Resume the script after Ctrl-Z and ``fg`` or ``bg``."""
        self._claim()
        self._send({"resume": True})

    def _receive(self) -> None:
        try:
            is_open = self._reader.receive()
        except OSError:
            is_open = False
        while message := self._reader.next():
            values, data = message
            if source := values.get("output"):
                self._write(source, data)
            elif values.get("started"):  # its terminal has got the settings of this one
                self._claim()
            elif "exit" in values:
                self._status, self._is_output_open = int(values["exit"]), bool(values.get("open"))
            elif notice := values.get("notice"):
                self._notices.append(str(notice))
            elif values.get("suspended"):
                self._suspend()
        if not is_open and (self._status is None or self._is_output_open):
            raise RunError("the supervisor of the script is gone: see accel-tui runs")

    def _write(self, source: str, data: bytes) -> None:
        """Write output of a stream; if its reader is gone, the script meets that itself, as without accel-tui."""
        try:
            while data and source in self._shown:
                data = data[os.write(self._shown[source], data) :]
        except BrokenPipeError:
            del self._shown[source]
            self._send({"closed": source})
        except OSError as error:
            del self._shown[source]
            print_to_stderr(f"cannot write the script's output here, only to its log: {error.strerror}")

    def _suspend(self) -> None:
        """Suspend this process group, as a terminal does, since the script is suspended."""
        self._release()
        os.kill(0, signal.SIGSTOP)

    def _claim(self) -> None:
        """Pass keys on, if this process is in the foreground of a terminal."""
        if self._original is not None or not os.isatty(0) or os.tcgetpgrp(0) != os.getpgrp():
            return
        self._original = termios.tcgetattr(0)
        raw = termios.tcgetattr(0)
        raw[0] &= ~(termios.BRKINT | termios.ICRNL | termios.INPCK | termios.ISTRIP | termios.IXON)
        raw[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
        raw[6][termios.VMIN], raw[6][termios.VTIME] = 1, 0
        if os.isatty(1):
            raw[1] &= ~termios.OPOST  # the script's terminal has done it
        termios.tcsetattr(0, termios.TCSADRAIN, raw)
        self._selector.register(0, selectors.EVENT_READ)
        self._send_size()

    def _release(self) -> None:
        """Give the terminal back as it was."""
        if self._original is not None:
            with suppress(termios.error, OSError):  # it is gone
                termios.tcsetattr(0, termios.TCSADRAIN, self._original)
            self._original = None
            self._selector.unregister(0)

    def _send_keys(self) -> None:
        with suppress(OSError):
            if data := os.read(0, 1 << 12):
                self._send({"keys": True}, data)
                return
        self._selector.unregister(0)  # the terminal is gone
        self._original = None

    def _send_size(self) -> None:
        with suppress(OSError):
            rows, columns, *_ = struct.unpack("HHHH", fcntl.ioctl(self._terminal, termios.TIOCGWINSZ, bytes(8)))
            self._send({"size": [rows, columns]})

    def _send(self, values: dict[str, Any], data: bytes = b"") -> None:
        with suppress(OSError):  # the supervisor has ended; its last message is still to be read
            self._connection.sendall(pack_message(values, data))
