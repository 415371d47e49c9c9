"""The installed command on a machine with GPUs, whose driver is a stand-in that the system's loader finds."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from nvml.stand_in import COMPILER, Driver, build

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler to build the stand-in library with")

LOST = 15


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    return Driver(build(tmp_path), tmp_path / "script", 2)


def devices(program: Path, driver: Driver, *arguments: str) -> str:
    environment = {**os.environ, **driver.environment, "COLUMNS": "80"}
    return subprocess.run(
        [program, "devices", *arguments], env=environment, capture_output=True, text=True, timeout=120, check=True
    ).stdout


def test_gpus_are_read_through_the_driver_s_library(program: Path, driver: Driver) -> None:
    driver.measure("pid", 0, os.getpid())
    driver.measure("reasons", 1, 0x40)
    found: list[dict[str, Any]] = [json.loads(line) for line in devices(program, driver, "--json").splitlines()]
    first, second = (device for device in found if device["kind"] == "gpu")
    assert first["name"] == "NVIDIA A100-SXM4-80GB"
    assert first["readings"]["utilization"] == {"value": 87.0, "unit": "%"}
    assert first["readings"]["processes"]["parts"][0]["id"] == str(os.getpid())
    assert first["readings"]["pcie_received"] == {"value": 2.5e9, "unit": "B/s"}
    assert second["readings"]["throttling"]["parts"] == [{"name": "thermal slowdown"}]


def test_a_lost_gpu_is_a_row_with_its_reason_below(program: Path, driver: Driver) -> None:
    driver.refuse("*", 1, LOST)
    told = devices(program, driver).splitlines()
    assert next(line for line in told if line.startswith("gpu:0")).split()[1] == "87%"
    assert next(line for line in told if line.startswith("gpu:1")).split()[1] == "-"
    assert any(line.startswith("gpu:1: no utilization") and "lost" in line for line in told)
    assert all(len(line) <= 80 for line in told[:4])


def test_a_gpu_whose_driver_stalls_does_not_keep_the_others(program: Path, driver: Driver) -> None:
    driver.stall("nvmlDeviceGetPowerUsage", 1)
    told = devices(program, driver).splitlines()
    assert next(line for line in told if line.startswith("gpu:0")).split()[1] == "87%"
    assert any(line.startswith("gpu:1: no utilization: ") for line in told)
