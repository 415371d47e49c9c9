"""What tests of the queue share: queued runs, and no process that starts them."""

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path

import pynvml
import pytest

from accel_engine import run
from accel_engine.devices import nvidia_gpu
from accel_engine.plan import Plan
from accel_engine.process import engine_process
from accel_engine.process.engine_process import Installation
from accel_engine.run_queue import needs, queue, queue_database, request_device
from nvml.stand_in import COMPILER, Driver, build

Make = Callable[..., str]
"""Adds a run of some name to the queue; returns its id."""


@pytest.fixture
def asleep(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Nobody starts queued runs; returns a list that grows each time that somebody should."""
    woken: list[str] = []
    monkeypatch.setattr(queue_database, "start_waiter", lambda: woken.append("woken"))
    monkeypatch.setattr(engine_process, "find_installation", lambda: Installation("tensorflow-cpu", "2.21.0"))
    return woken


@pytest.fixture
def add(asleep: list[str]) -> Make:
    def make(name: str, **asks: object) -> str:
        directory = queued(name)
        queue.enqueue(directory, queue.QueueRequest(**asks))  # type: ignore[arg-type]
        return directory.name

    return make


def queued(name: str, **fields: object) -> Path:
    """A run that waits to be queued."""
    return run.create(Plan.from_mapping({"model": "mlp", "name": name, **fields}), queued=True)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in for NVIDIA's library."""
    if COMPILER is None:
        pytest.skip("no C compiler to build the stand-in library with")
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def driver(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    """Three GPUs, of which somebody uses the first."""
    monkeypatch.setattr(nvidia_gpu, "SAMPLE_TIMEOUT", 30.0)
    for module in (needs, request_device):
        monkeypatch.setattr(module, "find_installation", lambda: Installation("tensorflow", "2.21.0"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    driver = Driver(library, tmp_path / "script", 3)
    for name, value in driver.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(driver.library)))
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    for gpu in (1, 2):
        driver.measure("memory", gpu, 0.5)
        driver.measure("utilization", gpu, 0)
    yield driver
    driver.relent()
