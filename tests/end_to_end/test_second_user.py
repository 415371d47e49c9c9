"""What another user of the machine can do to runs: nothing. Root can be both users."""

import os
import signal
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from accel_engine.process.warm_engine import WarmEngine
from accel_engine.run import list_runs
from accel_engine.scripts.listener import Listener
from tui.fake_engine import FakeEngine

OTHER = 12345
"""Id of a user who has no files here."""

pytestmark = [
    pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),  # the child makes a few system calls
]


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory for runs that every user may enter, as a home often is; under a mask that keeps nothing secret."""
    mask = os.umask(0)
    with tempfile.TemporaryDirectory(prefix="home-of-") as place:
        os.chmod(place, 0o755)
        monkeypatch.setenv("ACCEL_TUI_HOME", str(Path(place) / "home"))
        yield Path(place) / "home"
    os.umask(mask)


def as_other(act: Callable[[], object]) -> bool:
    """Whether another user can do something."""
    child = os.fork()
    if child == 0:
        status = 3
        try:
            os.setgroups([])
            os.setgid(OTHER)
            os.setuid(OTHER)
            act()
            status = 0
        except OSError as error:
            status = 1 if isinstance(error, PermissionError | FileNotFoundError) else 2
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 1), f"not refused, but failed otherwise: {status}"
    return status == 0


def test_runs_can_be_neither_listed_nor_read_nor_written(home: Path) -> None:
    engine = FakeEngine().begin().build().train(20)
    engine.save()
    (engine.directory / "log.txt").write_text("secret\n")
    files = [path for path in engine.directory.rglob("*") if path.is_file()]
    assert {"run.db", "run.lock", "log.txt"} <= {path.name for path in files}
    assert as_other(lambda: os.listdir(home.parent))  # the test's own check of what it can see
    for directory in (home / "runs", engine.directory):
        assert not as_other(lambda directory=directory: os.listdir(directory))  # type: ignore[misc]
        assert not as_other(lambda directory=directory: (directory / "planted").touch())  # type: ignore[misc]
        assert not as_other(lambda directory=directory: os.rename(directory, f"{directory}-stolen"))  # type: ignore[misc]
    for path in files:
        assert not as_other(lambda path=path: path.read_bytes())  # type: ignore[misc]
        assert not as_other(lambda path=path: path.open("ab"))  # type: ignore[misc]
        assert not as_other(lambda path=path: path.unlink())  # type: ignore[misc]


def test_an_engine_can_be_neither_signalled_nor_looked_into_and_its_log_not_read(home: Path) -> None:
    engine = WarmEngine()
    try:
        process = psutil.Process(engine.pid)
        assert not as_other(lambda: os.kill(engine.pid, signal.SIGTERM))
        for name in ("environ", "mem", "maps", "fd", "cwd"):
            place = Path(f"/proc/{engine.pid}/{name}")
            read: Callable[[], object] = {"fd": place.iterdir, "cwd": place.readlink}.get(name, place.read_bytes)
            assert not as_other(lambda read=read: list(read()))  # type: ignore[misc,call-overload]
        log = os.fstat(engine._connection._log.fileno())
        assert stat.S_IMODE(log.st_mode) == 0o600
        assert log.st_nlink == 0  # it has no name, by which it could be read or removed
        assert not [each for each in process.net_connections("inet") if each.status == psutil.CONN_LISTEN]
    finally:
        engine.close()


def test_the_socket_of_a_script_cannot_be_connected_to_nor_replaced(home: Path) -> None:
    listener = Listener()
    try:
        address = Path(listener.address)

        def connect() -> None:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(address))

        connect()
        assert not as_other(connect)
        assert not as_other(address.unlink)
        assert not as_other(lambda: os.listdir(address.parent))
        assert not as_other(lambda: os.rename(address.parent, f"{address.parent}-stolen"))
    finally:
        listener.close()


def test_names_that_another_user_has_taken_in_the_temporary_directory_are_not_used(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whoever guesses the random part of a name has a link there: a file is made anew or under another name."""
    shared = Path(tempfile.mkdtemp())
    shared.chmod(0o1777)
    victim = tmp_path / "victim"
    victim.write_text("mine")
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    guessed = iter(["guessed", "guessed", "other", "another", "further"])
    monkeypatch.setattr(tempfile, "_name_sequence", guessed)
    assert as_other(lambda: [os.symlink(victim, shared / f"accel-tui-{name}guessed") for name in ("", "engine-")])
    assert as_other(lambda: os.symlink(victim, shared / "accel-tui-engine-guessed.log"))
    listener = Listener()
    try:
        assert Path(listener.address).parent.name == "accel-tui-other"
    finally:
        listener.close()
    assert victim.read_text() == "mine"


def test_what_is_exported_and_written_for_the_user_is_the_users(home: Path) -> None:
    FakeEngine().begin().build().train(20).close()
    for path in (home, *home.rglob("*")):
        status = path.stat()
        assert status.st_uid == 0
        assert not stat.S_IMODE(status.st_mode) & 0o022, f"others may write {path}"
    assert list_runs()
