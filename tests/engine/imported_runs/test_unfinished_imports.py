"""What imports that were killed have left is removed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from accel_engine.imported_runs.sources import find, import_run
from accel_engine.imported_runs.unfinished_imports import remove_abandoned
from accel_engine.run import runs_directory
from accel_engine.run.directory.lock import WriterLock, is_held

KILLED = """
import os, signal, sys
from pathlib import Path
from accel_engine.imported_runs import write_run
from accel_engine.imported_runs.sources import find, import_run
from accel_engine.run import runs_directory
from accel_engine.run.directory.lock import is_held

def killed(*_):
    (unfinished,) = runs_directory().glob(".import-*")
    print(is_held(unfinished), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

write_run._end = killed
import_run(find(Path(sys.argv[1]))[0])
"""


@pytest.fixture
def unfinished() -> Path:
    """The directory of an import that began two hours ago."""
    directory = runs_directory() / ".import-abc"
    directory.mkdir(parents=True)
    (directory / "file").touch()
    age(directory)
    return directory


def age(directory: Path) -> None:
    os.utime(directory, (time.time() - 7200,) * 2)


def test_the_next_import_removes_what_a_killed_one_has_left(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("step,loss\n0,1\n")
    killed = subprocess.run([sys.executable, "-c", KILLED, file], capture_output=True, text=True)
    assert (killed.returncode, killed.stdout, killed.stderr) == (-signal.SIGKILL, "True\n", "")
    (left,) = runs_directory().iterdir()
    assert not is_held(left)
    age(left)
    run_id, _ = import_run(find(file)[0])
    assert [path.name for path in runs_directory().iterdir()] == [run_id]
    assert not (runs_directory() / run_id / "run.lock").exists()


def test_what_nobody_writes_is_removed(unfinished: Path) -> None:
    (unfinished.parent / "abcd-run").mkdir()
    age(unfinished.parent / "abcd-run")
    remove_abandoned()
    assert [path.name for path in runs_directory().iterdir()] == ["abcd-run"]


def test_what_another_import_writes_stays(unfinished: Path) -> None:
    with WriterLock(unfinished):
        age(unfinished)
        remove_abandoned()
    assert unfinished.exists()


def test_what_has_just_begun_stays(unfinished: Path) -> None:
    os.utime(unfinished)
    remove_abandoned()
    assert unfinished.exists()
