"""The process that starts a run's processes at a place without a queue, with processes that end as a test says."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from accel_engine import clock
from accel_engine.devices.device_types import Device
from accel_engine.errors import RunError, UsageError
from accel_engine.events import Outcome, RunEnded
from accel_engine.hosts.host_list import Host, add_host
from accel_engine.places import FORMS, TAKES, PlaceName, PlaceRequest, placed_runs
from accel_engine.places.launched import REQUEST, LaunchedPlace, Member
from accel_engine.places.launcher import Launcher
from accel_engine.places.own_process import set_place
from accel_engine.places.place import PlacedJob, machine_devices
from accel_engine.places.ssh_hosts import SshHosts
from accel_engine.plan import Plan
from accel_engine.run import RunWriter, Status, create
from accel_engine.run.engine.status import read_info
from accel_engine.run.store.database import reading
from accel_engine.run.store.meta import PlacedRun
from accel_engine.run.store.stored_events import last_event
from accel_engine.version import __version__


class Ended:
    """A process that has ended."""

    name = "node1"

    def poll(self) -> int:
        return 0

    def end(self) -> None:
        pass


class Nodes(LaunchedPlace):
    """Two nodes whose processes end as a test says."""

    ends: ClassVar[list[Callable[[Path], None]]] = []
    starts: ClassVar[int] = 0

    def machine(self, request: PlaceRequest) -> tuple[Device, ...]:
        return machine_devices(request.gpus or 0)

    def start(self, job: PlacedJob, tell: Callable[[str], bool]) -> list[Member]:
        assert tell("nodes are asked")
        type(self).starts += 1
        self.ends.pop(0)(job.directory)
        return [Ended()]


def ends(outcome: Outcome, *, temporary: bool = False) -> Callable[[Path], None]:
    def end(directory: Path) -> None:
        writer = RunWriter(directory)
        writer.begin()
        now = clock.now()
        writer.end(
            RunEnded(time=now, outcome=outcome, steps=0, epochs=0, seconds=1, reason="lost", temporary=temporary)
        )

    return end


def fails(error: Exception) -> Callable[[Path], None]:
    def fail(_: Path) -> None:
        raise error

    return fail


@pytest.fixture
def launch(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Status, str, int]]:
    """Launch a run; returns its status, why it ended, and how often its processes were started."""
    monkeypatch.setitem(placed_runs._PLACES, "nodes", Nodes)
    monkeypatch.setitem(TAKES, "nodes", TAKES["ray"])
    monkeypatch.setitem(FORMS, "nodes", "nodes:N")
    monkeypatch.setenv("ACCEL_TUI_RESTART_SECONDS", "0.01")
    monkeypatch.setattr("accel_engine.places.launcher.POLL_SECONDS", 0.01)

    def run(*how: Callable[[Path], None], cancelled: bool = False, **plan: str) -> tuple[Status, str, int]:
        Nodes.ends, Nodes.starts = list(how), 0
        directory = create(Plan(model="mlp", data="digits", **plan), queued=True)
        set_place(directory, PlacedRun("nodes:2", str(directory), is_cancelled=cancelled))
        (directory / REQUEST).write_text('{"nodes": 1}')
        Launcher(directory).launch()
        with reading(directory) as database:
            ended = last_event(database, RunEnded)
            return read_info(database, watched=False).status, ended.reason if ended else "", Nodes.starts

    return run


def test_a_run_that_finishes_is_started_once(launch) -> None:
    assert launch(ends(Outcome.FINISHED)) == (Status.FINISHED, "lost", 1)


def test_a_lost_node_ends_the_run(launch) -> None:
    assert launch(ends(Outcome.FAILED, temporary=True)) == (Status.FAILED, "lost", 1)


def test_with_keep_alive_all_start_again(launch) -> None:
    lost = ends(Outcome.FAILED, temporary=True)
    assert launch(lost, lost, ends(Outcome.FINISHED), keep_alive="on") == (Status.FINISHED, "lost", 3)


def test_a_node_that_is_away_for_a_while_is_waited_for(launch) -> None:
    lost, away = ends(Outcome.FAILED, temporary=True), fails(RunError("node1 cannot be asked"))
    assert launch(lost, away, away, ends(Outcome.FINISHED), keep_alive="on") == (Status.FINISHED, "lost", 4)


def test_a_first_start_that_fails_ends_the_run_with_the_reason(launch) -> None:
    away = fails(RunError("node1 cannot be asked over SSH: Connection timed out"))
    status, reason, starts = launch(away, keep_alive="on")
    assert (status, starts) == (Status.FAILED, 1)
    assert reason == "node1 cannot be asked over SSH: Connection timed out"


def test_processes_that_end_before_their_engine_end_the_run(launch) -> None:
    def says(directory: Path) -> None:
        (directory / "job.log").write_text("accel-tui: no TensorFlow is installed\n")

    status, reason, _ = launch(says)
    assert status is Status.FAILED
    assert reason == "its processes have ended: accel-tui: no TensorFlow is installed"


def test_a_cancelled_run_is_not_started(launch) -> None:
    _, _, starts = launch(ends(Outcome.FINISHED), cancelled=True)
    assert starts == 0


SSH = f"""#!{sys.executable} -S
import subprocess, sys
if sys.argv[1] == "-G":
    print("user me\\nhostname 10.0.0." + sys.argv[2][-1])
    sys.exit()
host, words = sys.argv[-2:]
if host == "away":
    print("ssh: connect to host away port 22: Connection timed out", file=sys.stderr)
    sys.exit(255)
if host == "bare":
    sys.exit(127)
sys.exit(subprocess.run(["sh", "-c", words]).returncode)
"""
"""``ssh`` to this machine under other names."""


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ssh"
    program.write_text(SSH)
    program.chmod(0o755)
    monkeypatch.setenv("ACCEL_TUI_SSH", str(program))


def hosts(names: str) -> SshHosts:
    return SshHosts(PlaceName("hosts", names))


def test_hosts_say_what_they_have(ssh) -> None:
    (found,) = hosts("host1")._ask(None)
    assert (found.version, found.problem) == (__version__, "")
    assert found.port > 1023


def test_hosts_without_the_run_are_named(ssh, tmp_path) -> None:
    with pytest.raises(UsageError, match=r"host1: there is no .*: the machines need a shared directory of runs"):
        hosts("host1")._ask(tmp_path)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ("away", "away cannot be asked over SSH: ssh: connect to host away port 22: Connection timed out"),
        ("bare", "bare cannot be asked over SSH: exit status 127"),
        ("a,a", "--hosts names a twice"),
        ("a,-oProxyCommand=x", "'-oProxyCommand=x' is not a destination of ssh"),
    ],
)
def test_hosts_that_cannot_be_used_are_refused(ssh, names: str, told: str) -> None:
    with pytest.raises((RunError, UsageError)) as refused:
        hosts(names).describe(PlaceRequest())
    assert told in str(refused.value)


def test_hosts_that_the_user_has_added_are_known_by_their_names(ssh, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    add_host(Host("lab", "me@host7", str(python)))
    (found,) = hosts("lab")._ask(None)
    assert found.version == __version__
    (machine,) = hosts("lab")._machines
    assert (machine.target, machine.python, machine.address) == ("me@host7", str(python), "10.0.0.7")
    with pytest.raises(RunError, match=r"away cannot be asked over SSH \(a destination of ssh: the hosts are lab\): "):
        hosts("lab,away").describe(PlaceRequest())


@pytest.mark.parametrize(
    ("asked", "flag"),
    [
        ({"walltime": 300.0}, "--walltime"),
        ({"cpus": 1}, "--cpus"),
        ({"host_memory": 4096}, "--host-memory"),
        ({"place_options": ("--account=x",)}, "--place-option"),
        ({"image": "foo"}, "--image"),
    ],
)
def test_hosts_refuse_options_that_they_do_not_have(asked: dict[str, Any], flag: str) -> None:
    with pytest.raises(UsageError, match=f"hosts:a has no {flag}: it has --nodes, --gpus, --write"):
        hosts("a").describe(PlaceRequest(**asked))


def test_the_number_of_nodes_follows_from_the_hosts() -> None:
    assert hosts("a,b").nodes(PlaceRequest()) == 2
    with pytest.raises(UsageError, match="--nodes 3: hosts:a,b names 2"):
        hosts("a,b").nodes(PlaceRequest(nodes=3))


def test_a_command_of_the_program_ends_with_its_input(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "accel_engine.places", "run", str(tmp_path), "devices", "--watch", "--json"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdin
        process.stdout.readline()
        process.stdin.close()
        process.stdout.read()
    assert process.returncode in (0, 130)


def test_the_entry_of_processes_explains_itself() -> None:
    command = [sys.executable, "-m", "accel_engine.places", "begin", "x"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
    assert done.returncode == 2
    assert "start|end|kill|answer|run RUN" in done.stderr
