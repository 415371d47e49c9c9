"""Tests the list of hosts, and that nothing from outside is taken for a command, a path or a message."""

import io
import zlib
from pathlib import Path

import pytest

from accel_engine.errors import RunError, UsageError
from accel_engine.hosts import compressed_stream, installation
from accel_engine.hosts.compressed_stream import CompressedSink, CompressedSource
from accel_engine.hosts.connection import HostConnection, HostRefusedError, remote_words
from accel_engine.hosts.host_list import Host, add_host, find_host, read_hosts, remove_host
from accel_engine.hosts.host_requests import ListedRun
from accel_engine.hosts.installation import install
from accel_engine.hosts.mirror import put_listed
from accel_engine.run.directory.run_paths import home, host_of_run, hosts_directory, runs_directory
from accel_engine.run.runs.listing import RunSummary
from accel_engine.run.store.meta import HostState
from accel_engine.ssh import ssh_command


def test_hosts_are_kept_as_they_were_added() -> None:
    """Test adding, changing and removing, with characters that TOML quotes."""
    first, second = Host("gpu1", "ann@gpu1", '~/a "b"\\c/python', "/data/é"), Host("gpu2")
    add_host(first)
    add_host(second)
    add_host(second)
    assert read_hosts() == (first, second)
    assert second.target == "gpu2"
    remove_host("gpu1")
    assert read_hosts() == (second,)
    with pytest.raises(UsageError, match="no host 'gpu1'"):
        find_host("gpu1")


@pytest.mark.parametrize(
    "values",
    [
        {"name": "a b"},
        {"name": "-x"},
        {"name": "../x"},
        {"name": "any"},
        {"name": "x", "ssh": "-oProxyCommand=touch x"},
        {"name": "x", "ssh": "host; touch x"},
        {"name": "x", "ssh": "a host"},
        {"name": "x", "python": "-c"},
        {"name": "x", "home": "a\nb"},
    ],
)
def test_what_is_no_host_is_refused(values: dict[str, str]) -> None:
    """Test names, destinations and paths that a shell or ssh would take for something else."""
    with pytest.raises(UsageError):
        Host(**values)


@pytest.mark.parametrize("text", ["gpu1 = 3", "[gpu1]\nport = 22", "[gpu1]\nssh = 3", "[", "['a b']"])
def test_an_invalid_list_is_said(text: str) -> None:
    """Test files that a user has written."""
    home().mkdir(parents=True)
    (home() / "hosts.toml").write_text(text)
    with pytest.raises(UsageError):
        read_hosts()


def test_the_command_there_is_quoted() -> None:
    """Test paths with signs of a shell, and that a ~ still means the home directory there."""
    host = Host("x", python="~/my env/$(touch x)/python", home="/a'b; touch x")
    words = remote_words(host)
    assert words == """~/'my env/$(touch x)/python' -P -m accel_engine.hosts '/a'"'"'b; touch x'"""
    assert ssh_command(host.target, words, may_ask=False)[-3:] == ["--", "x", words]
    assert "BatchMode=yes" in ssh_command(host.target, words, may_ask=False)
    assert remote_words(Host("x")) == "accel-tui remote"


def test_a_directory_tells_the_host_of_its_run() -> None:
    """Test a mirror, a run of this machine, and another place."""
    assert host_of_run(hosts_directory() / "gpu1" / "runs" / "k3fp") == "gpu1"
    assert host_of_run(runs_directory() / "k3fp") == ""
    assert host_of_run(Path("/hosts/gpu1/runs/k3fp")) == ""


@pytest.mark.parametrize("name", ["../../../x", ".hidden", "a/b", "", "x" * 200, "a\nb"])
def test_a_host_cannot_name_a_path(name: str, tmp_path: Path) -> None:
    """Test runs whose names would lead out of the mirror, listed and gone."""
    (tmp_path / "x").mkdir()
    run = ListedRun(name, HostState("running"), RunSummary(name, Path(), None), {})
    with pytest.raises(RunError, match="invalid name"):
        put_listed("gpu1", tmp_path / "hosts" / "gpu1" / "runs", (run,), (), 0.0)
    put_listed("gpu1", tmp_path / "hosts" / "gpu1" / "runs", (), (name,), 0.0)
    assert (tmp_path / "x").exists()


def test_lines_cross_a_compressed_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test lines in parts, what is no such stream, and one that would fill the memory."""
    pipe = io.BytesIO()
    sink = CompressedSink(pipe)
    for line in ("first\n", "second\n"):
        sink.write(line)
        sink.flush()
    source = CompressedSource(io.BytesIO(pipe.getvalue()))
    assert [source.readline(), source.readline(), source.readline()] == ["first\n", "second\n", ""]
    assert source.size == sink.size
    with pytest.raises(ValueError, match="header"):
        CompressedSource(io.BytesIO(b"Welcome!\n")).readline()
    monkeypatch.setattr(compressed_stream, "MAX_LINE", 1000)
    with pytest.raises(ValueError, match="more than 1,000 bytes"):
        CompressedSource(io.BytesIO(zlib.compress(b"x" * 100_000))).readline()


def test_words_of_a_host_are_cleaned(host: Host, tmp_path: Path) -> None:
    """Test that an error does not change the terminal."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nprintf 'gone \\033[2J\\033]0;x\\007' >&2; exit 7\n")
    python.chmod(0o700)
    with pytest.raises(HostRefusedError) as error:
        HostConnection(Host("gpu1", python=str(python)))
    assert "\x1b" not in str(error.value)
    assert "hosts install gpu1" in str(error.value)


def test_an_unknown_host_key_is_refused_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\necho 'Host key verification failed.' >&2; exit 255\n")
    ssh.chmod(0o700)
    monkeypatch.setenv("ACCEL_TUI_SSH", str(ssh))
    with pytest.raises(HostRefusedError, match=r"not known here: run ssh ann@gpu1 once, and accept the key$"):
        HostConnection(Host("gpu1", ssh="ann@gpu1"))


def test_an_environment_is_made_there(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test what is refused, and that pip gets what was asked for."""
    monkeypatch.setenv("HOME", str(tmp_path))
    told: list[str] = []
    options = {"extra": "cpu", "tell": told.append, "may_ask": False}
    with pytest.raises(RunError, match="gpu1: there is no nopython"):
        install(host, "", python="nopython", **options)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="is not a wheel"):
        install(host, __file__, python="python3", **options)  # type: ignore[arg-type]
    python = tmp_path / "python"
    python.write_text(
        '#!/bin/sh\n[ "$2" = venv ] && mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; echo "$@" >>"$HOME/calls"\n'
    )
    python.chmod(0o700)
    with pytest.raises(HostRefusedError):  # this one makes no environment
        install(host, "", python=str(python), **options)  # type: ignore[arg-type]
    assert f"accel-tui[cpu]=={installation.__version__}" in (tmp_path / "calls").read_text()
    assert told[-1].startswith("installing accel-tui==")
    for source, asked in (
        ("accel-tui>=1", "accel-tui[cpu]>=1"),
        ("accel-tui[deploy]==1", "accel-tui[cpu,deploy]==1"),
        ("accel-tui[cuda]", "accel-tui[cuda,cuda]"),
        ("git+https://example.org/it.git", "accel-tui[cpu]@ git+https://example.org/it.git"),
        ("accel-tui@git+https://example.org/it.git", "accel-tui[cpu]@ git+https://example.org/it.git"),
        ("accel-tui @ https://example.org/it.whl", "accel-tui[cpu]@ https://example.org/it.whl"),
        ("/srv/accel tui", "/srv/accel tui[cpu]"),
    ):
        with pytest.raises(HostRefusedError):
            install(host, source, python=str(python), **options)  # type: ignore[arg-type]
        found = (tmp_path / "calls").read_text().rpartition("--upgrade ")[2].splitlines()[0]
        assert found.replace("deploy,cpu", "cpu,deploy").replace(" @ ", "@ ") == asked
