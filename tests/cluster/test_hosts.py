"""Faults of a host over real ``sshd``, in a network namespace with one cable to this machine, made by root.

The file system is shared, so that a thread of a test writes the run there as its engine would.
"""

import os
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from accel_engine.errors import RunError
from accel_engine.events import Outcome, RunEnded
from accel_engine.hosts import link, mirrored_runs
from accel_engine.hosts.connection import HostConnection, HostLostError, HostRefusedError
from accel_engine.hosts.host_list import Host, add_host
from accel_engine.hosts.mirrored_runs import list_runs_of, problem_of
from accel_engine.hosts.reading import HostReader, HostReading
from accel_engine.hosts.runs_there import start
from accel_engine.plan import Plan
from accel_engine.run import RunReader, RunWriter, Status, create, find_run, send_command
from accel_engine.run.engine.commands import read_answer
from cluster.conftest import SECONDS
from recorded_run import execute, started
from waiting import wait_until

pytestmark = pytest.mark.skipif(
    not os.environ.get("ACCEL_TUI_CLUSTER"), reason="`make cluster` runs these tests, as root"
)

SPACE, CABLE, HERE, ADDRESS = "accel-far", "accel-far0", "10.78.0.1", "10.78.0.2"

SSHD = """\
Port 22
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
StrictModes no
PidFile {folder}/sshd.pid
PermitRootLogin yes
UsePAM no
"""


def run(*words: str) -> None:
    """Run a command of the system."""
    subprocess.run(words, check=True, capture_output=True)


@dataclass
class Machine:
    """The host: its network, its ``sshd`` and the program's directory there."""

    folder: Path
    home: Path

    def boot(self) -> None:
        """Start ``sshd``."""
        Path("/run/sshd").mkdir(exist_ok=True)
        (self.folder / "sshd.conf").write_text(SSHD.format(address=ADDRESS, folder=self.folder))
        run("nsenter", f"--net=/run/netns/{SPACE}", "/usr/sbin/sshd", "-f", str(self.folder / "sshd.conf"))

    def crash(self) -> None:
        """End ``sshd`` and all that it has started, at once."""
        for pid in subprocess.run(["ip", "netns", "pids", SPACE], capture_output=True, text=True).stdout.split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), 9)
        (self.folder / "sshd.pid").unlink(missing_ok=True)

    def new_host_key(self) -> None:
        """Make the key that it identifies itself with."""
        for name in ("host_key", "host_key.pub"):
            (self.folder / name).unlink(missing_ok=True)
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / "host_key"))

    def know_host_key(self) -> None:
        """Let this machine know it."""
        words = (self.folder / "host_key.pub").read_text().split()[:2]
        (self.folder / "known_hosts").write_text(f"{ADDRESS} {' '.join(words)}\n")

    @staticmethod
    def cut() -> None:
        """Pull the cable."""
        run("ip", "link", "set", CABLE, "down")

    @staticmethod
    def mend() -> None:
        """Plug it in again."""
        run("ip", "link", "set", CABLE, "up")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    if os.geteuid() != 0:
        pytest.fail("the host of `make cluster` is made by root")
    folder = tmp_path_factory.mktemp("far")
    found = Machine(folder, folder / "home")
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key"))
    run("ip", "netns", "add", SPACE)
    try:
        run("ip", "link", "add", CABLE, "type", "veth", "peer", "name", "eth0", "netns", SPACE)
        run("ip", "addr", "add", f"{HERE}/30", "dev", CABLE)
        run("ip", "link", "set", CABLE, "up")
        inside = f"ip addr add {ADDRESS}/30 dev eth0; ip link set eth0 up; ip link set lo up"
        run("nsenter", f"--net=/run/netns/{SPACE}", "sh", "-c", inside)
        found.new_host_key()
        found.know_host_key()
        found.boot()
        yield found
    finally:
        found.crash()
        run("ip", "netns", "del", SPACE)


@pytest.fixture
def host(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """The machine as a host called ``far``, with an empty directory of the program."""
    program, config = tmp_path / "ssh", tmp_path / "ssh_config"
    config.write_text(
        f"Host *\n  User root\n  IdentityFile {machine.folder}/key\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {machine.folder}/known_hosts\n"
    )
    program.write_text(f'#!/bin/sh\nexec ssh -F {shlex.quote(str(config))} "$@"\n')
    program.chmod(0o755)
    machine.home = tmp_path / "there"
    monkeypatch.setenv("ACCEL_TUI_SSH", str(program))
    monkeypatch.setattr(link, "_links", {})
    monkeypatch.setattr(link, "_is_screen", threading.Event())
    monkeypatch.setattr(mirrored_runs, "_is_patient", True)
    monkeypatch.setattr(mirrored_runs, "_mirrors", {})
    monkeypatch.setattr(mirrored_runs, "_forwarded", set())
    host = Host("far", ssh=ADDRESS, python=sys.executable, home=str(machine.home))
    add_host(host)
    yield host
    for mirror in mirrored_runs._mirrors.values():
        mirror.stop()
    for each in link._links.values():
        each.close()


@dataclass
class Engine:
    """Writes a run there, fifty chunks a second, and obeys commands, until it is told to end."""

    writer: RunWriter
    steps: int = 0
    commands: list[str] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    def train(self) -> None:
        while not self.is_over.wait(0.02):
            for command in self.writer.commands():
                self.commands.append(f"{command.name} of {command.who}")
                self.writer.answer(command, obeyed=True, answer=f"{command.name} obeyed")
            values = np.arange(self.steps, self.steps + 10, dtype=np.float32)
            self.writer.write_chunk(
                self.steps, time.time(), time.time(), {"loss": values, "accuracy": 1 / (1 + values)}
            )
            self.steps += 10
            self.writer.heartbeat()
        self.writer.end(
            RunEnded(
                time=time.time(),
                outcome=Outcome.FINISHED,
                steps=self.steps,
                epochs=1,
                seconds=1.0,
                steps_per_second=0.0,
                metrics={},
            )
        )


@pytest.fixture
def engine(host: Host, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """An engine that trains a run there."""
    here = os.environ["ACCEL_TUI_HOME"]
    monkeypatch.setenv("ACCEL_TUI_HOME", host.home)
    directory = create(Plan(name="far away"))
    monkeypatch.setenv("ACCEL_TUI_HOME", here)
    with closing(RunWriter(directory)) as writer:
        writer.begin(started())
        engine = Engine(writer)
        thread = threading.Thread(target=engine.train)
        thread.start()
        yield engine
        engine.is_over.set()
        thread.join()


def mirror_of(engine: Engine) -> Path:
    list_runs_of("far")
    directory = find_run("far:last")
    assert directory.name == engine.writer.directory.name
    return directory


def assert_nothing_lost(engine: Engine, mirror: Path, reader: RunReader) -> None:
    """End the run, and compare all of it."""
    engine.is_over.set()
    wait_until(lambda: reader.info().status is Status.FINISHED, timeout=SECONDS)
    for table in ("event", "chunk", "summary", "sample", "diagnostics", "media"):
        query = f"SELECT * FROM {table} ORDER BY 1, 2, 3"
        assert execute(mirror, query) == execute(engine.writer.directory, query), table


@pytest.mark.parametrize("seconds", [5, 60, pytest.param(600, marks=pytest.mark.campaign)])
def test_a_cable_that_is_pulled(machine: Machine, engine: Engine, seconds: int) -> None:
    """A short break is bridged by TCP; after a long one, the screen has said so and the link is opened again."""
    mirror = mirror_of(engine)
    with closing(RunReader(mirror)) as reader:
        machine.cut()
        said = set[str]()
        try:
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                said.add(problem_of(mirror).partition(";")[0])
                time.sleep(0.5)
        finally:
            machine.mend()
        steps = engine.steps
        wait_until(lambda: execute(mirror, "SELECT max(first_step) FROM chunk")[0][0] >= steps, timeout=SECONDS)
        wait_until(lambda: not problem_of(mirror), timeout=SECONDS)
        if seconds == 5:
            assert said == {""}
        else:
            assert any("the connection is lost" in text or "timed out" in text for text in said), said
        assert_nothing_lost(engine, mirror, reader)


def test_a_host_that_is_started_again(machine: Machine, engine: Engine) -> None:
    """The connection breaks at once, is refused while the machine is down, and then goes on where it was."""
    mirror = mirror_of(engine)
    with closing(RunReader(mirror)) as reader:
        machine.crash()
        wait_until(lambda: "far: " in problem_of(mirror))
        with pytest.raises(RunError, match=r"far: .*(refused|lost|closed)"):
            send_command(mirror, "pause")
        machine.boot()
        wait_until(lambda: not problem_of(mirror))
        assert_nothing_lost(engine, mirror, reader)


def test_a_host_key_that_has_changed(machine: Machine, host: Host) -> None:
    """Nobody is connected, and nothing is tried again soon."""
    machine.crash()
    machine.new_host_key()
    machine.boot()
    try:
        with pytest.raises(HostRefusedError, match=r"its host key has changed: .* ssh-keygen -R 10.78.0.2"):
            HostConnection(host)
        reading = HostReader(host).read(HostReading("far"))
        assert reading.state == "refused"
    finally:
        machine.know_host_key()


def test_a_wrong_python(host: Host, tmp_path: Path) -> None:
    """Each says what is wrong and what to do."""
    with pytest.raises(
        HostRefusedError, match=r"/nowhere/python does not answer there .*No such file.* hosts install far"
    ):
        HostConnection(Host("far", host.ssh, "/nowhere/python"))
    with pytest.raises(HostRefusedError, match=r"No module named .?accel_engine.* hosts install far"):
        HostConnection(Host("far", host.ssh, f"{sys.base_prefix}/bin/python3"))
    other = tmp_path / "python"
    greeting = '{"protocol": 99, "version": "9.9", "schema": 9, "time": 0, "python": ""}'
    other.write_text(f"#!/bin/sh\necho 'accel-tui-remote {greeting}'\n")
    other.chmod(0o755)
    with pytest.raises(HostRefusedError, match=r"it has accel-tui 9.9, and this is .*install the same version"):
        HostConnection(Host("far", host.ssh, str(other)))
    with pytest.raises(HostLostError, match=r"far: .*(timed out|No route|unreachable|refused)"):
        HostConnection(Host("far", "10.78.0.1"))


def test_a_shell_that_prints(host: Host, tmp_path: Path) -> None:
    """What a shell prints at its start is no message."""
    noisy = tmp_path / "python"
    noisy.write_text(f'#!/bin/sh\necho "Welcome to far"; echo\nexec {sys.executable} "$@"\n')
    noisy.chmod(0o755)
    connection = HostConnection(Host("far", host.ssh, str(noisy), host.home))
    assert connection.is_open
    connection.close()


def test_clocks_two_hours_apart(host: Host, engine: Engine, tmp_path: Path) -> None:
    """It is said, and the times of a run are by its own clock."""
    late = tmp_path / "python"
    shifted = (
        "import sys, time; real = time.time; time.time = lambda: real() + 7200; "
        "from accel_engine.hosts.remote import main; main(sys.argv[-1])"
    )
    late.write_text(f'#!/bin/sh\nexec {sys.executable} -c {shlex.quote(shifted)} "$@"\n')
    late.chmod(0o755)
    add_host(Host("far", host.ssh, str(late), host.home))
    reading = HostReader(Host("far", host.ssh, str(late), host.home)).read(HostReading("far"))
    assert reading.state == "connected"
    assert re.search(r"far: its clock is (2:00:00|1:5\d:\d\d) ahead", reading.message)  # less what its greeting took
    info = reading.runs[0].info
    assert info is not None
    assert info.status is Status.RUNNING
    assert info.now() - time.time() == pytest.approx(7200, abs=600)


def test_a_full_disk_there(machine: Machine, host: Host, tmp_path: Path) -> None:
    """A plan is refused with the reason, and nothing is left of it."""
    machine.home.mkdir(parents=True)
    run("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(machine.home))
    try:
        (tmp_path / "data.csv").write_text("a,b\n" + "1,2\n" * 200_000)
        with pytest.raises(RunError, match=r"far: .*(No space left|disk full|free)"):
            start("far", {"data": str(tmp_path / "data.csv"), "target": "b"})
        with pytest.raises(RunError, match=r"far: .*(No space left|disk full|free)"):
            start("far", {"data": "digits"})
        assert HostReader(host).read(HostReading("far")).runs == ()
    finally:
        run("umount", str(machine.home))


def test_two_clients_steer_one_run(host: Host, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command is obeyed once, and who sent it has its answer."""
    mirror = mirror_of(engine)
    environment = os.environ | {"ACCEL_TUI_HOME": str(tmp_path / "other laptop")}
    add = ["hosts", "add", "far", "--ssh", host.ssh, "--python", host.python, "--home", host.home]
    program = [sys.executable, "-m", "accel_tui"]
    subprocess.run([*program, *add], env=environment, check=True)
    with closing(RunReader(mirror)):
        mine = send_command(mirror, "pause")
        other = subprocess.run(
            [*program, "resume", "far:last"], env=environment, capture_output=True, text=True, check=False
        )
        wait_until(lambda: read_answer(mirror, mine) == (True, "pause obeyed"))
    assert "resume obeyed" in other.stdout, other.stderr
    assert [command.partition(" ")[0] for command in engine.commands] == ["pause", "resume"]


def test_a_slow_link(host: Host, engine: Engine, tmp_path: Path) -> None:
    """With 200 ms and 100 KB/s, commands do not wait until a long run has come."""
    random = np.random.default_rng(1)
    for _ in range(20):  # 1.6 MB that no compression makes smaller
        engine.writer.write_chunk(engine.steps, time.time(), time.time(), {"loss": random.random(20_000, np.float32)})
        engine.steps += 20_000
    with (tmp_path / "ssh_config").open("a") as config:
        pipe = Path(__file__).with_name("slow_pipe.py")
        config.write(f"  ProxyCommand {sys.executable} {pipe} %h %p 0.1 100000\n")
    mirror = mirror_of(engine)
    mirrored_runs.show_on_screen()  # which does not wait for all of it
    with closing(RunReader(mirror)) as reader:
        number = send_command(mirror, "checkpoint")
        wait_until(lambda: read_answer(mirror, number) is not None, timeout=SECONDS)

        def copied() -> int:
            return int(execute(mirror, "SELECT coalesce(sum(count), 0) FROM chunk")[0][0])

        assert copied() < 400_000
        while (before := copied()) < 400_000:
            wait_until(lambda before=before: copied() > before, f"more than {before} steps", timeout=SECONDS)
        assert_nothing_lost(engine, mirror, reader)
