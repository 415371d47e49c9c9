"""What starts a script: its arguments, its devices."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from accel_engine.devices.device_types import Device
from accel_engine.errors import UsageError
from accel_engine.run import RunReader
from accel_engine.scripts.start_script import Script, create_script_run, environment_for

DEVICES = [
    *(Device(name, name.partition(":")[0], name) for name in ("cpu:0", "gpu:0", "gpu:1", "gpu:2", "tpu:0")),
    Device("gpu:3", "gpu", "a GPU whose UUID is known", uuids=("GPU-3aa",)),
    Device("gpu:4", "gpu", "NVIDIA GPU", problem="lost"),
]


@pytest.mark.parametrize(
    ("wanted", "variables"),
    [
        ((), {}),
        (("gpu:2",), {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "2"}),
        (("gpu:1", "gpu:0"), {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1,0"}),
        (("gpu:3",), {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "GPU-3aa"}),
        (("cpu:0",), {"CUDA_VISIBLE_DEVICES": "-1", "JAX_PLATFORMS": "cpu"}),
    ],
)
def test_devices_become_the_variables_that_frameworks_read(
    wanted: tuple[str, ...], variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)

    assert environment_for(wanted, DEVICES) == variables


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        (("gpu:7",), "no device gpu:7; available: cpu:0, gpu:0"),
        (("gpu:0", "cpu:0"), "must be of the same kind"),
        (("tpu:0",), "chosen by the script itself"),
        (("gpu:4",), "gpu:4 cannot be used, lost; choose another device"),
    ],
)
def test_devices_that_cannot_be_chosen_are_explained(wanted: tuple[str, ...], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        environment_for(wanted, DEVICES)


def test_a_script_is_found_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").touch()

    with pytest.raises(UsageError, match="no script"):
        Script(str(tmp_path / "train.py")).check()
    with pytest.raises(UsageError, match=r"without a __main__\.py"):
        Script(str(tmp_path / "folder")).check()
    Script(str(tmp_path / "package")).check()
    Script("no.such.module", module=True).check()  # Python says so itself


def test_the_run_has_the_command_that_starts_the_script_again(tmp_path: Path) -> None:
    script = tmp_path / "my train.py"
    script.touch()
    directory = create_script_run(Script(str(script), ("--lr", "1e-3", "a b")), "", ("--devices", "cpu:0"))

    with closing(RunReader(directory)) as reader:
        info = reader.info()
    assert info.launched
    assert info.script == f"accel-tui run --devices cpu:0 '{script}' -- --lr 1e-3 'a b'"
    assert info.title == "my train.py"
    assert os.path.getsize(directory / "log.txt") == 0
