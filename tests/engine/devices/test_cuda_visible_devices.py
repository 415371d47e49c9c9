"""Which GPUs a program is shown, by what CUDA's guide says of its variable."""

from dataclasses import replace

import pytest

from accel_engine.devices.cuda_visible_devices import gpu_variables_for, visible_gpus
from accel_engine.devices.device_types import Device
from accel_engine.errors import UsageError

GPUS = (
    Device("gpu:0", "gpu", "A100", uuids=("GPU-8932f937-d72c", "MIG-1aa0b6f9", "MIG-2bb1c7e8")),
    Device("gpu:1", "gpu", "A100", uuids=("GPU-8932aaaa-0001",)),
    Device("gpu:2", "gpu", "A100", uuids=("GPU-0f1e2d3c-0002",)),
)


@pytest.mark.parametrize(
    ("shown", "visible"),
    [
        (None, "012"),
        ("", ""),
        ("-1", ""),
        ("2", "2"),
        ("2,0", "20"),
        (" 1 , 2 ", "12"),
        ("1,7,2", "1"),
        ("0,none,1", "0"),
        ("GPU-0f1e2d3c-0002", "2"),
        ("GPU-0f,GPU-8932a", "21"),
        ("GPU-8932,2", ""),  # the beginning of two
        ("GPU-1234,0", ""),
        ("MIG-2bb1c7e8", "0"),
        ("MIG-GPU-8932f937-d72c/1/0", "0"),
        ("MIG-ffff", ""),
        ("MIG-2bb1c7e8,MIG-1aa0b6f9,1", "01"),
        ("MIG-", ""),  # the beginning of two
        ("1,2,1", ""),  # twice
    ],
)
def test_gpus_are_shown_in_the_order_they_are_named_up_to_the_first_that_is_none(
    shown: str | None, visible: str
) -> None:
    environment = {} if shown is None else {"CUDA_VISIBLE_DEVICES": shown}
    assert [gpu.id for gpu in visible_gpus(environment, GPUS)] == [f"gpu:{index}" for index in visible]


@pytest.mark.parametrize(("shown", "visible"), [(None, "12"), ("0,1", "12"), ("1", "2"), ("2", "")])
def test_cuda_does_not_number_a_gpu_that_is_lost(shown: str | None, visible: str) -> None:
    gpus = (Device("gpu:0", "gpu", "NVIDIA GPU", problem="lost"), *GPUS[1:])
    environment = {} if shown is None else {"CUDA_VISIBLE_DEVICES": shown}
    found = visible_gpus(environment, gpus)
    assert [gpu.id for gpu in found] == [f"gpu:{index}" for index in visible]
    unnamed = [replace(gpu, uuids=()) for gpu in gpus]
    choice = gpu_variables_for([gpu.id for gpu in found], unnamed, environment)
    assert choice["CUDA_VISIBLE_DEVICES"] == (shown or "0,1" if found else "")


@pytest.mark.parametrize("shown", ["MIG-2bb1c7e8", "MIG-GPU-8932f937-d72c/1/0"])
def test_the_instance_that_the_user_names_is_handed_over(shown: str) -> None:
    environment = {"CUDA_VISIBLE_DEVICES": shown}
    assert gpu_variables_for(["gpu:0"], GPUS, environment)["CUDA_VISIBLE_DEVICES"] == shown
    assert gpu_variables_for(["gpu:0"], GPUS)["CUDA_VISIBLE_DEVICES"] == "MIG-1aa0b6f9"


def test_numbers_of_different_gpus_in_an_order_that_only_cuda_knows_are_refused() -> None:
    mixed = (*GPUS[:2], replace(GPUS[2], name="T4"))
    fastest = {"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}
    with pytest.raises(UsageError, match=r"CUDA_VISIBLE_DEVICES=1 counts from the fastest GPU.*set CUDA_DEVICE_ORDER"):
        visible_gpus({**fastest, "CUDA_VISIBLE_DEVICES": "1"}, mixed)
    for environment, gpus in (
        ({**fastest, "CUDA_VISIBLE_DEVICES": "1"}, GPUS),  # they are alike
        ({**fastest, "CUDA_VISIBLE_DEVICES": "GPU-8932a"}, mixed),
        ({"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1"}, mixed),
        ({"CUDA_VISIBLE_DEVICES": "1"}, mixed),  # engines set the order
    ):
        assert [gpu.id for gpu in visible_gpus(environment, gpus)] == ["gpu:1"]
