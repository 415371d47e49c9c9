"""The environment of an engine: that of the terminal where its run was queued, and its devices."""

import os
from pathlib import Path

import pytest

from accel_engine.devices.device_types import Device
from accel_engine.run_queue.engine_environment import chosen_variables, with_devices, working_directory

GPUS = tuple(Device(f"gpu:{index}", "gpu", "a GPU", uuids=(f"GPU-{index}aa", f"MIG-{index}b")) for index in range(3))


def test_variables_that_matter_to_training_are_kept_and_no_secrets() -> None:
    environment = {
        "CUDA_VISIBLE_DEVICES": "1",
        "TF_CONFIG": "{}",
        "PYTHONPATH": "/code",
        "TFDS_DATA_DIR": "/data",
        "GOOGLE_APPLICATION_CREDENTIALS": "/home/me/key.json",
        "AWS_PROFILE": "train",
        "PATH": "/bin",
    }
    others = {"AWS_SECRET_ACCESS_KEY": "x", "AWS_ACCESS_KEY_ID": "x", "HF_TOKEN": "x", "GITHUB_TOKEN": "x", "TERM": "x"}

    assert chosen_variables(environment | others) == environment


@pytest.mark.parametrize(
    ("chosen", "devices", "visible"),
    [
        (None, ("gpu:1",), "1"),
        (None, ("gpu:2", "gpu:0"), "0,2"),
        ("2,0", ("gpu:0",), "0"),
        ("2,0", ("gpu:0", "gpu:2"), "2,0"),
        ("GPU-1aa, GPU-2", ("gpu:2",), "GPU-2"),
        ("MIG-1b,MIG-0b", ("gpu:0",), "MIG-0b"),
    ],
)
def test_an_engine_sees_its_devices_only(chosen: str | None, devices: tuple[str, ...], visible: str) -> None:
    environment = {} if chosen is None else {"CUDA_VISIBLE_DEVICES": chosen}

    found = with_devices(environment, devices, GPUS)

    assert found["CUDA_VISIBLE_DEVICES"] == visible
    assert found.get("CUDA_DEVICE_ORDER") == (None if chosen else "PCI_BUS_ID")


@pytest.mark.parametrize("devices", [(), ("tpu:0", "tpu:1")])
def test_other_devices_need_no_variable(devices: tuple[str, ...]) -> None:
    assert with_devices({"TF_X": "1"}, devices, GPUS) == {"TF_X": "1"}


def test_a_working_directory_that_is_gone_is_left_out(tmp_path: Path) -> None:
    before = os.getcwd()
    with working_directory(str(tmp_path)):
        assert os.path.samefile(os.getcwd(), tmp_path)
    with working_directory(str(tmp_path / "gone")):
        assert os.getcwd() == before
    assert os.getcwd() == before
