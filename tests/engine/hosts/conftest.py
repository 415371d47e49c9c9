"""A host without ssh: a stand-in for it runs the command here, with another directory of the program."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from accel_engine.events import Outcome, RunEnded
from accel_engine.hosts import link, mirrored_runs
from accel_engine.hosts.host_list import Host, add_host
from accel_engine.plan import Plan
from accel_engine.run import RunWriter, create
from recorded_run import started
from stand_in_ssh import write_stand_in


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """The file that, while it exists, keeps the stand-in from connecting."""
    return tmp_path / "cut"


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """The program's directory on the host."""
    return tmp_path / "there"


@pytest.fixture
def host(tmp_path: Path, there: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """A host called ``gpu1``."""
    program, _ = write_stand_in(tmp_path)
    monkeypatch.setenv("ACCEL_TUI_SSH", str(program))
    monkeypatch.setattr(link, "_links", {})
    monkeypatch.setattr(mirrored_runs, "_is_patient", True)  # a dashboard in this process has changed it
    monkeypatch.setattr(mirrored_runs, "_mirrors", {})
    monkeypatch.setattr(mirrored_runs, "_forwarded", set())
    host = Host("gpu1", python=sys.executable, home=str(there))
    add_host(host)
    yield host
    for mirror in mirrored_runs._mirrors.values():
        mirror.stop()
    for each in link._links.values():
        each.close()


@pytest.fixture
def on_host(there: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Path]:
    """Return a function that creates a run there, as its own accel-tui does."""

    def make() -> Path:
        here = os.environ["ACCEL_TUI_HOME"]
        monkeypatch.setenv("ACCEL_TUI_HOME", str(there))
        directory = create(Plan(name="far away"))
        monkeypatch.setenv("ACCEL_TUI_HOME", here)
        return directory

    return make


@pytest.fixture
def far_writer(host: Host, on_host: Callable[[], Path]) -> Iterator[RunWriter]:
    """What the engine of a run there writes with; the run has begun."""
    with closing(RunWriter(on_host())) as writer:
        writer.begin(started())
        yield writer


@pytest.fixture(name="finish")
def _finish() -> Callable[[RunWriter], None]:
    """Return a function that ends a run."""
    ended = RunEnded(
        time=99.0, outcome=Outcome.FINISHED, steps=0, epochs=1, seconds=1.0, steps_per_second=0.0, metrics={}
    )
    return lambda writer: writer.end(ended)
