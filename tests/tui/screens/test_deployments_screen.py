"""The screens of deployments, on what stand-ins for servers and engines tell."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from textual.widgets import Input

from accel_engine.deploy_folder import deploy_to_folder
from accel_engine.deploy_folder.folder_options import FolderOptions
from accel_engine.deployment.deploy import Deployed
from accel_engine.deployment.deploy_options import DeployOptions
from accel_engine.deployment.deployments import DeployError, Deployment
from accel_engine.deployment.status import SILENT
from accel_engine.deployment.write_version import DeployStep
from accel_engine.errors import AccelError
from accel_engine.model_server.service import OutputComparison, ServedModelFile, Service, Tensor, UploadForm
from accel_engine.requests.bench_service import BenchServiceRequest, ServiceLoads
from accel_engine.requests.check_service import MeasuringService, ServiceLoad
from accel_tui.app_protocol import Screens
from accel_tui.screens import deploy_screen, deployments_screen
from accel_tui.screens.asking import QuestionScreen
from accel_tui.screens.deploy_screen import DeployScreen
from accel_tui.screens.deployment_bench_screen import DeploymentBenchScreen
from accel_tui.screens.deployments_screen import DeploymentsScreen
from accel_tui.screens.job import Job
from accel_tui.widgets.plan.picker import Picker
from engine.deploy_folder.servables import facts_of, service_of
from tui.fake_engine import FakeEngine
from tui.stand_in_deployments import Reader, deployed, make
from tui.stand_ins import BareApp, begun, hides, shows, until


@pytest.fixture
def digits(monkeypatch: pytest.MonkeyPatch) -> Deployment:
    return deployed(monkeypatch)


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_the_list_shows_what_each_server_does(digits: Deployment, size: tuple[int, int]) -> None:
    app = BareApp()
    async with app.run_test(size=size) as pilot:
        await begun(pilot)
        app.open_screen(Screens.DEPLOYMENTS)
        await shows(pilot, "digits", "ready", "412", "18.4 ms", "stopped")
        version = (
            ("2: m8w3-cnn", "step 69, tflite", "1: k3fp-cnn") if size[1] > 24 else ("version 2: m8w3-cnn", "version 1")
        )
        await shows(pilot, *version, "4,120", "Course of digits", "latency ms", "-1:00")
        await pilot.press("enter")
        await shows(pilot, "Deployment digits", "serves digits version 2")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, DeploymentsScreen), "the list")


async def test_a_server_that_does_not_answer_has_no_figures(
    digits: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, stopped = Reader.found
    silent = replace(running, health=SILENT, figures=None, total=None, problem="it does not answer")
    monkeypatch.setattr(Reader, "found", (replace(silent, course=(*running.course, (91.0, None))), stopped))
    app = BareApp()
    async with app.run_test(size=(120, 40)) as pilot:
        await begun(pilot)
        app.open_screen(Screens.DEPLOYMENTS)
        await shows(pilot, "it does not answer", "1 of 2 running")
        await hides(pilot, "412")
        await pilot.press("down")
        await shows(pilot, "stopped; s starts it again", "no server runs")


async def test_the_list_is_empty_and_says_what_to_press(monkeypatch: pytest.MonkeyPatch, digits: Deployment) -> None:
    monkeypatch.setattr(Reader, "found", ())
    app = BareApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await begun(pilot)
        app.open_screen(Screens.DEPLOYMENTS)
        await shows(pilot, "Press r, choose a run with a trained model, and press D.")
        await hides(pilot, "requests/s")


async def test_stopping_starting_and_taking_back_ask_first(digits: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    class Changes:
        def __init__(self, *_: Any) -> None: ...

        def back(self, name: str) -> None:
            done.append(f"back {name}")

        def restart(self, name: str) -> None:
            done.append(f"restart {name}")
            raise DeployError("port 8502 is in use")

    monkeypatch.setattr(deployments_screen, "Deployer", Changes)
    monkeypatch.setattr(deployments_screen, "stop_server", lambda deployment: done.append(f"stop {deployment.name}"))
    app = BareApp()
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await begun(pilot)
        app.open_screen(Screens.DEPLOYMENTS)
        await shows(pilot, "412")
        for key, words, what in (("s", "Stop digits?", "stop digits"), ("u", "Serve digits as before?", "back digits")):
            await pilot.press(key)
            await until(pilot, lambda: isinstance(app.screen, QuestionScreen), "a question")
            await shows(pilot, words)
            await pilot.press(key)
            await until(pilot, lambda what=what: what in done, what)  # type: ignore[misc]
        await pilot.press("down", "s")
        await until(pilot, lambda: "restart old" in done, "the restart")
        await shows(pilot, "port 8502 is in use")


async def test_deleting_asks_first(digits: Deployment) -> None:
    app = BareApp()
    async with app.run_test(size=(120, 40)) as pilot:
        await begun(pilot)
        app.open_screen(Screens.DEPLOYMENTS)
        await shows(pilot, "old")
        await pilot.press("delete", "down", "delete")
        await shows(pilot, "Delete old?")
        await pilot.press("d")
        await until(pilot, lambda: not (digits.directory.parent / "old").exists(), "the end of it")
        assert digits.directory.exists()


async def test_a_server_is_measured_by_connections(digits: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(job: Job, request: BenchServiceRequest) -> ServiceLoads:
        loads = tuple(ServiceLoad(count, 100.0 * count, 0.001, 0.002, 50, True) for count in request.connections)
        for each in loads:
            job.send(MeasuringService(each.connections))
            job.send(each)
        return ServiceLoads(loads)

    monkeypatch.setattr(Job, "ask", ask)
    app = BareApp()
    async with app.run_test(size=(120, 40)) as pilot:
        await begun(pilot)
        app.open_screen(Screens.DEPLOYMENTS)
        await shows(pilot, "412")
        await pilot.press("b")
        await until(pilot, lambda: isinstance(app.screen, DeploymentBenchScreen), "the bench")
        await pilot.press("enter")
        await shows(pilot, "6.40k requests/s over 64 connections, p99 2.00 ms", "yes")


async def test_a_run_is_deployed_and_its_server_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine()
    deployment = replace(make("digits", 8501), grpc_port=9001)
    service = Service(
        name="digits",
        model=ServedModelFile("tflite", "none", "model.tflite", 1e-3),
        inputs=(Tensor("inputs", (8, 8, 1), "uint8"),),
        outputs=(Tensor("probabilities", (10,), "float32"),),
        metrics={"loss": 0.25, "accuracy": 0.9},
        split="validation",
        examples=64,
        files=UploadForm("images"),
    )
    load = ServiceLoad(1, 420.0, 0.0021, 0.0042, 1000, True)
    asked: list[Any] = []

    class Deploys:
        def __init__(self, _: Any, tell: Any, __: Any) -> None:
            tell(DeployStep("starting the server"))

        def deploy(self, run: Path, options: Any) -> Deployed:
            asked.append((run, options.name, options.grpc_port))
            return Deployed(deployment, service, OutputComparison(float(np.float32(2e-7)), 1e-8, "", ""), load)

    monkeypatch.setattr(deploy_screen, "Deployer", Deploys)
    monkeypatch.setattr(deploy_screen, "example_command", lambda of: f"curl {of.url}")
    monkeypatch.setattr(deploy_screen, "check_deploy", lambda *_: None)
    app = BareApp()
    async with app.run_test(size=(120, 40)) as pilot:
        await begun(pilot)
        app.open_screen(Screens.DEPLOY, engine.directory)
        await until(pilot, lambda: isinstance(app.screen, DeployScreen), "the form")
        await pilot.press("tab", *"digits", "enter")
        await shows(pilot, "digits is served on http://127.0.0.1:8501", "the largest difference is 2e-07", "420")
        await shows(pilot, "127.0.0.1:9001", "curl http://127.0.0.1:8501", "D Deployments")
        assert asked == [(engine.directory, "digits", None)]
        await pilot.press("D")
        await until(pilot, lambda: isinstance(app.screen, DeploymentsScreen), "the list")


async def test_a_folder_is_written_from_the_form_and_replaced_after_a_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, asked = FakeEngine(), list[Any]()

    def write(run: Path, options: Any, folder: Any, *_: Any) -> Any:
        asked.append((run, options.name, options.port, folder.to, folder.target, folder.image, folder.replace))
        raise DeployError("the folder cannot be written")

    monkeypatch.setattr(deploy_to_folder, "check_folder_deploy", lambda *_: None)
    monkeypatch.setattr(deploy_to_folder, "deploy_to_folder", write)
    monkeypatch.setenv("HOME", str(tmp_path))
    service = tmp_path / "service"
    service.mkdir()
    (service / "README.md").touch()
    app = BareApp()
    async with app.run_test(size=(120, 40)) as pilot:
        await begun(pilot)
        app.open_screen(Screens.DEPLOY, engine.directory)
        await until(pilot, lambda: isinstance(app.screen, DeployScreen), "the form")
        await shows(pilot, "gRPC port")
        app.screen.query_one("#target", Picker).value = "kubernetes"
        await shows(pilot, "give a folder")
        await hides(pilot, "gRPC port")
        app.screen.query_one("#to", Input).value = "~/service"
        app.screen.query_one("#image", Input).value = "digits:1"
        await pilot.press("ctrl+s")
        await shows(pilot, "Replace service?")
        await pilot.press("r")
        await shows(pilot, "the folder cannot be written")
    assert asked == [(engine.directory, "", None, "~/service", "kubernetes", "digits:1", True)]


def test_a_folder_is_not_written_once_the_user_has_ended_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, path = Job(lambda: None), tmp_path / "service"

    def prove(*_: Any) -> None:
        job.cancel()

    monkeypatch.setattr(deploy_to_folder, "_exported", lambda *_: (SimpleNamespace(notes=()), None))
    for name in ("check_folder_deploy", "read_service", "_evaluated"):
        monkeypatch.setattr(deploy_to_folder, name, lambda *_: None)
    monkeypatch.setattr(deploy_to_folder, "read_facts", lambda *_: facts_of(service_of()))
    monkeypatch.setattr(deploy_to_folder, "write_server_folder", prove)
    monkeypatch.setattr(deploy_to_folder, "model_card", lambda _: "card")
    with pytest.raises(AccelError, match="ended before the folder was written"):
        DeployScreen(tmp_path).run(job, (DeployOptions(), FolderOptions(to=str(path))))
    assert list(tmp_path.iterdir()) == []


async def test_another_model_takes_over_a_deployment(digits: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, asked = FakeEngine(), list[Any]()

    class Deploys:
        def __init__(self, *_: Any) -> None: ...

        def update(self, name: str, run: Path, options: Any) -> Deployed:
            asked.append((name, run, options.format))
            raise DeployError("the other model cannot be served")

    monkeypatch.setattr(deploy_screen, "Deployer", Deploys)
    monkeypatch.setattr(deploy_screen, "check_deploy", lambda *_: None)
    monkeypatch.setattr(deploy_screen, "find_run", lambda _: engine.directory)
    monkeypatch.setattr(deploy_screen, "_trained_runs", lambda: {"m8w3": "validation_accuracy 0.98"})
    app = BareApp()
    async with app.run_test(size=(120, 40)) as pilot:
        await begun(pilot)
        app.open_screen(Screens.DEPLOYMENTS)
        await shows(pilot, "412")
        await pilot.press("U")
        await shows(pilot, "Update digits", "m8w3")
        await pilot.press("ctrl+s")
        await shows(pilot, "the other model cannot be served")
    assert asked == [("digits", engine.directory, "auto")]
