"""Two hosts of network namespaces on this machine, with real ``sshd``, Slurm and, if it is installed, Ray.

``make cluster`` runs these tests, as root, on Linux with the packages that ``cluster.sh`` names; others skip them.
"""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from accel_engine.events import Event
from accel_engine.run import RunInfo, RunReader

ASKED = "ACCEL_TUI_CLUSTER"
"""Environment variable with which these tests run."""

SCRIPT = Path(__file__).with_name("cluster.sh")

DIRECTORY = Path(os.environ.get("DIR", "/tmp/accel-cluster"))

SECONDS = 480.0
"""How long anything may take; machines with few cores are slow to start TensorFlow twice."""


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Skip these tests unless they are asked for."""
    if not os.environ.get(ASKED):
        for item in items:
            if item.path.is_relative_to(SCRIPT.parent):
                item.add_marker(pytest.mark.skip(reason="`make cluster` runs these tests, as root"))


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    """The two hosts; they are left as they were found."""
    if os.geteuid() != 0:
        pytest.fail("the hosts of `make cluster` are made by root")
    was_up = Path("/run/netns/n0").exists()
    up = subprocess.run(["bash", str(SCRIPT), "up"], capture_output=True, text=True, check=False)
    assert up.returncode == 0, up.stdout + up.stderr
    yield
    if not was_up:
        subprocess.run(["bash", str(SCRIPT), "down"], check=False)


@pytest.fixture
def ssh(cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``ssh`` with the key of the hosts."""
    program = tmp_path / "ssh"
    program.write_text(f'#!/bin/sh\nexec ssh -F {shlex.quote(str(DIRECTORY / "ssh_config"))} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("ACCEL_TUI_SSH", str(program))


@dataclass(frozen=True, slots=True)
class Placed:
    """A run that a place has started."""

    directory: Path

    @property
    def info(self) -> RunInfo:
        with closing(RunReader(self.directory, steps=False)) as reader:
            return reader.info(watched=False)

    @property
    def job(self) -> str:
        place = self.info.place
        assert place is not None
        return place.job

    @property
    def events(self) -> tuple[Event, ...]:
        with closing(RunReader(self.directory)) as reader:
            return reader.poll().events

    @property
    def steps(self) -> int:
        with closing(RunReader(self.directory)) as reader:
            new = reader.new_steps()
            return new.stop if new else 0

    def wait_for(self, what: str, condition: Callable[["Placed"], bool]) -> None:
        """Wait until the run is as it should be."""
        until = time.monotonic() + SECONDS
        while not condition(self):
            if time.monotonic() > until:
                log = ""
                with suppress(OSError):
                    log = (self.directory / "job.log").read_text()
                pytest.fail(f"no {what} within {SECONDS:g} s; the run is {self.info.status}; its job said:\n{log}")
            time.sleep(0.5)


def program(*words: str, at: str = "", python: str = sys.executable) -> "subprocess.CompletedProcess[str]":
    """Run a command of the program, on this machine or in a host's network."""
    there = ["nsenter", f"--net=/run/netns/{at}"] if at else []
    command = [*there, python, "-m", "accel_tui", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


def start(*words: str, at: str = "", python: str = sys.executable) -> Placed:
    """Train in the background at a place."""
    done = program("train", "--data", "digits", "--model", "mlp", "--detach", *words, at=at, python=python)
    assert done.returncode == 0, done.stderr
    return Placed(Path(os.environ["ACCEL_TUI_HOME"], "runs", done.stdout.strip()))
