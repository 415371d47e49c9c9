"""Tests the commands on other machines, with a stand-in for ssh."""

import json
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from accel_engine.hosts import link, mirrored_runs
from accel_engine.hosts.host_list import Host, find_host
from accel_engine.plan import Plan
from accel_engine.run import create
from stand_in_ssh import write_stand_in


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The program's directory on a host, which has a run that waits for an engine; and nothing is known of it here."""
    program, _ = write_stand_in(tmp_path)
    monkeypatch.setenv("ACCEL_TUI_SSH", str(program))
    monkeypatch.setattr(link, "_links", {})
    monkeypatch.setattr(mirrored_runs, "_is_patient", True)
    monkeypatch.setattr(mirrored_runs, "_mirrors", {})
    here = os.environ["ACCEL_TUI_HOME"]
    monkeypatch.setenv("ACCEL_TUI_HOME", str(tmp_path / "there"))
    directory = create(Plan(name="far away"))
    monkeypatch.setenv("ACCEL_TUI_HOME", here)
    yield directory
    for mirror in mirrored_runs._mirrors.values():
        mirror.stop()
    for each in link._links.values():
        each.close()


def test_a_host_is_added_listed_and_forgotten(run_command, far: Path, tmp_path: Path) -> None:
    assert "No hosts yet" in run_command("hosts").out
    added = run_command(f"hosts add gpu1 --python {sys.executable} --home {tmp_path / 'there'}")
    assert (added.status, added.out) == (0, "gpu1 is added.\n")
    (host,) = map(json.loads, run_command("hosts --json").out.splitlines())
    assert (host["host"], host["state"], host["runs"]) == ("gpu1", "connected", [f"gpu1:{far.name}"])
    assert f"gpu1:{far.name[:4]}" in run_command("runs").out
    assert run_command("note gpu1:last 'seen from here'").status == 0
    assert "seen from here" in run_command("runs --json").out

    (tmp_path / "cut").touch()
    link.link_to("gpu1").close()
    listed = run_command("runs")
    assert f"gpu1:{far.name[:4]}" in listed.out
    assert "its runs are as they were: gpu1: ssh: connect to host gpu1 port 22: Network is unreachable" in listed.err
    assert run_command("hosts").status == 1
    changed = run_command(f"hosts add gpu1 --home {tmp_path / 'elsewhere'}")
    assert changed.out == "gpu1 is changed, but does not answer yet.\n"
    assert find_host("gpu1") == Host("gpu1", python=sys.executable, home=str(tmp_path / "elsewhere"))
    assert run_command("hosts rm gpu1").status == 0
    assert "No runs yet" in run_command("runs").out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("hosts", "add", "a b"), "invalid name 'a b' of a host"),
        (("hosts", "add", "x", "--ssh", "-oProxyCommand=x"), "not a destination of ssh"),
        (("hosts", "rm", "gpu9"), "no host 'gpu9'"),
        (("hosts", "check", "gpu9"), "no host 'gpu9'"),
        (("train", "--on", "gpu9"), "there is no place 'gpu9'"),
        (("train", "--on", "any"), "there is no host to choose from"),
    ],
)
def test_wrong_usage_is_said(run_command, words: tuple[str, ...], says: str) -> None:
    found = run_command(shlex.join(words))
    assert found.status == 2
    assert says in found.err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--priority 99999999", "gpu1: a priority is a whole number from"),
        ("--devices-each 2", "gpu1: the run gets no accelerator, as it trains on the CPU"),
        ("--after nope", "no run 'nope'"),
        ("--after here", "is on this machine, and the queue of gpu1 cannot wait for it: name a run there, as gpu1:RUN"),
    ],
)
def test_the_queue_of_a_host_is_asked_for_what_the_command_says(
    run_command, far: Path, tmp_path: Path, options: str, says: str
) -> None:
    run_command(f"hosts add gpu1 --python {sys.executable} --home {tmp_path / 'there'}")
    create(Plan(name="here"))
    found = run_command(f"train --on gpu1 --queue --model mlp --data digits {options}")
    assert (found.status, found.out) == (2, "")
    assert says in found.err
    assert [each.name for each in far.parent.iterdir() if each.is_dir()] == [far.name]


def test_only_runs_of_hosts_are_fetched(run_command) -> None:
    found = run_command(f"fetch {create(Plan()).name}")
    assert found.status == 2
    assert "is on this machine" in found.err
