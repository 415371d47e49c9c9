"""What the system gives a training process, against a stand-in for its files."""

import json
import os
import resource
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from accel_engine.doctor import CheckResult, system_checks
from accel_engine.doctor.check_inputs import Driver
from accel_engine.doctor.system_checks import check_cluster, check_limits, check_memory, check_processors

from .conftest import GIB, gpu, pci

TWO = Driver("580.65.06", (13, 0), (gpu(), gpu(1)))


def said(finding: Any) -> str:
    return f"{finding.summary} {finding.cause} {finding.fix}"


@pytest.fixture
def limits(monkeypatch) -> dict[int, int]:
    """The limits of this process, which a test may change."""
    values = {resource.RLIMIT_NOFILE: 65536, resource.RLIMIT_MEMLOCK: resource.RLIM_INFINITY}
    monkeypatch.setattr(resource, "getrlimit", lambda name: (values[name], values[name]))
    return values


def test_open_files(machine, limits) -> None:
    assert check_limits(machine()).verdict is CheckResult.PASS
    limits[resource.RLIMIT_NOFILE] = 256
    finding = check_limits(machine())
    assert (finding.verdict, finding.summary) == (CheckResult.WARN, "at most 256 open files")


@pytest.mark.parametrize(
    ("nbytes", "driver", "verdict"),
    [
        (64 << 20, TWO, CheckResult.WARN),
        (8 << 30, TWO, CheckResult.PASS),
        (64 << 20, Driver("580", (13, 0), (gpu(),)), CheckResult.PASS),
    ],
)
def test_shared_memory_for_nccl(machine, limits, monkeypatch, nbytes, driver, verdict) -> None:
    monkeypatch.setattr(system_checks.os, "statvfs", lambda _: SimpleNamespace(f_blocks=nbytes >> 12, f_frsize=4096))
    finding = check_limits(machine(driver=driver))
    assert finding.verdict is verdict
    assert ("--shm-size" in finding.fix) is (verdict is CheckResult.WARN)


def test_memory_that_libtpu_locks(machine, limits, monkeypatch) -> None:
    chip = SimpleNamespace(nodes=("/dev/vfio/0",))
    monkeypatch.setattr(system_checks, "find_chips", lambda _: [chip])
    assert check_limits(machine()).verdict is CheckResult.PASS
    limits[resource.RLIMIT_MEMLOCK] = 64 << 10
    finding = check_limits(machine())
    assert finding.verdict is CheckResult.FAIL
    assert "memlock" in finding.fix


@pytest.mark.parametrize(
    ("files", "verdict", "words"),
    [
        ({}, CheckResult.PASS, "8 processors"),
        ({"sys/fs/cgroup/cpu.max": "max 100000\n"}, CheckResult.PASS, "8 processors"),
        ({"sys/fs/cgroup/cpu.max": "250000 100000\n"}, CheckResult.WARN, "2.5 of 8 processors"),
        ({"sys/fs/cgroup/job/step/cpu.max": "max 100000\n"}, CheckResult.PASS, "8 processors"),
        ({"sys/fs/cgroup/job/cpu.max": "150000 100000\n"}, CheckResult.WARN, "1.5 of 8 processors"),
        (
            {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "400000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"},
            CheckResult.WARN,
            "--threads 4",
        ),
        (
            {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"},
            CheckResult.PASS,
            "8 processors",
        ),
    ],
)
def test_processors_of_a_control_group(machine, monkeypatch, files, verdict, words) -> None:
    monkeypatch.setattr(system_checks, "processors", lambda: 8)
    given = machine()
    own = {"proc/self/cgroup": "4:cpu,cpuacct:/job/step\n0::/job/step\n"}
    for name, text in (own | files).items():
        (given.root / name).parent.mkdir(parents=True, exist_ok=True)
        (given.root / name).write_text(text)
    finding = check_processors(given)
    assert finding.verdict is verdict
    assert words in said(finding)


def test_memory_nodes(machine, monkeypatch) -> None:
    monkeypatch.setattr(system_checks, "processors", lambda: 8)
    given = machine(driver=TWO)
    for node in ("node0", "node1"):
        (given.root / "sys/devices/system/node" / node).mkdir(parents=True)
    assert check_processors(given).summary == (
        "8 processors on 2 NUMA nodes; numactl can bind a run to the node of its GPU"
    )


@pytest.mark.parametrize(
    ("beside", "verdict", "words"),
    [("0-3", CheckResult.PASS, "numactl can bind"), ("4-7,9", CheckResult.WARN, "none of them on gpu:1's")],
)
def test_processors_of_the_node_of_a_gpu(machine, monkeypatch, beside, verdict, words) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    given = machine(driver=Driver("580", gpus=(gpu(0), gpu(1))))
    for node, processors_there in enumerate(("8", beside)):
        folder = given.root / "sys/devices/system/node" / f"node{node}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(processors_there)
    pci(given.root, "0000:00:00.0", "0x10de", numa_node="-1")
    pci(given.root, "0000:01:00.0", "0x10de", numa_node="1")
    finding = check_processors(given)
    assert finding.verdict is verdict
    assert words in said(finding)


@pytest.mark.parametrize(
    ("free", "swap", "driver", "words"),
    [
        (120, 0, TWO, ""),
        (40, 8, TWO, "a GPU has 80.0 GiB"),
        (40, 8, Driver("580", (13, 0), (gpu(unified=True),)), ""),
        (2, 0, None, "without swap"),
        (2, 8, None, ""),
    ],
)
def test_memory_of_the_host(machine, monkeypatch, free, swap, driver, words) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=(free + 14) * GIB))
    monkeypatch.setattr(psutil, "swap_memory", lambda: SimpleNamespace(total=swap * GIB))
    monkeypatch.setattr(system_checks, "available_memory", lambda: free * GIB)
    finding = check_memory(machine(driver=driver))
    assert (finding.verdict is CheckResult.WARN) is bool(words)
    assert words in said(finding)


def test_a_cluster_that_can_be_found(machine) -> None:
    workers = {"cluster": {"worker": ["localhost:1", "127.0.0.1:2"]}, "task": {"type": "worker", "index": 1}}
    finding = check_cluster(machine(environment={"TF_CONFIG": json.dumps(workers)}))
    assert finding.summary == "TF_CONFIG: 2 processes, this one is worker 1"
    assert check_cluster(machine()).summary == "this process trains alone"


@pytest.mark.parametrize(
    ("environment", "verdict", "words"),
    [
        ({"TF_CONFIG": "{"}, CheckResult.FAIL, "TF_CONFIG is invalid"),
        (
            {
                "TF_CONFIG": '{"cluster": {"worker": ["a.invalid:1", "localhost:2"]}, '
                '"task": {"type": "worker", "index": 1}}'
            },
            CheckResult.FAIL,
            "no address is known for a.invalid",
        ),
        ({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_PROCID": "0"}, CheckResult.WARN, "srun"),
        ({"NCCL_SOCKET_IFNAME": "ib"}, CheckResult.FAIL, "this machine has eth0, lo"),
        ({"NCCL_SOCKET_IFNAME": "=eth"}, CheckResult.FAIL, "no such interface"),
        ({"NCCL_SOCKET_IFNAME": "eth"}, CheckResult.PASS, "alone"),
        ({"NCCL_SOCKET_IFNAME": "^docker"}, CheckResult.PASS, "alone"),
    ],
)
def test_what_the_environment_says_of_a_cluster(machine, environment, verdict, words) -> None:
    given = machine(environment=environment)
    for name in ("eth0", "lo"):
        (given.root / "sys/class/net" / name).mkdir(parents=True)
    finding = check_cluster(given)
    assert finding.verdict is verdict
    assert words in said(finding)
