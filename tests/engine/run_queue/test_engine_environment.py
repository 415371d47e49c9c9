"""The environment of an engine: as in the terminal where its run was queued, and its devices."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from accel_engine.devices.device_types import Device
from accel_engine.run_queue.engine_environment import chosen_variables, with_devices, working_directory

GPUS = (
    Device("gpu:0", "gpu", "a split GPU", uuids=("GPU-0aa", "MIG-0b", "MIG-0c")),
    Device("gpu:1", "gpu", "a GPU", uuids=("GPU-1aa",)),
    Device("gpu:2", "gpu", "a GPU", uuids=("GPU-2aa",)),
)


def test_variables_that_matter_to_training_are_kept_and_no_secrets() -> None:
    environment = {
        "CUDA_VISIBLE_DEVICES": "1",
        "TF_CONFIG": "{}",
        "PYTHONPATH": "/code",
        "TFDS_DATA_DIR": "/data",
        "GOOGLE_APPLICATION_CREDENTIALS": "/home/me/key.json",
        "AWS_PROFILE": "train",
        "PATH": "/bin",
        "NEXT_PLUGGABLE_DEVICE_USE_C_API": "true",
        "MEGASCALE_NUM_SLICES": "2",
        "FI_PROVIDER": "efa",
    }
    others = {"AWS_SECRET_ACCESS_KEY": "x", "AWS_ACCESS_KEY_ID": "x", "HF_TOKEN": "x", "GITHUB_TOKEN": "x", "TERM": "x"}

    assert chosen_variables(environment | others) == environment


@pytest.mark.parametrize(
    ("chosen", "devices", "visible"),
    [
        (None, ("gpu:1",), "GPU-1aa"),
        (None, ("gpu:2", "gpu:0"), "MIG-0b,GPU-2aa"),
        ("2,0", ("gpu:0",), "MIG-0b"),
        ("2,0", ("gpu:0", "gpu:2"), "GPU-2aa,MIG-0b"),
        ("GPU-1aa, GPU-2", ("gpu:2",), "GPU-2aa"),
        ("GPU-1aa,MIG-0c", ("gpu:0",), "MIG-0c"),
        ("MIG-0c,MIG-0b", ("gpu:0",), "MIG-0c"),  # CUDA takes the first
    ],
)
def test_an_engine_sees_its_devices_only(chosen: str | None, devices: tuple[str, ...], visible: str) -> None:
    environment = {} if chosen is None else {"CUDA_VISIBLE_DEVICES": chosen}

    found = with_devices(environment, devices, GPUS)

    assert found["CUDA_VISIBLE_DEVICES"] == visible
    assert found["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


def test_numbers_pass_over_a_gpu_that_is_lost() -> None:
    gpus = (Device("gpu:0", "gpu", "NVIDIA GPU", problem="lost"), *GPUS[1:])
    shown = {"CUDA_VISIBLE_DEVICES": "0,1", "CUDA_DEVICE_ORDER": "FASTEST_FIRST"}  # which is the same for two alike
    assert with_devices(shown, ("gpu:1",), gpus)["CUDA_VISIBLE_DEVICES"] == "GPU-1aa"
    assert with_devices(shown, ("gpu:2",), gpus)["CUDA_VISIBLE_DEVICES"] == "GPU-2aa"
    assert with_devices({"CUDA_VISIBLE_DEVICES": "1"}, ("gpu:1", "gpu:2"), gpus)["CUDA_VISIBLE_DEVICES"] == "GPU-2aa"


def test_a_gpu_without_a_known_uuid_is_named_by_its_index() -> None:
    gpus = [replace(gpu, uuids=()) for gpu in GPUS]
    assert with_devices({}, ("gpu:2",), gpus) == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "2"}


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
