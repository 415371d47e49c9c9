"""Hangups and SIGUSR1 end neither engines, from their first moment on, nor commands."""

import os
import signal
import subprocess
import sys

import pytest

from accel_engine import hangup

CHILD = """
import os, signal
from accel_engine import hangup
os.kill(os.getpid(), signal.{number})  # before it has done anything about it
hangup.{function}()
os.kill(os.getpid(), signal.{number})
print("alive")
"""


@pytest.mark.parametrize("number", ["SIGHUP", "SIGUSR1"])
@pytest.mark.parametrize("function", ["ignore", "survive"])
def test_a_process_survives_from_its_start_on(function: str, number: str) -> None:
    code = CHILD.format(function=function, number=number)
    with (
        hangup.deferred(),
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.communicate()[0] == "alive\n"
    assert process.returncode == 0


def test_a_command_survives_the_signal_to_save_a_checkpoint() -> None:
    code = "import os, signal; from accel_tui.cli import main; main(['{}']); os.kill(os.getpid(), signal.SIGUSR1)"
    done = subprocess.run([sys.executable, "-c", code.format("version")], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_a_surviving_process_starts_gets_the_signals() -> None:
    before = signal.getsignal(signal.SIGUSR1)
    try:
        hangup.survive_checkpoint_signal()
        os.kill(os.getpid(), signal.SIGUSR1)
        code = "import os, signal; os.kill(os.getpid(), signal.SIGUSR1)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGUSR1
    finally:
        signal.signal(signal.SIGUSR1, before)
