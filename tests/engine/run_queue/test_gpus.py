"""GPUs from the driver to what an engine sees, against the stand-in for NVIDIA's library."""

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pynvml
import pytest

from accel_engine.devices import nvidia_gpu
from accel_engine.devices.installation import Installation
from accel_engine.devices.nvidia_gpu import NvidiaProbe
from accel_engine.process import engine_process
from accel_engine.run import RunWriter
from accel_engine.run_queue import needs, queue
from accel_engine.run_queue.machine import MachineReader
from accel_engine.run_queue.queue_database import open_queue
from accel_engine.run_queue.waiter import Waiter
from engine.run_queue.conftest import Make
from nvml.stand_in import COMPILER, Driver, build

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler to build the stand-in library with")


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    """Three GPUs, of which somebody uses the first."""
    monkeypatch.setattr(nvidia_gpu, "SAMPLE_TIMEOUT", 30.0)
    monkeypatch.setattr(needs, "find_installation", lambda: Installation("tensorflow", "2.21.0"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    driver = Driver(build(tmp_path), tmp_path / "script", 3)
    for name, value in driver.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(driver.library)))
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    for gpu in (1, 2):
        driver.measure("memory", gpu, 0.5)
        driver.measure("utilization", gpu, 0)
    yield driver
    driver.relent()


def test_each_run_gets_a_gpu_that_nobody_uses(
    driver: Driver, add: Make, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, str]] = []
    writers: list[RunWriter] = []

    def start(directory: Path, environment: Mapping[str, str]) -> Any:
        started.append((directory.name, environment["CUDA_VISIBLE_DEVICES"]))
        writers.append(RunWriter(directory))
        writers[-1].begin()
        return type("Process", (), {"poll": lambda _: None, "returncode": None})()

    monkeypatch.setattr(engine_process, "start", start)
    one, two, three = (add(name) for name in ("one", "two", "three"))
    times = iter(range(0, 1000, 10))
    reader = MachineReader([NvidiaProbe()], lambda: float(next(times)))
    with (
        open_queue() as database,
        reader as machine,
        closing(Waiter(database, machine)) as waiter,
    ):
        waiter.start_runs()
        assert started == []
        waiter.start_runs()
        assert started == [(one, "GPU-00000002"), (two, "GPU-00000003")]
        reason = queue.entries()[2].reason
        assert reason.startswith("needs 1 free of 3: gpu:0 has 61.5 GiB of ")
        assert reason.endswith(f"gpu:1 run {one}, gpu:2 run {two}")
        driver.measure("memory", 0, 0.0)
        driver.measure("utilization", 0, 0)
        waiter.start_runs()
        waiter.start_runs()
    for writer in writers:
        writer.close()

    assert started[2:] == [(three, "GPU-00000001")]
