import pytest

from accel_engine.devices.peaks import TERA, peak
from accel_engine.devices.tpu_chips import GENERATIONS


@pytest.mark.parametrize(
    ("name", "arithmetic", "teraflops"),
    [
        ("Tesla V100-SXM2-16GB", "float16", 125.0),
        ("Tesla V100-PCIE-32GB", "float16", 112.0),
        ("Tesla V100S-PCIE-32GB", "float16", 130.0),
        ("Tesla T4", "tf32", 8.1),
        ("NVIDIA A10", "bfloat16", 125.0),
        ("NVIDIA A10G", "bfloat16", 70.0),
        ("NVIDIA A100-SXM4-80GB", "tf32", 156.0),
        ("NVIDIA A100-SXM4-80GB", "float32", 19.5),
        ("NVIDIA A100 80GB PCIe", "bfloat16", 312.0),
        ("NVIDIA L4", "float16", 121.0),
        ("NVIDIA L40S", "bfloat16", 362.0),
        ("NVIDIA H100 80GB HBM3", "bfloat16", 989.4),
        ("NVIDIA H100 PCIe", "bfloat16", 756.0),
        ("NVIDIA H100 NVL", "bfloat16", 835.5),
        ("NVIDIA H200", "tf32", 494.7),
        ("NVIDIA GH200 144G HBM3e", "bfloat16", 989.4),
        ("NVIDIA B200", "bfloat16", 2250.0),
        ("NVIDIA B300", "bfloat16", 2250.0),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "tf32", 251.9),
        ("NVIDIA GeForce RTX 3090", "float16", 71.0),
        ("NVIDIA GeForce RTX 3090 Ti", "float16", 80.0),
        ("NVIDIA RTX 6000 Ada Generation", "bfloat16", 364.2),
        ("NVIDIA GeForce RTX 4090", "bfloat16", 165.2),
        ("NVIDIA GeForce RTX 5090", "bfloat16", 209.5),
    ],
)
def test_the_driver_s_name_of_a_gpu_is_found(name: str, arithmetic: str, teraflops: float) -> None:
    found = peak(name, arithmetic)

    assert found.flops_per_second == teraflops * TERA
    assert found.source.startswith("NVIDIA ")


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 4080 SUPER",
        "NVIDIA GeForce RTX 4060",
        "NVIDIA GeForce RTX 5090 Laptop GPU",
        "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
        "NVIDIA RTX PRO 6000 Blackwell Server Edition",
        "NVIDIA RTX PRO 5000 Blackwell Generation Laptop GPU",
        "NVIDIA GB10",
        "NVIDIA GB300",
        "GRID A100-4C",
    ],
)
def test_a_sibling_of_a_known_gpu_is_another_device(name: str) -> None:
    assert peak(name, "float16").flops_per_second is None
    assert name in peak(name, "float16").reason


def test_a_part_of_a_gpu_and_an_arithmetic_without_units_say_so() -> None:
    assert "MIG instance" in peak("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "float32").reason
    assert peak("Tesla T4", "bfloat16").reason == "the bfloat16 peak of Tesla T4 is unknown"
    assert peak("", "float32").reason == "the peak of this device is unknown"


@pytest.mark.parametrize("generation", GENERATIONS.values(), ids=lambda each: each.name)
def test_every_tpu_that_can_be_found_has_a_peak_and_its_devices_share_it(generation) -> None:
    chip = {"TPU v2": 46, "TPU v3": 123, "TPU v4": 275, "TPU v5e": 197, "TPU v5p": 459, "TPU v6e": 918, "TPU 7x": 2307}

    assert (
        peak(generation.name, "bfloat16").flops_per_second
        == chip[generation.name] * TERA / generation.runtime_device_count
    )
    assert peak(generation.name, "float32").flops_per_second == peak(generation.name, "bfloat16").flops_per_second
