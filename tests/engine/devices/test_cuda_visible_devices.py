"""Which GPUs a program is shown, by what CUDA's guide says of its variable."""

import pytest

from accel_engine.devices.cuda_visible_devices import visible_gpus
from accel_engine.devices.device_types import Device

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
    ],
)
def test_gpus_are_shown_in_the_order_they_are_named_up_to_the_first_that_is_none(
    shown: str | None, visible: str
) -> None:
    assert visible_gpus(shown, GPUS) == tuple(f"gpu:{index}" for index in visible)
