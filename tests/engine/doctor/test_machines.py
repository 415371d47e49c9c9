"""The doctor on machines with one thing wrong: it finds that, and nothing else."""

import pytest

from accel_engine.doctor import CheckResult, checks_of, run_checks

from .machines import (
    MACHINES,
    aarch64,
    an_ample_host,
    blackwell,
    broken_wheel,
    colab,
    examine,
    jetson,
    lost_gpu,
    macos,
    mig,
    tpu_slice,
    tpu_vm,
    without_utility,
    wsl2,
)

FAIL, WARN = CheckResult.FAIL, CheckResult.WARN


@pytest.mark.parametrize(
    ("build", "found", "words"),
    [
        (blackwell, {"nvidia.seen": WARN}, "too new for tensorflow 2.21.0"),
        (wsl2, {"nvidia.driver": FAIL, "nvidia.wsl": FAIL}, "a Linux driver inside WSL2 hides the one of Windows"),
        (without_utility, {"nvidia.driver": WARN}, "NVIDIA_DRIVER_CAPABILITIES=compute,utility"),
        (jetson, {}, "for utilization, memory and power run tegrastats"),
        (mig, {"nvidia.seen": FAIL, "nvidia.settings": FAIL}, "nvidia-smi mig -cgi 0 -C -i 0"),
        (lost_gpu, {"nvidia.driver": FAIL, "nvidia.seen": FAIL, "nvidia.health": WARN}, "3 of 4 GPUs, 1 not resp"),
        (tpu_vm, {"tpu.library": FAIL}, "pip install 'accel-tui[tpu]'"),
        (tpu_slice, {"tpu.library": WARN}, "export TPU_LOAD_LIBRARY=0"),
        (colab, {"nvidia.driver": WARN}, "Change runtime type"),
        (aarch64, {"nvidia.seen": FAIL}, "docker run --gpus all -it IMAGE"),
        (macos, {"tensorflow.tables": FAIL}, "TensorFlow and PyArrow crash a process that loads both"),
        (broken_wheel, {"tensorflow.import": FAIL}, "TensorFlow is incomplete"),
    ],
)
def test_the_cause_is_found_and_no_other(tmp_path, build, found, words) -> None:
    checks = [check for check in checks_of(build(tmp_path)) if not check.name.startswith(("runs.", "workers."))]
    with an_ample_host():
        reports = {report.check: report.finding for report in run_checks(checks)}
    assert {name: each.verdict for name, each in reports.items() if each.verdict in (FAIL, WARN)} == found
    assert words in " ".join(f"{each.summary} {each.cause} {each.fix}" for each in reports.values())
    done = [each.summary for each in reports.values() if each.verdict is CheckResult.PASS]
    assert not [
        each for each in done if each.startswith(("not needed", "not checked", "no NVIDIA GPU", "no TPU", "0 "))
    ]


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (without_utility, "not checked: needs NVML"),
        (jetson, "not checked: needs NVML"),
        (wsl2, "not checked: see nvidia.wsl"),
    ],
)
def test_a_gpu_that_nvml_does_not_list_is_not_denied(tmp_path, build, words) -> None:
    checks = [check for check in checks_of(build(tmp_path)) if check.name.startswith("nvidia.")]
    reports = {report.check: report.finding for report in run_checks(checks)}
    for name in ("nvidia.memory", "nvidia.order", "nvidia.files", "nvidia.settings", "nvidia.health", "nvidia.links"):
        assert (reports[name].verdict, reports[name].summary) == (CheckResult.SKIP, words)
    told = " ".join(f"{each.summary} {each.cause}" for each in reports.values())
    assert "no NVIDIA" not in told


def test_every_machine_has_a_number(capfd) -> None:
    assert sorted(MACHINES) == list(range(1, 13))
    assert len(set(MACHINES.values())) == len(MACHINES)
    assert examine(6) == 1
    assert "is incomplete" in " ".join(capfd.readouterr().out.split())
