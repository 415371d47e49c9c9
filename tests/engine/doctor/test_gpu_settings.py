"""How GPUs are set up, against stand-ins for the driver and the file system."""

import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from accel_engine.devices.nvidia_queries import REASONS
from accel_engine.devices.xid import KERNEL_LOG
from accel_engine.doctor import CheckResult
from accel_engine.doctor import check_inputs as asking
from accel_engine.doctor.check_inputs import Driver, GpuSettings
from accel_engine.doctor.gpu_settings import (
    check_errors,
    check_files,
    check_health,
    check_links,
    check_order,
    check_settings,
)
from accel_engine.doctor.nvidia_checks import check_wsl

from .conftest import gpu

GOOD = GpuSettings("gpu:0", 0, True, False, 0, 700.0, 700.0, False, False, False, 0, 18)


def driver(*settings: GpuSettings) -> Driver:
    gpus = tuple(gpu(index) for index in range(len(settings)))
    return Driver("580.65.06", (13, 0), gpus, settings=settings)


def said(finding: Any) -> str:
    return f"{finding.summary} {finding.cause} {finding.fix}"


@pytest.mark.parametrize(
    "check", [check_settings, check_health, check_errors, check_links, check_files, check_order, check_wsl]
)
def test_a_machine_without_a_gpu_needs_none_of_it(machine, check) -> None:
    assert check(machine()).verdict is CheckResult.SKIP


@pytest.mark.parametrize(
    ("changes", "verdict", "words"),
    [
        ({}, CheckResult.PASS, "1 GPU for any number of processes"),
        ({"compute_mode": 2}, CheckResult.FAIL, "lets no process use it run sudo nvidia-smi --compute-mode 0 -i 0"),
        ({"compute_mode": 3}, CheckResult.WARN, "serves one process at a time"),
        ({"mig": True}, CheckResult.FAIL, "no MIG instance MIG is on"),
        ({"mig": True, "instances": 2}, CheckResult.PASS, ""),
        ({"power_limit": 350.0}, CheckResult.WARN, "limited to 350 W its default is 700 W"),
        ({"power_limit": 660.0}, CheckResult.PASS, ""),
        ({"persistence": False}, CheckResult.WARN, "--persistence-mode 1"),
        ({"persistence": False, "compute_mode": 2}, CheckResult.FAIL, "prohibited; 1 more to mend"),
        (
            dict.fromkeys(("compute_mode", "persistence", "mig", "power_limit", "default_power")),
            CheckResult.SKIP,
            "not tell",
        ),
    ],
)
def test_settings(machine, changes, verdict, words) -> None:
    finding = check_settings(machine(driver=driver(replace(GOOD, **changes))))
    assert finding.verdict is verdict
    assert words in said(finding)


@pytest.mark.parametrize(
    ("changes", "verdict", "words"),
    [
        ({}, CheckResult.PASS, "no known problem"),
        ({"recovery": None}, CheckResult.PASS, "no known problem"),
        (
            dict.fromkeys(("recovery", "remapping", "remapping_failed", "pending_ecc")),
            CheckResult.SKIP,
            "not checked: the driver does not tell",
        ),
        ({"recovery": 1}, CheckResult.FAIL, "nvidia-smi --gpu-reset -i 0"),
        ({"recovery": 2}, CheckResult.FAIL, "restart the machine"),
        ({"recovery": 9}, CheckResult.FAIL, "restart the machine"),
        ({"remapping": True}, CheckResult.WARN, "rows wait to be replaced"),
        ({"remapping_failed": True}, CheckResult.FAIL, "have this one replaced"),
        ({"pending_ecc": True}, CheckResult.WARN, "ECC is pending"),
    ],
)
def test_health(machine, changes, verdict, words) -> None:
    finding = check_health(machine(driver=driver(replace(GOOD, **changes))))
    assert finding.verdict is verdict
    assert words in said(finding)


def test_a_lost_gpu_is_no_healthy_one_and_the_others_are_judged_without_it(machine) -> None:
    lost = gpu(1, problem=REASONS["GPU_IS_LOST"])
    settings = (GOOD, GpuSettings("gpu:1"), replace(GOOD, gpu="gpu:2"))
    given = machine(driver=Driver("580.65.06", (13, 0), (gpu(0), lost, gpu(2)), settings=settings))
    finding = check_health(given)
    assert (finding.verdict, finding.summary, finding.fix) == (
        CheckResult.WARN,
        "gpu:1 not checked",
        "see nvidia.driver",
    )
    assert check_settings(given).summary.startswith("2 GPUs")
    assert check_links(given).summary == "18 NVLinks each"
    assert "accel-tui uses their PCI addresses" in check_order(given).summary


def test_links_of_several_gpus(machine) -> None:
    other = replace(GOOD, gpu="gpu:1")
    assert check_links(machine(driver=driver(GOOD, other))).summary == "18 NVLinks each"
    fewer = check_links(machine(driver=driver(GOOD, replace(other, links=12))))
    assert fewer.verdict is CheckResult.WARN
    assert "gpu:1 has 12 of 18" in fewer.cause


@pytest.mark.parametrize(
    ("parameters", "verdict"),
    [("quiet", CheckResult.WARN), ("quiet iommu=pt", CheckResult.PASS), (None, CheckResult.PASS)],
)
def test_gpus_behind_an_iommu(machine, parameters, verdict) -> None:
    pair = replace(GOOD, links=0), replace(GOOD, gpu="gpu:1", links=0)
    given = machine(driver=driver(*pair))
    if parameters is not None:
        (given.root / "sys/class/iommu/ivhd0").mkdir(parents=True)
        (given.root / "proc").mkdir()
        (given.root / "proc/cmdline").write_text(f"BOOT_IMAGE=/vmlinuz {parameters}\n")
    finding = check_links(given)
    assert finding.verdict is verdict
    assert ("NCCL_P2P_DISABLE=1" in finding.fix) is (verdict is CheckResult.WARN)


def test_cuda_needs_its_device_files(machine) -> None:
    given = machine(driver=driver(GOOD))
    (given.root / "dev").mkdir()
    finding = check_files(given)
    assert (finding.verdict, finding.summary) == (CheckResult.FAIL, "/dev/nvidia-uvm is missing")
    assert "nvidia-modprobe" in finding.fix
    (given.root / ".dockerenv").touch()
    assert "--gpus all" in check_files(given).fix
    for name in ("nvidia-uvm", "nvidiactl"):
        (given.root / "dev" / name).touch()
    assert check_files(given).verdict is CheckResult.PASS


def test_a_linux_driver_in_wsl_hides_windows_own(machine) -> None:
    given = machine(driver=driver(GOOD))
    (given.root / "dev").mkdir()
    (given.root / "dev/dxg").touch()
    assert "wsl --shutdown" in check_wsl(given).fix
    assert check_files(given).verdict is CheckResult.SKIP
    (given.root / "usr/lib/wsl/lib").mkdir(parents=True)
    (given.root / "usr/lib/wsl/lib/libcuda.so.1").touch()
    assert check_wsl(given).summary == "WSL2 with Windows' driver"
    (given.root / "usr/lib/x86_64-linux-gnu").mkdir()
    (given.root / "usr/lib/x86_64-linux-gnu/libcuda.so.1").touch()
    finding = check_wsl(given)
    assert finding.verdict is CheckResult.FAIL
    assert all(step in finding.fix for step in ("apt purge", "wsl --shutdown", "nvidia-smi"))


@pytest.mark.parametrize(
    ("environment", "names", "verdict", "words"),
    [
        ({"CUDA_VISIBLE_DEVICES": "0,0"}, ("A", "A"), CheckResult.FAIL, "names 0 twice"),
        ({"CUDA_VISIBLE_DEVICES": "1"}, ("A", "B"), CheckResult.WARN, "CUDA_DEVICE_ORDER=PCI_BUS_ID"),
        ({"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, ("A", "B"), CheckResult.PASS, ""),
        ({"CUDA_VISIBLE_DEVICES": "1"}, ("A", "A"), CheckResult.PASS, "count GPUs in the same way"),
        ({"CUDA_VISIBLE_DEVICES": "GPU-1"}, ("A", "B"), CheckResult.PASS, "accel-tui uses their PCI addresses"),
        ({}, ("A", "B"), CheckResult.PASS, "accel-tui uses their PCI addresses"),
    ],
)
def test_what_numbers_of_gpus_mean(machine, environment, names, verdict, words) -> None:
    gpus = tuple(gpu(index, name) for index, name in enumerate(names))
    finding = check_order(machine(driver=Driver("580", (13, 0), gpus), environment=environment))
    assert finding.verdict is verdict
    assert words in said(finding)


FELL_OFF = "3,991,5124,-;NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', GPU has fallen off the bus.\n"


@pytest.mark.parametrize(
    ("log", "verdict", "words"),
    [
        (None, CheckResult.SKIP, "sudo dmesg"),
        ("6,1,2,-;Linux version 6.1\n", CheckResult.PASS, "none"),
        (FELL_OFF, CheckResult.FAIL, "gpu:1 had error 79 (Xid) it fell off the PCI bus"),
        ("NVRM: Xid (PCI:0000:00:00): 13, pid=7\n" * 3, CheckResult.WARN, "gpu:0 had error 13 (Xid), 3 times"),
        ("NVRM: Xid (PCI:0000:00:00): 31, pid=7\n" + FELL_OFF, CheckResult.FAIL, "gpu:1 had error 79 (Xid); 1 more"),
        ("NVRM: Xid (PCI:0000:00:00): 48, DBE\n", CheckResult.FAIL, "nvidia-smi --gpu-reset -i 0"),
        ("NVRM: Xid (PCI:0000:07:00): 999, new\n", CheckResult.FAIL, "the GPU at 0000:07:00.0 had error 999"),
    ],
)
def test_errors_in_the_log_of_the_kernel(machine, log, verdict, words) -> None:
    given = machine(driver=Driver("580", (13, 0), (gpu(0), gpu(1))))
    if log is not None:
        path = given.root / KERNEL_LOG
        path.parent.mkdir()
        path.write_text(log)
    finding = check_errors(given)
    assert finding.verdict is verdict
    assert words in said(finding)


class Nvml(SimpleNamespace):
    """Stands in for the driver's library: what it is not asked for, it does not have."""

    NVMLError = pynvml.NVMLError
    NVML_SUCCESS = pynvml.NVML_SUCCESS
    NVML_NVLINK_MAX_LINKS = 4

    @staticmethod
    def nvmlDeviceGetHandleByIndex(index: int) -> int:  # noqa: N802 (NVML's name)
        return index


def test_settings_are_read_from_the_driver(monkeypatch) -> None:
    def link(_: int, number: int) -> int:
        if number > 2:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return int(number < 2)

    answer = SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(uiVal=4))
    library = Nvml(
        nvmlDeviceGetComputeMode=lambda _: 3,
        nvmlDeviceGetPersistenceMode=lambda _: 1,
        nvmlDeviceGetMigMode=lambda _: (1, 1),
        nvmlDeviceGetEnforcedPowerLimit=lambda _: 350_000,
        nvmlDeviceGetPowerManagementDefaultLimit=lambda _: 700_000,
        nvmlDeviceGetEccMode=lambda _: (0, 1),
        nvmlDeviceGetRemappedRows=lambda _: (0, 1, 1, 0),
        nvmlDeviceGetFieldValues=lambda *_: [answer],
        nvmlDeviceGetNvLinkState=link,
    )
    monkeypatch.setitem(sys.modules, "pynvml", library)
    found = asking._read_settings(gpu(0, uuids=("GPU-1", "MIG-1")))
    assert found == GpuSettings("gpu:0", 3, True, True, 1, 350.0, 700.0, True, True, False, 4, 2)


def test_what_an_old_driver_does_not_tell_is_unknown(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Nvml())
    assert asking._read_settings(gpu(0)) == GpuSettings("gpu:0")


def test_the_true_binding_has_the_functions() -> None:
    for name in ("ComputeMode", "PersistenceMode", "MigMode", "EnforcedPowerLimit", "PowerManagementDefaultLimit"):
        assert callable(getattr(pynvml, f"nvmlDeviceGet{name}"))
    for name in ("EccMode", "RemappedRows", "FieldValues", "NvLinkState"):
        assert callable(getattr(pynvml, f"nvmlDeviceGet{name}"))
    assert pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION == asking._RECOVERY
