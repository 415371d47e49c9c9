"""The commands of deployments, as people type them; engines and servers are stand-ins."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from accel_engine.deployment import server_control, status
from accel_engine.deployment.deployments import DeployedVersion, Deployment, changing, serve_version, write_deployment
from accel_engine.requests.check_service import CheckServiceRequest, ServiceCheck, ServiceLoad
from accel_engine.requests.export_model import MeasuredModel
from accel_engine.service_client.find_service import find_service_of_run
from accel_engine.service_client.transport import Transport
from accel_tui.cli import deploy

VERSION = DeployedVersion(1, "k3fp-cnn", 69, "onnx", 1.0)
TRAINED = MeasuredModel("trained model", {"loss": 0.25, "accuracy": 0.9}, 0.0, 0.0, 40_000, 0.001)
SERVED = MeasuredModel("service", {"loss": 0.25, "accuracy": 0.9}, 2e-7, 1e-8, 0, 0.002, path="http://h")
CHECK = ServiceCheck(
    *("k3fp-cnn", 69, "test", 360, ("a note",), "v2 REST", "digits", "3", "onnx", "accel-tui 1", 1e-3, False),
    *(TRAINED, SERVED),
)


@pytest.fixture
def digits() -> Deployment:
    deployment = Deployment(name="digits", host="127.0.0.1", port=8501, versions=(VERSION,), current=1)
    with changing("digits"):
        deployment.folder(1).mkdir()
        serve_version(deployment, 1)
        (deployment.directory / "log.txt").write_text("listens\nhas ended\n")
        write_deployment(deployment)
    return deployment


def test_nothing_is_deployed_at_first(run_command) -> None:
    listed = run_command("deploy list")
    assert (listed.status, listed.out) == (0, "Nothing is deployed. Deploy a run: accel-tui deploy RUN\n")
    assert run_command("deploy list --json").out == ""


def test_a_stopped_deployment_is_listed_shown_and_removed(run_command, digits) -> None:
    header, row = run_command("deploy list").lines
    assert header.split() == [
        "NAME",
        "RUN",
        "VERSION",
        "HEALTH",
        "REQUESTS/S",
        "P50",
        "P99",
        "ERRORS",
        "MEMORY",
        "SINCE",
        "URL",
    ]
    assert row.split() == ["digits", "k3fp-cnn", "1", "stopped", "http://127.0.0.1:8501"]
    (line,) = run_command("deploy list --json").lines
    found = json.loads(line)
    assert (found["name"], found["health"], found["format"], found["rate"]) == ("digits", "stopped", "onnx", None)
    assert run_command("deploy logs digits").out == "listens\nhas ended\n"
    assert run_command("deploy stop digits").out == "digits: was not running\n"
    assert run_command("deploy stop digits --remove").out == "digits: removed\n"
    assert not digits.directory.exists()


def test_a_server_that_does_not_answer_is_listed_with_the_reason(run_command, digits, monkeypatch) -> None:
    monkeypatch.setattr(status, "server_process", lambda _: object())
    monkeypatch.setattr(status, "transport_of", lambda *_: Transport("http://127.0.0.1:9"))
    found = run_command("deploy list")
    assert "no answer" in found.out
    assert found.err == "accel-tui: digits: http://127.0.0.1:9 cannot be reached: Connection refused\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("deploy", "give the RUN to deploy, or a command such as list"),
        ("deploy stop digit", "no deployment 'digit'; did you mean digits?"),
        ("deploy logs ../x", "is not a name"),
        ("deploy update digits", "give the RUN that is to take over, or --back"),
        ("deploy update digits last --back", "give the RUN that is to take over, or --back"),
        ("deploy RUN --checkpoint 999", "must be auto, best, last"),
        ("deploy RUN --to folder --checkpoint 999", "must be auto, best, last"),
        ("deploy update digits RUN --checkpoint 999", "must be auto, best, last"),
        ("deploy update digits --back --format onnx", "leave out the other options"),
        ("deploy last --name 'a b'", "'a b' is not a name"),
        ("deploy last --port 0", "--port"),
        ("deploy last --format keras", "'keras'"),
        ("deploy last --host 0.0.0.0", "give --token-file FILE"),
        ("deploy last --target-rate 500", "--target-rate needs --target-latency"),
        ("deploy RUN --to folder --port 9000", "--port is for a server that is started here: leave out --to"),
        ("deploy RUN --token-file /nowhere/token", "cannot read the token in /nowhere/token: no such file"),
        ("deploy RUN --tls-key /nowhere/key --tls-certificate /nowhere/c", "for TLS: no such file"),
        ("deploy check foo:bar last", "'foo:bar' is not a URL of a service"),
        ("deploy check http://h last --protocol v3", "--protocol"),
    ],
)
def test_wrong_usage_is_told_before_anything_starts(run_command, digits, new_run, words, said) -> None:
    found = run_command(words.replace("RUN", new_run().directory.name) if "RUN" in words else words)
    assert found.status == 2
    assert said.lower() in found.err.lower()


def test_what_is_no_command_is_a_run(run_command) -> None:
    assert "no run" in run_command("deploy no-such-run").err
    assert "no run" in run_command("deploy --name x no-such-run").err


def test_without_the_libraries_nothing_is_exported(run_command, new_run, monkeypatch) -> None:
    new_run()
    monkeypatch.setattr(server_control, "LIBRARIES", ("no_such_library",))
    found = run_command("deploy last")
    assert found.status == 1
    assert "no_such_library missing: pip install 'accel-tui[deploy]'" in found.err


@pytest.fixture
def checked(monkeypatch, new_run) -> list[CheckServiceRequest]:
    """Answers checks as the last value of the list says; the run has a checkpoint."""
    asked: list[CheckServiceRequest] = []
    new_run()
    monkeypatch.setattr(deploy, "ask", lambda request: asked.append(request) or CHECKS[-1])
    monkeypatch.setattr(deploy, "find_service_of_run", lambda *_: None)
    monkeypatch.setattr(CheckServiceRequest, "check", lambda _: None)
    return asked


CHECKS = [CHECK]


def test_a_check_shows_the_service_beside_the_trained_model(run_command, checked, monkeypatch, tmp_path: Path) -> None:
    loads = (ServiceLoad(1, 400.0, 0.002, 0.004, 1000, True), ServiceLoad(16, 900.0, 0.012, 0.03, 2000, False))
    monkeypatch.setattr(f"{__name__}.CHECKS", [replace(CHECK, loads=loads)])
    token = tmp_path / "token"
    token.write_text("secret\n")
    found = run_command(f"deploy check http://h last --seconds 0.5 --token-file {token}")
    assert found.status == 0
    assert found.lines[:5] == [
        "digits, version 3, over v2 REST (accel-tui 1, onnx)",
        "compared with k3fp-cnn at step 69 on 360 test examples",
        "equal: the largest difference is 2e-07, and 0.001 is the tolerance",
        "1 connection: 400 requests/s, p50 2.00 ms, p99 4.00 ms",
        "16 connections: 900 requests/s, p50 12.0 ms, p99 30.0 ms, not stable yet",
    ]
    assert found.lines[-1].split() == ["service", "0.2500", "0.9000", "2e-7", "2.00", "ms"]
    assert "a note" in found.err
    assert (checked[0].url, checked[0].token, checked[0].options.seconds) == ("http://h", "secret", 0.5)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("http://127.0.0.1:1 last --protocol grpc", 2, "--protocol grpc does not go with http://"),
        ("http://127.0.0.1:1 last", 1, "http://127.0.0.1:1 cannot be reached: Connection refused"),
    ],
)
def test_a_service_that_cannot_be_asked_is_told_before_an_engine_starts(
    run_command, checked, monkeypatch, words, status, said
) -> None:
    monkeypatch.setattr(deploy, "find_service_of_run", find_service_of_run)
    found = run_command(f"deploy check {words}")
    assert (found.status, checked) == (status, [])
    assert said in found.err


def test_a_service_that_answers_otherwise_is_an_error(run_command, checked, monkeypatch) -> None:
    wrong = replace(CHECK, served=replace(SERVED, problem="the largest difference of the outputs, 0.25, is beyond"))
    monkeypatch.setattr(f"{__name__}.CHECKS", [wrong])
    assert run_command("deploy check http://h last").status == 1
    found = run_command("deploy check http://h last --json")
    assert found.status == 1
    values = json.loads(found.lines[0])
    assert (values["equal"], values["problem"][:11], values["metrics"]["accuracy"]) == (False, "the largest", 0.9)
