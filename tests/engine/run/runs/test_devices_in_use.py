import socket
import time
from contextlib import closing
from pathlib import Path

from accel_engine.events import DevicesFound, RunStarted, TensorFlowDevice
from accel_engine.plan import Plan
from accel_engine.run import create
from accel_engine.run.directory.lock import WriterLock
from accel_engine.run.directory.run_paths import WATCHER_LOCK
from accel_engine.run.runs.devices_in_use import DevicesInUse, devices_in_use
from accel_engine.run.store.database import RunDatabase
from accel_engine.run.writing.writer import RunWriter


def test_a_live_run_has_the_devices_that_its_engine_found(directory: Path, writer: RunWriter) -> None:
    def begin(host: str) -> None:
        writer.begin(
            RunStarted(
                time=time.time(), run=directory.name, name="", plan={}, first_step=0, pid=1, host=host, versions={}
            )
        )

    begin(socket.gethostname())
    assert devices_in_use() == [DevicesInUse(directory.name, (), is_starting=True)]
    found = (TensorFlowDevice("GPU:0", "gpu", "", "gpu:3"), TensorFlowDevice("GPU:1", "gpu"))
    writer.write_event(DevicesFound(time=time.time(), devices=found, strategy="MirroredStrategy"))
    assert devices_in_use() == [DevicesInUse(directory.name, ("gpu:3", "gpu:1"))]
    assert devices_in_use(except_for=[directory]) == []
    begin(socket.gethostname())  # another engine continues the run, perhaps on other devices
    assert devices_in_use() == [DevicesInUse(directory.name, (), is_starting=True)]
    with closing(RunDatabase(directory)) as connection:
        connection.set_meta(host="another")
    assert devices_in_use() == []


def test_a_run_whose_engine_is_started_again_keeps_its_devices() -> None:
    directory = create(Plan(keep_alive="on"))
    with closing(RunWriter(directory)) as engine:
        engine.begin()
        found = (TensorFlowDevice("GPU:0", "gpu", "", "gpu:3"),)
        engine.write_event(DevicesFound(time=time.time(), devices=found, strategy="OneDeviceStrategy"))
    assert devices_in_use() == []
    watcher = WriterLock(directory, WATCHER_LOCK)
    try:
        assert devices_in_use() == [DevicesInUse(directory.name, ("gpu:3",))]
    finally:
        watcher.release()


def test_a_run_that_ended_uses_no_devices(ended: Path) -> None:
    assert ended.exists()
    assert devices_in_use() == []
