import signal
import subprocess
import sys

import pytest

from accel_tui.cli import follow_run
from accel_tui.cli.follow_run import Interrupts
from tui.fake_engine import close_all

STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def stubborn():
    """An engine's process that ignores TERM."""
    with subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


@pytest.fixture
def info(stubborn, new_run):
    engine = new_run(pid=stubborn.pid)
    engine.begin()
    from accel_engine.run import RunReader

    reader = RunReader(engine.directory)
    yield reader.info()
    reader.close()


def test_nothing_is_done_before_ctrl_c(info):
    with Interrupts() as watched:
        assert list(watched.escalate(info)) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_each_signal_is_harder_than_the_one_before(info, stubborn, number):
    with Interrupts() as watched:
        said = []
        for _ in range(4):
            signal.raise_signal(number)
            said += watched.escalate(info)
        assert list(watched.escalate(info)) == []
    assert "send SIGTERM again to stop now" in said[0]
    assert "is killed after 20 s; press Ctrl-C or send SIGTERM again" in said[1]
    assert [
        "checkpoint" in said[0],
        "stopping now" in said[1],
        "sent SIGTERM" in said[2],
        "sent SIGKILL" in said[3],
    ] == [True] * 4
    assert stubborn.wait(120) == -signal.SIGKILL


def test_an_engine_that_does_not_obey_in_time_is_killed(info, stubborn, monkeypatch):
    monkeypatch.setattr(follow_run, "TIMEOUTS", (None, 0.0, 0.0, None))
    with Interrupts() as watched:
        signal.raise_signal(signal.SIGINT)
        assert len(list(watched.escalate(info))) == 1
        assert list(watched.escalate(info)) == [], "a graceful stop may take as long as it takes"
        signal.raise_signal(signal.SIGINT)
        said = []
        while len(said) < 3:
            said += watched.escalate(info)
    assert "KILL" in said[-1]
    assert stubborn.wait(120) == -signal.SIGKILL


def test_an_engine_that_has_ended_meanwhile_is_left_alone(info, stubborn):
    stubborn.kill()
    stubborn.wait()
    close_all()
    with Interrupts() as watched:
        for _ in range(4):
            signal.raise_signal(signal.SIGINT)
        assert list(watched.escalate(info)) == []
