import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import psutil
import pytest

from accel_engine.clock import boot_seconds
from accel_engine.json_values import decode_or_none, encode
from accel_engine.run.engine import process_identity
from accel_engine.run.engine.process_identity import ProcessIdentity, machine_id


def test_a_process_is_alive_until_it_ends() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        identity = ProcessIdentity.of(process.pid)
        assert identity.alive
        assert identity == ProcessIdentity.of(process.pid)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not identity.alive, "a zombie is as dead as can be"
    assert not identity.alive
    gone = ProcessIdentity.of(process.pid)
    assert (gone.started, gone.alive) == (0, False)
    assert not replace(gone, pid=os.getpid()).alive


@pytest.mark.parametrize("other", [{"started": 1.0}, {"machine": "another"}, {"namespace": "another"}])
def test_another_process_of_the_same_number_is_not_taken_for_it(other: dict[str, object]) -> None:
    assert not replace(ProcessIdentity.of(os.getpid()), **other).alive  # type: ignore[arg-type]


def test_the_start_is_in_clock_ticks_since_the_boot() -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        ticks = ProcessIdentity.of(process.pid).started
        assert 0 <= boot_seconds() - ticks / os.sysconf("SC_CLK_TCK") < 60
        process.kill()


def test_a_process_with_parentheses_in_its_name_is_read(tmp_path: Path) -> None:
    program = tmp_path / "a) Z 1 (b"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "600"]) as process:
        assert ProcessIdentity.of(process.pid).alive
        process.kill()


def test_it_is_kept_as_json() -> None:
    identity = ProcessIdentity.of(os.getpid())
    assert decode_or_none(encode(identity), ProcessIdentity) == identity
    assert json.loads(encode(identity)) == asdict(identity)


@pytest.mark.parametrize("text", [None, "", "1", "[]", "{}", '{"pid": 1}'])
def test_what_is_none_is_none(text: object) -> None:
    assert decode_or_none(text, ProcessIdentity) is None


def test_a_system_without_proc_is_asked_by_psutil(monkeypatch: pytest.MonkeyPatch) -> None:
    own = psutil.Process().create_time()
    monkeypatch.setattr(process_identity.os.path, "exists", lambda _: False)
    identity = ProcessIdentity.of(os.getpid())
    assert (identity.started, identity.alive) == (own, True)


def test_a_system_without_namespaces_is_known_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(process_identity.Path, "read_text", fail)
    monkeypatch.setattr(process_identity.os, "readlink", fail)
    identity = ProcessIdentity.of(os.getpid())
    assert (identity.machine, identity.namespace) == (os.uname().nodename, "")
    assert identity.visible


def test_the_boot_is_the_same_for_all() -> None:
    program = """
from accel_engine.clock import boot_seconds
from accel_engine.run.engine.process_identity import machine_id
print(machine_id(), boot_seconds())
"""
    before = boot_seconds()
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert told[0] == machine_id()
    assert before <= float(told[1]) <= boot_seconds()
