"""GPUs from the driver to what an engine sees, against the stand-in for NVIDIA's library."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from accel_engine.devices.nvidia_gpu import NvidiaProbe
from accel_engine.process import engine_process
from accel_engine.run import RunWriter
from accel_engine.run_queue import queue
from accel_engine.run_queue.free_devices import MachineReader
from accel_engine.run_queue.queue_database import open_queue
from accel_engine.run_queue.waiter import Waiter
from engine.run_queue.conftest import Make
from nvml.stand_in import Driver


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

    monkeypatch.setattr(engine_process, "start_engine", start)
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
