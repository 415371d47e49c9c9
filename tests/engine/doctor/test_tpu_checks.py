"""TPUs, against stand-ins for the bus and the devices, and true locks, processes and sockets."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from accel_engine.devices import tpu_metrics
from accel_engine.devices.tpu_chips import GOOGLE
from accel_engine.doctor import CheckResult, tpu_checks
from accel_engine.doctor.tpu_checks import (
    LIBTPU,
    check_address,
    check_chips,
    check_library,
    check_tpu_lock,
    check_tpu_metrics,
    describe_process,
    is_child_process,
    lock_holder,
)
from tpu_runtime.stand_in import Runtime

from .conftest import pci

TPU_BUILD = {"tensorflow-tpu": "2.20.0", "libtpu": "0.0.31", "keras": "3.15.1"}


def said(finding) -> str:
    return f"{finding.summary} {finding.cause} {finding.fix}"


def add_chip(root: Path, index: int = 0) -> Path:
    """Put a TPU v4 on the bus, with its file in dev."""
    pci(root, f"0000:00:0{4 + index}.0", GOOGLE, device="0x005e", subsystem_device="0x1234")
    node = root / f"dev/accel{index}"
    node.parent.mkdir(exist_ok=True)
    node.touch()
    return node


@pytest.fixture
def child() -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Start a process whose parent is not this one, and wait until it says that it is ready."""
    started = []

    def start(text: str) -> int:
        between = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {text!r}])"
        process = subprocess.Popen(
            [sys.executable, "-c", between], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout is not None
        return int(process.stdout.readline())

    yield start
    for process in started:
        process.communicate()


READY = "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"
"""Tells its process id and stays until its input ends."""


@pytest.mark.parametrize(
    ("packages", "environment", "verdict", "words"),
    [
        (TPU_BUILD, {}, CheckResult.PASS, "tensorflow-tpu 2.20.0, libtpu 0.0.31"),
        (TPU_BUILD | {"libtpu": "0.0.14"}, {}, CheckResult.PASS, "0.0.14"),
        (TPU_BUILD | {"libtpu": "0.0.32"}, {}, CheckResult.FAIL, "aborts the import (SIGABRT)"),
        (TPU_BUILD | {"libtpu": "0.0.13"}, {}, CheckResult.WARN, "pip install 'libtpu>=0.0.14,<0.0.32'"),
        (TPU_BUILD | {"libtpu": ""}, {}, CheckResult.FAIL, "libtpu missing"),
        (TPU_BUILD, {"TPU_LOAD_LIBRARY": "0"}, CheckResult.WARN, "unset TPU_LOAD_LIBRARY"),
        (TPU_BUILD, {"TPU_LOAD_LIBRARY": "0", "TPU_NAME": "a-slice"}, CheckResult.PASS, "0.0.31"),
        (TPU_BUILD, {"TPU_LIBRARY_PATH": "/dev/null"}, CheckResult.FAIL, "/dev/null is not a file"),
        (TPU_BUILD, {"TPU_LIBRARY_PATH": sys.executable}, CheckResult.PASS, "0.0.31"),
        (None, {"TPU_NAME": "local"}, CheckResult.FAIL, "no kernel for ConfigureDistributedTPU"),
        (None, {"TPU_NAME": "grpc://10.0.0.2:8470"}, CheckResult.SKIP, "not needed"),
    ],
)
def test_the_library(machine, packages, environment, verdict, words) -> None:
    finding = check_library(machine(packages, environment=environment))
    assert finding.verdict is verdict
    assert words in said(finding)


def test_a_slice_is_told_what_to_run_for_all_of_it_and_for_this_host(machine) -> None:
    given = machine(TPU_BUILD, environment={"TPU_NAME": "a-slice"})
    add_chip(given.root)
    finding = check_library(given)
    assert finding.verdict is CheckResult.WARN
    assert "to train on all of a-slice, run export TPU_LOAD_LIBRARY=0 on its first host (worker 0) only" in finding.fix
    assert finding.fix.endswith("to train on this host's chips only, run export TPU_NAME=local")


def test_plain_tensorflow_beside_chips_is_named(machine) -> None:
    given = machine()
    add_chip(given.root)
    finding = check_library(given)
    assert finding.verdict is CheckResult.FAIL
    assert "accel-tui[tpu]" in finding.fix


def test_the_tensorflow_of_a_tpu_vm_may_be_for_tpus(machine) -> None:
    given = machine({"tensorflow": "2.18.0", "keras": "3.15.1"})
    add_chip(given.root)
    assert check_library(given).verdict is CheckResult.FAIL
    (given.root / "lib").mkdir()
    (given.root / "lib/libtpu.so").touch()
    finding = check_library(given)
    assert (finding.verdict, finding.summary) == (CheckResult.PASS, "tensorflow 2.18.0 of this TPU VM, with its libtpu")


def test_the_range_of_libtpu_is_that_of_the_extra(pyproject) -> None:
    first, end = (".".join(map(str, version)) for version in LIBTPU)
    assert f"libtpu>={first},<{end}" in pyproject["project"]["optional-dependencies"]["tpu"]


def test_free_chips(machine) -> None:
    given = machine()
    for index in range(4):
        add_chip(given.root, index)
    assert check_chips(given).summary == "4 x TPU v4, free"


def test_chips_that_are_meant_but_not_there(machine) -> None:
    finding = check_chips(machine(environment={"TPU_NAME": "local"}))
    assert finding.verdict is CheckResult.FAIL
    assert "TPU_NAME" in finding.fix


def test_a_chip_without_its_file(machine) -> None:
    given = machine()
    node = add_chip(given.root)
    node.unlink()
    finding = check_chips(given)
    assert finding.verdict is CheckResult.FAIL
    assert str(node) in finding.cause


def test_a_chip_that_the_kernel_gives_no_way_to(machine) -> None:
    given = machine()
    pci(given.root, "0000:00:05.0", GOOGLE, device="0x0063", subsystem_device="0x1234")
    assert "its device file is missing" in check_chips(given).cause


def test_a_chip_that_one_may_not_open(machine, monkeypatch) -> None:
    given = machine()
    node = add_chip(given.root)
    monkeypatch.setattr(tpu_checks.os, "access", lambda path, mode: path != node)
    finding = check_chips(given)
    assert finding.verdict is CheckResult.FAIL
    assert f"sudo chmod a+rw {node}" in finding.fix


def test_who_holds_a_chip_is_named(machine, child) -> None:
    given = machine()
    node = add_chip(given.root)
    process = child(f"held = open({str(node)!r}); {READY}")
    (given.root / "proc").symlink_to("/proc")
    finding = check_chips(given)
    assert finding.verdict is CheckResult.WARN
    assert f"process {process} (" in finding.cause
    assert finding.fix.endswith(f"kill {process}")


def test_what_this_program_started_to_look_holds_nothing(tmp_path) -> None:
    file = tmp_path / LOCKED
    file.touch()
    text = f"import fcntl; held = open({str(file)!r}, 'r+b'); fcntl.lockf(held, fcntl.LOCK_EX); {READY}"
    process = subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    assert is_child_process(process.pid)
    assert lock_holder(file) is None
    process.communicate()


LOCKED = tpu_checks.LOCK


def test_no_lock(machine) -> None:
    assert check_tpu_lock(machine()).summary.endswith("no process uses a TPU")


def test_a_lock_file_that_was_left_over(machine) -> None:
    given = machine()
    (given.temporary / LOCKED).touch()
    finding = check_tpu_lock(given)
    assert finding.verdict is CheckResult.PASS
    assert finding.summary.endswith("is not locked")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds a lock")
def test_who_holds_the_lock_is_named(machine, child) -> None:
    given = machine()
    file = given.temporary / LOCKED
    file.touch()
    process = child(f"import fcntl; held = open({str(file)!r}, 'r+b'); fcntl.lockf(held, fcntl.LOCK_EX); {READY}")
    finding = check_tpu_lock(given)
    assert finding.verdict is CheckResult.WARN
    assert f"process {process} (" in finding.cause
    assert f"kill {process}" in finding.fix


def test_a_lock_of_another_container(machine, monkeypatch) -> None:
    given = machine()
    (given.temporary / LOCKED).touch()
    monkeypatch.setattr(tpu_checks, "lock_holder", lambda _: 0)
    assert "another container" in check_tpu_lock(given).cause


@pytest.mark.parametrize(("has_chip", "verdict"), [(True, CheckResult.FAIL), (False, CheckResult.WARN)])
def test_a_lock_file_of_somebody_else(machine, monkeypatch, has_chip, verdict) -> None:
    given = machine()
    if has_chip:
        add_chip(given.root)
    file = given.temporary / LOCKED
    file.touch()

    def refuse(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tpu_checks, "lock_holder", refuse)
    finding = check_tpu_lock(given)
    assert finding.verdict is verdict
    assert "it belongs to" in finding.cause
    assert f"sudo rm {file}" in finding.fix


def test_a_lock_that_is_no_file(machine) -> None:
    given = machine()
    (given.temporary / LOCKED).mkdir()
    assert check_tpu_lock(given).verdict is CheckResult.WARN


def test_processes_in_words(dead_process) -> None:
    assert describe_process(os.getpid()).startswith(f"process {os.getpid()} (")
    assert describe_process(dead_process) == f"process {dead_process}"


@pytest.fixture
def dead_process() -> int:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


def test_a_run_of_this_program_is_named_as_that(child) -> None:
    text = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {READY!r}, '-m', 'accel_engine.process'])"
    assert "accel-tui engine" in describe_process(child(text))


@pytest.fixture
def port() -> Iterator[int]:
    """Something that listens on this machine."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


def test_no_tpu_is_named(machine) -> None:
    assert check_address(machine(environment={"TPU_NAME": ""})).summary.startswith("no TPU in the environment")


@pytest.mark.parametrize("value", ["grpc://127.0.0.1:{}", "127.0.0.1:{}", "grpc://127.0.0.1:{},127.0.0.1:{}"])
@pytest.mark.parametrize("name", ["TPU_NAME", "COLAB_TPU_ADDR"])
def test_a_tpu_that_answers(machine, port, name, value) -> None:
    finding = check_address(machine(environment={name: value.replace("{}", str(port))}))
    assert finding.verdict is CheckResult.PASS
    assert finding.summary.endswith("responds")


def test_a_tpu_that_does_not_listen(machine, silent_port) -> None:
    finding = check_address(machine(environment={"TPU_NAME": f"grpc://127.0.0.1:{silent_port}"}))
    assert finding.verdict is CheckResult.FAIL
    assert f"refuses connections on port {silent_port}" in finding.cause


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TimeoutError(), "does not answer on port 8470 within 2 s"),
        (socket.gaierror(-2, "Name or service not known"), "unknown host tpu.example"),
        (OSError(113, "No route to host"), "is unreachable on port 8470: No route to host"),
    ],
)
def test_a_tpu_that_cannot_be_reached(machine, monkeypatch, error, words) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(socket, "create_connection", fail)
    finding = check_address(machine(environment={"COLAB_TPU_ADDR": "tpu.example"}))
    assert finding.verdict is CheckResult.FAIL
    assert words in finding.cause


@pytest.mark.parametrize("value", ["grpc://", "http://10.0.0.2:8470", "10.0.0.2:99999", "a b:1"])
def test_an_address_that_is_none(machine, value) -> None:
    assert "is not an address" in check_address(machine(environment={"COLAB_TPU_ADDR": value})).cause


def test_names_are_left_to_google_cloud(machine) -> None:
    assert "Google Cloud" in check_address(machine(environment={"TPU_NAME": "my-tpu"})).summary
    assert "see tpu.chips" in check_address(machine(environment={"TPU_NAME": "local"})).summary


@pytest.fixture
def runtime(monkeypatch) -> Iterator[Runtime]:
    """A program's metric service, asked with the patience that a busy machine needs."""
    monkeypatch.setattr(tpu_metrics, "READ_TIMEOUT", 30.0)
    monkeypatch.setattr(tpu_checks, "RETRY_SECONDS", 0.0)
    runtime = Runtime(duty=[87.5, 0.0])
    yield runtime
    runtime.stop()


def test_the_metric_service_is_needed_only_beside_chips(machine, silent_port) -> None:
    given = machine(environment={tpu_metrics.PORTS_VARIABLE: str(silent_port)})
    assert check_tpu_metrics(given).summary.startswith("not needed")
    add_chip(given.root)
    finding = check_tpu_metrics(given)
    assert finding.verdict is CheckResult.SKIP
    assert "no program uses the TPU" in finding.summary


def test_a_metric_service_that_answers(machine, runtime) -> None:
    given = machine(environment={tpu_metrics.PORTS_VARIABLE: str(runtime.port)})
    add_chip(given.root)
    assert check_tpu_metrics(given).summary == f"2 chips at localhost:{runtime.port}"


def test_a_metric_service_that_tells_nothing(machine, runtime) -> None:
    runtime.instead = b"garbage"
    given = machine(environment={tpu_metrics.PORTS_VARIABLE: str(runtime.port)})
    add_chip(given.root)
    finding = check_tpu_metrics(given)
    assert finding.verdict is CheckResult.WARN
    assert "cannot read" in finding.cause


def test_a_program_that_holds_chips_and_serves_nothing(machine, child, silent_port) -> None:
    given = machine(environment={tpu_metrics.PORTS_VARIABLE: str(silent_port)})
    node = add_chip(given.root)
    child(f"held = open({str(node)!r}); {READY}")
    (given.root / "proc").symlink_to("/proc")
    finding = check_tpu_metrics(given)
    assert finding.verdict is CheckResult.WARN
    assert tpu_metrics.PORTS_VARIABLE in finding.fix


def test_ports_that_are_none(machine) -> None:
    given = machine(environment={tpu_metrics.PORTS_VARIABLE: "many"})
    add_chip(given.root)
    assert "it must be ports" in check_tpu_metrics(given).cause
