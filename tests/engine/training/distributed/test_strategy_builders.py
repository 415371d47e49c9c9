import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from accel_engine.devices.tpu_chips import GOOGLE
from accel_engine.doctor import tpu_checks
from accel_engine.doctor.tpu_checks import LOCK
from accel_engine.strategies.tpu_endpoint import TpuEndpoint
from accel_engine.training.distributed.strategy_builders import explain_connection

HERE = TpuEndpoint.parse("local", "TPU_NAME")
AWAY = TpuEndpoint.parse("10.0.0.2:8470", "COLAB_TPU_ADDR")


@pytest.fixture
def chip(tmp_path: Path) -> Path:
    """The device file of a simulated TPU v4, with this machine's processes."""
    function = tmp_path / "sys/bus/pci/devices/0000:00:04.0"
    function.mkdir(parents=True)
    for name, word in {"vendor": GOOGLE, "device": "0x005e"}.items():
        (function / name).write_text(f"{word}\n")
    (tmp_path / "proc").symlink_to("/proc")
    node = tmp_path / "dev/accel0"
    node.parent.mkdir()
    node.touch()
    return node


@pytest.fixture
def holder(chip: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has the chip open."""
    text = f"import sys; held = open({str(chip)!r}); print('open', flush=True); sys.stdin.read()"
    process = subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.communicate()


def test_another_process_that_uses_the_chips_is_the_cause(
    chip: Path, holder: subprocess.Popen[str], tmp_path: Path
) -> None:
    told = explain_connection(HERE, "RET_CHECK failure", tmp_path, tmp_path)
    assert f"process {holder.pid} (" in told
    assert "is using the chips" in told


def test_this_process_is_not_the_cause(chip: Path, tmp_path: Path) -> None:
    with chip.open():
        assert "found no usable TPU chip" in explain_connection(HERE, "RET_CHECK failure", tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("pid", "who"), [(os.getpid(), f"process {os.getpid()} ("), (0, "another container")], ids=["here", "elsewhere"]
)
def test_the_holder_of_the_lock_is_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pid: int, who: str
) -> None:
    asked: list[Path] = []
    monkeypatch.setattr(tpu_checks, "lock_holder", lambda file: asked.append(file) or pid)
    assert who in explain_connection(HERE, "anything", tmp_path, tmp_path)
    assert asked == [tmp_path / LOCK]


@pytest.mark.parametrize(
    ("endpoint", "said", "cause"),
    [
        (HERE, "No OpKernel was registered to support Op 'ConfigureDistributedTPU'", "pip install 'accel-tui[tpu]'"),
        (AWAY, "/job:worker/replica:0/task:0/device:TPU_SYSTEM:0 unknown device.", "the server there is not a TPU"),
        (
            TpuEndpoint.parse("mine", "--tpu"),
            "<urlopen error [Errno -2] Name or service not known>",
            "grpc://HOST:PORT",
        ),
        (
            TpuEndpoint.parse("mine", "--tpu"),
            "Missing runtime dependency on the Google API client.",
            "cloud-tpu-client",
        ),
        (
            AWAY,
            "Received http2 header with status: 404\nAdditional GRPC error information",
            "not a TPU but a web server",
        ),
        (AWAY, "no answer within 120 s", "no answer within 120 s"),
    ],
)
def test_errors_of_tensorflow_are_explained(tmp_path: Path, endpoint: TpuEndpoint, said: str, cause: str) -> None:
    told = explain_connection(endpoint, said, tmp_path, tmp_path)
    assert told.startswith("cannot connect to the TPU (")
    assert f"from {endpoint.source}): " in told
    assert cause in told
