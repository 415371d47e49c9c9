"""The dashboard's start and end in a real pseudo-terminal, with apps that end in every way."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from accel_tui.cli import dashboard
from end_to_end.terminal import Terminal

PROGRAM = """
import sys, types
from textual.app import App
from textual.widgets import Label

class AccelApp(App):
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = [("x", "crash"), ("m", "leave('bye')"), ("q", "leave('')")]

    settings_error = None

    def __init__(self, open_run, settings, **_):
        super().__init__()
        self.open_run = open_run
        {in_init}

    def compose(self):
        yield Label(f"here with {{self.open_run}}")

    def action_crash(self):
        raise RuntimeError("a mistake of ours")

    def action_leave(self, message):
        self.exit(message=message or None)

    async def run_async(self, **options):
        try:
            return await super().run_async(**options)
        finally:
            {in_run}

module = types.ModuleType("accel_tui.app")
module.AccelApp = AccelApp
sys.modules["accel_tui.app"] = module
from accel_tui.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def start(tmp_path):
    opened = []

    def start(*arguments, in_init="pass", in_run="pass", **environment):
        program = tmp_path / "program.py"
        program.write_text(PROGRAM.format(in_init=in_init, in_run=in_run))
        environment = {"ACCEL_TUI_DEBUG": "", **environment}
        terminal = Terminal([sys.executable, program, *arguments], environment=environment)
        opened.append(terminal)
        return terminal

    yield start
    for terminal in opened:
        terminal.close()


def given_back(terminal):
    return terminal.modes == terminal.modes_before and terminal.altered == []


def test_leaving_gives_the_terminal_back(start):
    terminal = start()
    terminal.wait_for("here with None")
    terminal.send("q")
    assert terminal.wait_closed() == 0
    assert given_back(terminal)


def test_last_words_of_the_dashboard_are_passed_on(start):
    terminal = start()
    terminal.wait_for("here")
    terminal.send("m")
    assert terminal.wait_closed() == 0
    assert "bye" in terminal.text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_gives_the_terminal_back(start, number):
    terminal = start()
    terminal.wait_for("here")
    os.kill(terminal.process.pid, number)
    assert terminal.wait_closed() == 0
    assert given_back(terminal)


def test_a_terminal_that_goes_away_ends_it_though_no_signal_says_so(tmp_path, wait_until):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(in_init="pass", in_run="pass"))
    terminal, side = pty.openpty()
    # In a session without a controlling terminal, so that the kernel sends it no hang-up.
    process = subprocess.Popen([sys.executable, program], stdin=side, stdout=side, stderr=side, start_new_session=True)
    os.close(side)
    try:
        seen = bytearray()  # one read may end within the words
        wait_until(lambda: seen.extend(os.read(terminal, 65536)) or b"here with" in seen, "the dashboard")
        os.close(terminal)
        process.wait(120)
    finally:
        process.kill()
        process.wait()


def test_a_crash_is_a_line_and_a_report(start, home):
    terminal = start()
    terminal.wait_for("here")
    terminal.send("x")
    assert terminal.wait_closed() == 1
    assert given_back(terminal)
    assert "accel-tui: the dashboard crashed" in terminal.text
    assert "Traceback" not in terminal.text
    report = home / "crash.txt"
    assert "a mistake of ours" in report.read_text()
    assert report.stat().st_mode & 0o077 == 0


def test_a_crash_shows_its_traceback_when_asked(start, home):
    terminal = start(ACCEL_TUI_DEBUG="1")
    terminal.wait_for("here")
    terminal.send("x")
    assert terminal.wait_closed() == 1
    assert "a mistake of ours" in terminal.text
    assert not (home / "crash.txt").exists()


@pytest.mark.parametrize("where", ["in_init", "in_run"])
def test_a_crash_outside_the_app_gives_the_terminal_back_too(start, where):
    fail = "sys.stdout.write('\\x1b[?1049h\\x1b[?25l\\x1b[?1003h'); import tty; tty.setraw(0); 1 / 0"
    terminal = start(**{where: fail})
    if where == "in_run":
        terminal.wait_for("here")
        terminal.send("q")
    assert terminal.wait_closed() == 1
    assert given_back(terminal)
    assert "unexpected ZeroDivisionError" in terminal.text


def test_watching_opens_it_on_the_run(start, new_run):
    engine = new_run()
    engine.train()
    terminal = start("watch", "last")
    terminal.wait_for(f"here with {engine.directory}"[:60])
    terminal.send("q")
    assert terminal.wait_closed() == 0


def test_a_dumb_terminal_is_told(start):
    terminal = start(TERM="dumb")
    assert terminal.wait_closed() == 2
    assert "TERM='dumb'" in terminal.text
    assert "accel-tui train" in terminal.text


def test_an_unwritable_home_does_not_hide_the_crash(capfd, monkeypatch, tmp_path):
    monkeypatch.delenv("ACCEL_TUI_DEBUG", raising=False)
    (tmp_path / "file").touch()
    monkeypatch.setenv("ACCEL_TUI_HOME", str(Path(tmp_path / "file" / "below")))
    assert dashboard._report_exit(1, "the traceback") == 1
    said = capfd.readouterr().err
    assert said.startswith("accel-tui: the dashboard crashed")
    assert "the traceback" not in said


def test_what_libraries_print_is_not_on_the_screen(capfd):
    with dashboard.silent_libraries():
        os.write(2, b"of a library\n")
        sys.__stderr__.write("of Textual\n")
        sys.__stderr__.flush()
    os.write(2, b"afterwards\n")
    assert capfd.readouterr().err == "of Textual\nafterwards\n"
