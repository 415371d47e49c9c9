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
        (wsl2, {"nvidia.driver": FAIL, "nvidia.wsl": FAIL}, "remove it: sudo apt purge 'nvidia-driver-*'"),
        (without_utility, {"nvidia.driver": WARN, "nvidia.seen": WARN}, "NVIDIA_DRIVER_CAPABILITIES=compute,utility"),
        (jetson, {"nvidia.seen": WARN}, "nothing is to mend: a Jetson's driver has no such library"),
        (mig, {"nvidia.seen": FAIL, "nvidia.settings": FAIL}, "nvidia-smi mig -cgi 0 -C -i 0"),
        (lost_gpu, {"nvidia.driver": FAIL, "nvidia.seen": FAIL}, "gpu:3: lost"),
        (tpu_vm, {"tpu.library": FAIL}, "pip install 'accel-tui[tpu]'"),
        (tpu_slice, {"tpu.library": WARN}, "export TPU_LOAD_LIBRARY=0"),
        (colab, {"python": WARN, "nvidia.driver": WARN}, "Change runtime type"),
        (aarch64, {"nvidia.seen": FAIL}, "use NVIDIA's TensorFlow container"),
        (macos, {"tensorflow.tables": FAIL}, "TensorFlow and PyArrow end a process that loads both"),
        (broken_wheel, {"tensorflow.import": FAIL}, "tensorflow is incomplete"),
    ],
)
def test_the_cause_is_found_and_no_other(tmp_path, build, found, words) -> None:
    checks = [check for check in checks_of(build(tmp_path)) if not check.name.startswith(("runs.", "workers."))]
    with an_ample_host():
        reports = {report.check: report.finding for report in run_checks(checks)}
    assert {name: each.verdict for name, each in reports.items() if each.verdict is not CheckResult.PASS} == found
    assert words in " ".join(f"{reports[name].summary} {reports[name].cause} {reports[name].fix}" for name in found)


def test_every_machine_has_a_number(capfd) -> None:
    assert sorted(MACHINES) == list(range(1, 13))
    assert len(set(MACHINES.values())) == len(MACHINES)
    assert examine(6) == 1
    assert "is incomplete" in " ".join(capfd.readouterr().out.split())
