"""Processes that outlive who starts them."""

import os
import stat
from pathlib import Path

import pytest

from accel_engine.errors import RunError
from accel_engine.process.detached import start_detached
from accel_engine.run.directory.lock import WriterLock

TELL = """
import os, signal, sys
held = sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
print(os.getsid(0) == os.getpid(), held, os.environ["TOLD"], sys.stdin.read())
"""

WORK = """
import sys
from pathlib import Path
from accel_engine.errors import RunError
from accel_engine.process.detached import work_alone

def work(lock):
    print("worked", file=sys.stderr)
    raise RunError("the reason")

sys.exit(work_alone(Path(sys.argv[1]), "work.lock", work))
"""


def test_it_leads_a_session_reads_nothing_and_adds_to_a_log_of_its_owner(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for _ in range(2):
        assert start_detached("it", "-c", TELL, log=log, environment={"TOLD": "told"}).wait() == 0
    assert log.read_text() == "True [<Signals.SIGHUP: 1>, <Signals.SIGUSR1: 10>] told \n" * 2
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_why_it_cannot_be_started_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunError, match="cannot write the log of it: Is a directory"):
        start_detached("it", "-c", "", log=tmp_path)
    monkeypatch.setattr("accel_engine.process.detached.sys.executable", os.devnull)
    with pytest.raises(RunError, match="cannot start it: Permission denied"):
        start_detached("it", "-c", "", log=tmp_path / "log")


def test_one_process_does_the_work_and_errors_are_in_its_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with WriterLock(tmp_path, "work.lock"):
        assert start_detached("it", "-c", WORK, str(tmp_path), log=log).wait() == 0
    assert log.read_text() == ""
    assert start_detached("it", "-c", WORK, str(tmp_path), log=log).wait() == 1
    assert log.read_text() == "worked\naccel-tui: the reason\n"
