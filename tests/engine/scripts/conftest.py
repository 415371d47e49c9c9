"""The run of a script, and the server to which its recorders connect, in this process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from accel_engine.recording import supervisor_address
from accel_engine.scripts import patient_writer
from accel_engine.scripts.listener import Listener
from accel_engine.scripts.recorder_server import RecorderServer
from accel_engine.scripts.script_run import ScriptRun
from accel_engine.scripts.start_script import Script, create_script_run


class Reports(list[str]):
    """What the log was told."""


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.fixture
def run(home: Path, tmp_path: Path, reports: Reports, monkeypatch: pytest.MonkeyPatch) -> ScriptRun:
    """A run that has begun."""
    monkeypatch.setattr(patient_writer, "RETRY_SECONDS", 0.01)
    (tmp_path / "train.py").touch()
    directory = create_script_run(Script(str(tmp_path / "train.py")), "", ())
    begun = ScriptRun(directory, reports.append)
    begun.begin()
    return begun


@pytest.fixture
def server(run: ScriptRun, monkeypatch: pytest.MonkeyPatch) -> Iterator[RecorderServer]:
    """A server, which this process uses as a script does."""
    listener = Listener()
    monkeypatch.setattr(supervisor_address, "given_address", listener.address)
    yield RecorderServer(listener, run.begin_recording, run.warn)
    listener.close()
