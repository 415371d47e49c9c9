"""Deployments from beginning to end: real servers of small models, which no training made."""

import re
import shutil
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine.deployment import deploy as deploying
from accel_engine.deployment.deploy import Deployer
from accel_engine.deployment.deploy_options import DeployOptions
from accel_engine.deployment.deployments import (
    DeployError,
    Deployment,
    all_deployments,
    read_deployment,
    server_process,
)
from accel_engine.deployment.server_control import LIBRARIES, stop_server, transport_of
from accel_engine.deployment.sizing import read_sizing
from accel_engine.deployment.status import READY, StatusReader
from accel_engine.deployment.write_version import DeployStep, changes_for_clients
from accel_engine.errors import UsageError
from accel_engine.model_server.service import Tensor, read_service, write_service
from accel_engine.requests.export_model import Export, MeasuredModel
from accel_engine.requests.protocol.model_reference import ModelReference
from accel_engine.requests.protocol.request import ComputeDevice
from accel_engine.service_client.rest_v2 import RestV2
from accel_engine.service_client.transport import ServiceError
from engine.model_server.conftest import probabilities, write_folder

pytestmark = pytest.mark.skipif(
    any(find_spec(library) is None for library in LIBRARIES), reason="the extra deploy is not installed"
)

EXAMPLES = {"x": np.eye(4, dtype=np.float32)}


class Engine:
    """Stands in for engines: writes the folder of a small model, as an export would."""

    def __init__(self) -> None:
        self.scale = 1.0
        self.dtype = "float32"
        self.is_right = True
        self.wanted = ""

    def __call__(self, request: Any) -> Export:
        self.wanted = request.wanted_device
        folder: Path = request.service_folder
        for each in folder.iterdir():
            shutil.rmtree(each)
        folder.rmdir()
        write_folder(folder, self.dtype, request.version, self.scale)
        service = replace(read_service(folder), name=request.served_name)
        write_service(
            folder, service if self.is_right else replace(service, model=replace(service.model, path="x.onnx"))
        )
        if not self.is_right:
            (folder / "x.onnx").write_bytes(b"no model")
        model = MeasuredModel("onnx", {}, 0.0, 0.0, 1, 0.001, path=request.targets[0].path)
        return Export("abcd-small", 7, "validation", 40, (), model, (model,), ComputeDevice(self.wanted))


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def deployer(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployer]:
    monkeypatch.setattr(ModelReference, "check", lambda _: None)
    monkeypatch.setattr(deploying, "LOAD_SECONDS", 0.01)
    yield Deployer(engine, lambda step: None)
    for each in all_deployments()[0]:
        stop_server(each)


RUN = Path("/runs/abcd-small")


def answers(deployment: Deployment) -> np.ndarray:
    found = RestV2(transport_of(deployment), deployment.name, binary=True).run(EXAMPLES)
    return np.asarray(found["probabilities"])


def test_a_model_is_served_replaced_without_a_lost_request_and_taken_back(
    deployer: Deployer, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = deployer.deploy(RUN, DeployOptions(name="small", format="onnx"))
    deployment = found.deployment
    assert found.comparison.problem == ""
    np.testing.assert_allclose(answers(deployment), probabilities(EXAMPLES["x"]), atol=1e-6)
    (status,) = StatusReader().read()
    assert status.health == READY
    assert status.total is not None
    assert status.total.failed == 0
    sizing = read_sizing(deployment.folder(1))
    assert sizing is not None
    assert sizing.load_seconds
    with pytest.raises(UsageError, match="the deployment small is running: accel-tui deploy update small"):
        deployer.deploy(RUN, DeployOptions(name="small", format="onnx"))

    versions, problems, stops = Counter[str](), list[str](), threading.Event()

    def ask() -> None:
        runtime = RestV2(transport_of(deployment), "small", binary=False)
        while not stops.wait(0.01):
            try:
                asked = runtime.send(runtime.prepare(EXAMPLES))
                versions[asked.json()["model_version"]] += 1
            except Exception as error:  # noqa: BLE001 (none may fail)
                problems.append(str(error))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for each in threads:
        each.start()
    process = server_process(deployment.directory)
    engine.scale = 2.0
    try:
        second = deployer.update("small", RUN, DeployOptions(format="onnx")).deployment
        np.testing.assert_allclose(answers(second), probabilities(2 * EXAMPLES["x"]), atol=1e-6)
        engine.is_right = False
        with pytest.raises(DeployError):
            deployer.update("small", RUN, DeployOptions(format="onnx"))
        engine.is_right = True
        np.testing.assert_allclose(answers(second), probabilities(2 * EXAMPLES["x"]), atol=1e-6)
        first = deployer.back("small").deployment
        np.testing.assert_allclose(answers(first), probabilities(EXAMPLES["x"]), atol=1e-6)
    finally:
        stops.set()
        for each in threads:
            each.join()
    assert problems == []
    assert versions.keys() == {"1", "2"}
    assert server_process(deployment.directory) == process
    assert (first.current, first.previous) == (1, 2)
    assert first == read_deployment("small")

    measured = deploying.measured_load
    loads = iter((measured, None))

    def interrupted(*arguments: Any) -> Any:  # after the third version took over
        if (load := next(loads)) is None:
            raise KeyboardInterrupt
        return load(*arguments)

    monkeypatch.setattr(deploying, "measured_load", interrupted)
    with pytest.raises(KeyboardInterrupt):
        deployer.update("small", RUN, DeployOptions(format="onnx"))
    monkeypatch.setattr(deploying, "measured_load", measured)
    np.testing.assert_allclose(answers(first), probabilities(EXAMPLES["x"]), atol=1e-6)
    assert (first, first.folder(3).exists()) == (read_deployment("small"), False)

    assert stop_server(first)
    assert server_process(first.directory) is None
    assert not stop_server(first)
    restarted = deployer.restart("small").deployment
    np.testing.assert_allclose(answers(restarted), probabilities(EXAMPLES["x"]), atol=1e-6)


def test_an_update_keeps_the_format_and_a_new_deployment_does_not(deployer: Deployer) -> None:
    deployer.deploy(RUN, DeployOptions(name="small", format="tflite"))
    kept = deployer.update("small", RUN, DeployOptions()).deployment
    assert kept.version.format == "tflite"
    stop_server(kept)
    assert deployer.deploy(RUN, DeployOptions(name="small")).deployment.version.format == "onnx"


def test_what_a_version_changes_for_clients_is_told(deployer: Deployer, engine: Engine) -> None:
    deployer.deploy(RUN, DeployOptions(name="small", format="onnx"))
    engine.dtype = "uint8"
    (note,) = deployer.update("small", RUN, DeployOptions()).notes
    assert note == (
        "clients of version 1 need a change: version 2 has inputs x (uint8 2x2x1) in place of x (float32 4). "
        "Back: accel-tui deploy update small --back"
    )
    assert deployer.update("small", RUN, DeployOptions()).notes == ()
    engine.dtype = "float32"
    deployer.update("small", RUN, DeployOptions())
    (note,) = deployer.back("small").notes
    assert "version 3 has inputs x (uint8 2x2x1) in place of x (float32 4)" in note


def test_classes_in_another_order_are_a_change_for_clients(tmp_path: Path) -> None:
    service = read_service(write_folder(tmp_path / "model"))
    (meaning,) = service.meanings
    other = replace(service, meanings=(replace(meaning, classes=("a", "c", "b", "d")),))
    assert changes_for_clients(service, other) == [
        "classes of probabilities 1 (c), 2 (b), 3 (d) in place of 1 (b), 2 (c)"
    ]
    fewer = replace(service, outputs=(*service.outputs, Tensor("more", (), "float32")))
    assert changes_for_clients(fewer, service) == ["outputs none in place of more (float32)"]


def test_an_update_keeps_the_sizes_of_batches(deployer: Deployer) -> None:
    deployment = deployer.deploy(RUN, DeployOptions(name="small", format="onnx")).deployment
    folder = deployment.folder(1)
    write_service(folder, replace(read_service(folder), batch_sizes=(1, 2)))  # as --target-latency may choose
    assert deployer.update("small", RUN, DeployOptions()).service.batch_sizes == (1, 2)


def test_an_update_keeps_the_device_of_a_running_server(deployer: Deployer, engine: Engine) -> None:
    deployer.deploy(RUN, DeployOptions(name="small", device="gpu:0"))
    assert engine.wanted == "gpu:0"
    kept = deployer.update("small", RUN, DeployOptions()).deployment
    assert (engine.wanted, kept.device, kept.version.format) == ("gpu:0", "gpu:0", "savedmodel")
    with pytest.raises(UsageError, match="small computes on gpu:0, and a running server keeps its device"):
        deployer.update("small", RUN, DeployOptions(device="cpu"))
    stop_server(kept)
    moved = deployer.update("small", RUN, DeployOptions(device="cpu")).deployment
    assert (engine.wanted, moved.device, moved.version.format) == ("cpu", "cpu", "onnx")


def test_a_server_with_an_older_token_is_told_before_the_export(
    deployer: Deployer, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text("first-secret-of-many\n")
    deployer.deploy(RUN, DeployOptions(name="small", format="onnx", token_file=str(token)))
    token.write_text("second-secret-of-many\n")
    said = r"401 Unauthorized \(the server has an older token: accel-tui deploy restart small\)"
    (status,) = StatusReader().read()
    assert re.search(said, status.problem)
    monkeypatch.setattr(engine, "wanted", "nothing was exported")
    with pytest.raises(ServiceError, match=said):
        deployer.update("small", RUN, DeployOptions(format="onnx"))
    assert engine.wanted == "nothing was exported"
    deployer.restart("small")
    (status,) = StatusReader().read()
    assert status.health == READY


def test_a_model_that_cannot_be_served_leaves_nothing(deployer: Deployer, engine: Engine) -> None:
    engine.is_right = False
    with pytest.raises(DeployError, match="the server has ended"):
        deployer.deploy(RUN, DeployOptions(name="small", format="onnx"))
    assert all_deployments() == ([], [])


@pytest.mark.parametrize("last", ["starting the server", "checking its answers"])
def test_a_cancelled_deployment_leaves_nothing(engine: Engine, deployer: Deployer, last: str) -> None:
    steps: list[str] = []

    def tell(step: DeployStep) -> None:
        steps.append(step.words)

    cancelled = Deployer(engine, tell, lambda: last in steps)
    with pytest.raises(DeployError, match="ended before"):
        cancelled.deploy(RUN, DeployOptions(name="small", format="onnx"))
    assert all_deployments() == ([], [])


def test_a_cancelled_update_changes_nothing(engine: Engine, deployer: Deployer) -> None:
    deployment = deployer.deploy(RUN, DeployOptions(name="small", format="onnx")).deployment
    steps: list[str] = []

    def tell(step: DeployStep) -> None:
        steps.append(step.words)

    engine.scale = 2.0
    for checks in (1, 2):  # beside, and after it took over
        steps.clear()
        cancelled = Deployer(engine, tell, lambda checks=checks: steps.count("checking its answers") == checks)
        with pytest.raises(DeployError, match="ended before"):
            cancelled.update("small", RUN, DeployOptions())
        assert ("version 2 takes over" in steps) == (checks == 2)
        assert (read_deployment("small"), deployment.folder(2).exists()) == (deployment, False)
        np.testing.assert_allclose(answers(deployment), probabilities(EXAMPLES["x"]), atol=1e-6)


@pytest.mark.campaign
def test_formats_are_measured_as_they_are_served(
    deployer: Deployer, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accel_engine.deployment.sizing.SECONDS", 0.1)
    monkeypatch.setattr("accel_engine.deployment.sizing.SMALLER_BATCH", 4)
    options = DeployOptions(name="small", format="onnx", threads=1, target_latency=60.0, target_rate=1e9, max_queue=2)
    found = deployer.deploy(RUN, options)
    assert [each.largest_batch for each in found.sizings][:2] == [8, 4]
    sizing = found.sizing
    assert sizing in found.sizings
    assert found.service.largest_batch == sizing.largest_batch
    assert sizing.connections == 2
    assert sizing.rate
    assert sizing.p99 is not None
    assert sizing.p99 <= 60.0
    assert sizing.memory_bytes
    assert sizing.replicas
    assert sizing.replicas > 1
    with urllib.request.urlopen(f"{found.deployment.url}/readyz") as answer:
        assert answer.status == 200
    with suppress(FileNotFoundError):
        assert not list((found.deployment.directory / "tried").iterdir())
