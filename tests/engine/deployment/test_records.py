"""Deployments on disk, their ports, and what their servers tell; without a server."""

import os
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from accel_engine.deployment import server_control, status
from accel_engine.deployment.deploy_options import DeployOptions
from accel_engine.deployment.deployments import (
    BESIDE,
    CURRENT,
    RECORD,
    SERVER,
    STATE,
    DeployedVersion,
    DeployError,
    Deployment,
    all_deployments,
    changing,
    default_name,
    find_deployment,
    read_deployment,
    remove_deployment,
    remove_other_folders,
    running_text,
    serve_version,
    server_process,
    write_deployment,
)
from accel_engine.deployment.server_metrics import ScrapedMetrics, figures_between, parse_metrics, quantile
from accel_engine.deployment.sizing import Sizing, batch_sizes_to, choose, other_batches, read_sizing, write_sizing
from accel_engine.deployment.status import SILENT, STOPPED, StatusReader
from accel_engine.errors import UsageError
from waiting import wait_until

FIRST = DeployedVersion(1, "k3fp-cnn", 69, "onnx", 1.0)


@pytest.fixture
def digits() -> Deployment:
    deployment = Deployment(name="digits", host="127.0.0.1", port=8501, versions=(FIRST,), current=1)
    with changing("digits"):
        deployment.folder(1).mkdir()
        serve_version(deployment, 1)
        write_deployment(deployment)
    return deployment


def test_what_is_written_is_read(digits: Deployment) -> None:
    assert find_deployment("digits") == read_deployment("digits") == digits
    assert all_deployments() == ([digits], [])
    assert (digits.directory / CURRENT).resolve() == digits.folder(1)
    assert running_text() == "0 running, 1 stopped"


def test_a_new_version_leaves_the_one_before_and_no_older_one(digits: Deployment) -> None:
    second = digits.with_version(replace(FIRST, number=digits.next_number))
    second.folder(2).mkdir()
    third = second.with_version(replace(FIRST, number=second.next_number))
    third.folder(3).mkdir()
    assert (third.current, third.previous, [each.number for each in third.versions]) == (3, 2, [2, 3])
    serve_version(third, 3)
    remove_other_folders(third)
    assert sorted(os.listdir(third.directory / "versions")) == ["2", "3"]
    assert (third.directory / CURRENT).resolve() == third.folder(3)


def test_an_unknown_name_is_told_with_the_nearest(digits: Deployment) -> None:
    with pytest.raises(UsageError, match="no deployment 'digit'; did you mean digits"):
        find_deployment("digit")
    with pytest.raises(UsageError, match="is not a name"):
        find_deployment("../digits")


def test_a_damaged_record_is_told_and_the_others_are_listed(digits: Deployment) -> None:
    with changing("other") as directory:
        (directory / RECORD).write_text("{")
    found, problems = all_deployments()
    assert found == [digits]
    assert len(problems) == 1
    assert "other" in problems[0]


def test_two_commands_do_not_change_a_deployment_at_once(digits: Deployment) -> None:
    with changing("digits"), pytest.raises(DeployError, match="another command changes"), changing("digits"):
        pass
    assert read_deployment("digits") == digits
    with changing("new") as directory:  # which has no record yet
        with pytest.raises(DeployError, match="another command changes"), changing("new"):
            pass
        assert directory.is_dir()


def test_what_was_not_deployed_leaves_nothing() -> None:
    with pytest.raises(ValueError, match="broken"), changing("new") as directory:
        raise ValueError("broken")
    assert not directory.exists()


def test_what_a_killed_command_has_left_is_ended(digits: Deployment) -> None:
    state = digits.directory / BESIDE
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", SERVER, "--state-file", str(state)])
    with changing("digits"):  # a command that lives keeps what it has
        state.write_text(f'{{"pid": {left.pid}, "host": "127.0.0.1", "port": 8501, "started": 1.0}}')
        serve_version(digits, 2)  # which its record does not have
        wait_until(lambda: server_process(digits.directory, BESIDE) is not None)
        StatusReader().read()
        assert left.poll() is None
    StatusReader().read()
    assert left.poll() is not None
    assert not state.exists()
    assert (digits.directory / CURRENT).resolve() == digits.folder(1)


def test_the_course_of_a_server_has_its_readings_and_gaps(digits: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["model_server_requests_total 10", "model_server_requests_total 30", None, None])
    times = iter([100.0, 102.0, 103.0])

    class Transport:
        def get(self, _: str) -> SimpleNamespace:
            text = next(answers)
            if text is None:
                raise UsageError("it does not answer")
            return SimpleNamespace(body=text.encode())

    monkeypatch.setattr(status, "server_process", lambda _: object())
    monkeypatch.setattr(status, "read_state", lambda _: None)
    monkeypatch.setattr(status, "transport_of", lambda *_: Transport())
    monkeypatch.setattr(status, "time", Mock(wraps=time, monotonic=lambda: next(times)))
    reader = StatusReader()
    assert reader.read_one(digits).course == ()
    assert [(at, figures and figures.rate) for at, figures in reader.read_one(digits).course] == [(102.0, 10.0)]
    silent = reader.read_one(digits)
    assert (silent.health, silent.course[-1]) == (SILENT, (103.0, None))
    monkeypatch.setattr(status, "server_process", lambda _: None)
    assert reader.read_one(digits).course == ()


def test_the_process_of_another_program_is_no_server(digits: Deployment) -> None:
    state = f'{{"pid": {os.getpid()}, "host": "127.0.0.1", "port": 8501, "started": 1.0}}'
    (digits.directory / STATE).write_text(state)
    assert server_process(digits.directory) is None
    (found,) = StatusReader().read()
    assert (found.health, found.since) == (STOPPED, None)
    remove_deployment(digits)
    assert not digits.directory.exists()


def test_a_port_in_use_is_told_with_who_uses_it(digits: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        port = used.getsockname()[1]
        with pytest.raises(UsageError, match=rf"port {port} of 127\.0\.0\.1 is in use: choose another with --port"):
            server_control.choose_port("127.0.0.1", port)
        write_deployment(replace(digits, port=port))
        with pytest.raises(UsageError, match="in use: choose another with --port"):  # digits is stopped
            server_control.choose_port("127.0.0.1", port)
        with pytest.raises(UsageError, match=r"in use: .* accel-tui deploy RUN --name digits --port N"):
            server_control.check_ports(read_deployment("digits"))
        monkeypatch.setattr(server_control, "server_process", lambda _: object())
        with pytest.raises(UsageError, match="in use by the deployment digits"):
            server_control.choose_port("127.0.0.1", port)
    assert server_control.choose_port("127.0.0.1", None) != port
    with pytest.raises(UsageError, match="not an address of this machine"):
        server_control.choose_port("192.0.2.1", 8501)


def test_the_default_port_is_none_of_grpc(digits: Deployment) -> None:
    first = server_control.choose_port("127.0.0.1", None)
    write_deployment(replace(digits, grpc_port=first))
    second = server_control.choose_port("127.0.0.1", None)
    assert second != first
    assert server_control.choose_port("127.0.0.1", None, besides=second) not in (first, second)


def test_a_deployment_keeps_its_port_unless_it_is_in_use(digits: Deployment) -> None:
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        before = replace(digits, port=used.getsockname()[1])
        write_deployment(before)
        used.listen()
        other = server_control.choose_port("127.0.0.1", None, before=before)
        assert other != before.port
    assert server_control.choose_port("127.0.0.1", None, before=before) == before.port
    assert server_control.choose_port("127.0.0.1", None, before=before, besides=before.port) != before.port
    write_deployment(replace(digits, port=other))
    assert server_control.choose_port("127.0.0.1", None) != other
    assert server_control.choose_port("127.0.0.1", None, before=replace(digits, port=other)) == other


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_control, "LIBRARIES", ("no_such_library",))
    with pytest.raises(DeployError, match=r"no_such_library missing: pip install 'accel-tui\[deploy\]'"):
        server_control.require_server()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"host": "0.0.0.0"}, "--token-file"),
        ({"tls_key": "key.pem"}, "--tls-certificate"),
        ({"target_rate": 500.0}, "--target-latency"),
        ({"port": 9000, "grpc_port": 9000}, "two ports"),
    ],
)
def test_options_that_contradict_each_other(options: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        DeployOptions(**options)  # type: ignore[arg-type]


METRICS = """
# HELP model_server_requests_total Requests for predictions.
model_server_requests_total{code="200",protocol="v2"} 90.0
model_server_requests_total{code="OK",protocol="grpc"} 6.0
model_server_requests_total{code="429",protocol="v2"} 4.0
model_server_request_seconds_bucket{le="0.001",protocol="v2"} 50.0
model_server_request_seconds_bucket{le="0.01",protocol="v2"} 99.0
model_server_request_seconds_bucket{le="+Inf",protocol="v2"} 100.0
model_server_batch_size_sum 100.0
model_server_batch_size_count 25.0
model_server_queue_examples 3.0
model_server_ready 1.0
model_server_backend_resident_bytes 1e+06
process_resident_memory_bytes 2e+06
nonsense
"""


def test_metrics_tell_rate_latencies_errors_and_memory() -> None:
    metrics = parse_metrics(METRICS)
    found = figures_between(ScrapedMetrics(), metrics, 10.0)
    assert (found.rate, found.requests, found.failed, found.errors) == (10.0, 100, 4, 4)
    assert (found.p50, found.batch, found.queue, found.memory) == (0.001, 4.0, 3, 3_000_000)
    assert found.p99 == pytest.approx(0.01)
    assert found.is_ready
    since = figures_between(metrics, metrics, 1.0)
    assert (since.rate, since.errors, since.p50, since.batch) == (0.0, 0, None, None)
    restarted = figures_between(metrics, parse_metrics(METRICS.replace("90.0", "9.0").replace("6.0", "0")), 1.0)
    assert restarted.requests == restarted.rate == 13


def test_a_quantile_beyond_the_last_bound_is_that_bound() -> None:
    buckets = {0.1: 0.0, 0.2: 10.0, float("inf"): 20.0}
    assert quantile(buckets, 0.25) == pytest.approx(0.15)
    assert quantile(buckets, 0.99) == 0.2
    assert quantile({}, 0.5) is None


def test_larger_batches_are_tried_where_they_fill() -> None:
    assert batch_sizes_to(8) == (1, 2, 4, 8)
    assert other_batches(Sizing(format="onnx", batch=1.1)) == (8,)
    assert other_batches(Sizing(format="onnx", batch=20.0)) == (8, 128)


def test_the_highest_rate_within_the_latency_is_chosen(digits: Deployment) -> None:
    slow = Sizing(format="savedmodel", rate=0.0, p99=0.5, target_latency=0.02)
    fast = Sizing(format="onnx", threads=2, rate=240.0, p99=0.018, target_latency=0.02, target_rate=500.0)
    assert choose([slow, fast], 0.02, {}) == fast
    assert fast.replicas == 3
    with pytest.raises(DeployError, match=r"within 20\.0 ms .* the fastest is savedmodel, with 500 ms"):
        choose([slow], 0.02, {"tflite": "missing"})
    with pytest.raises(DeployError, match="nothing could be measured: tflite: missing"):
        choose([], 0.02, {"tflite": "missing"})
    assert read_sizing(digits.folder(1)) is None
    write_sizing(digits.folder(1), fast)
    assert read_sizing(digits.folder(1)) == fast


def test_a_deployment_has_the_name_of_its_run_where_that_is_free(digits: Deployment) -> None:
    write_deployment(replace(digits, versions=(replace(FIRST, run="k3fp-digits"),)))
    names = ("k3fp-digits", "m8w3-digits", "m8w3-shop", "m8w3")
    assert [default_name(Path("runs", name)) for name in names] == ["digits", "m8w3-digits", "shop", "m8w3"]
