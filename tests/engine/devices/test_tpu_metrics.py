"""The client of the TPU runtime's metric service, against a real gRPC server that answers, refuses and stalls."""

import builtins
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from accel_engine.devices import tpu_metrics
from accel_engine.devices.tpu_metrics import (
    DUTY_CYCLE,
    MEMORY_TOTAL,
    MEMORY_USED,
    METRICS,
    RuntimeMetrics,
    decode_metric_response,
)
from accel_engine.protobuf import MalformedError, Message, text_field
from tpu_runtime.stand_in import GIB, Runtime, kept, response


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    runtime = Runtime(duty=[87.5, 0.0], used=[9 * GIB, 0], total=[16 * GIB, 16 * GIB])
    yield runtime
    runtime.stop()


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., RuntimeMetrics]]:
    """Make a client of these ports, patient enough for a busy machine."""
    monkeypatch.setattr(tpu_metrics, "READ_TIMEOUT", 30.0)
    made: list[RuntimeMetrics] = []

    def make(*ports: object, **named: Any) -> RuntimeMetrics:
        made.append(RuntimeMetrics(",".join(map(str, ports)), **named))
        made[-1].open()
        return made[-1]

    yield make
    for client in made:
        client.close()


Ask = Callable[..., RuntimeMetrics]


def test_every_metric_is_read(ask: Ask, runtime: Runtime) -> None:
    answers = ask(runtime.port).read()
    assert answers[DUTY_CYCLE].values == (87.5, 0.0)
    assert answers[MEMORY_USED].values == (9 * GIB, 0)
    assert answers[MEMORY_TOTAL].values == (16 * GIB, 16 * GIB)


def test_values_come_in_the_order_of_the_runtimes_ids(ask: Ask, runtime: Runtime) -> None:
    runtime.values[MEMORY_USED] = {7: 3, 4: 0, 6: 2, 5: 1}
    assert ask(runtime.port).read()[MEMORY_USED].values == (0, 1, 2, 3)


def test_how_much_memory_there_is_is_asked_seldom(ask: Ask, runtime: Runtime) -> None:
    now = 100.0
    client = ask(runtime.port, clock=lambda: now)
    client.read()
    runtime.values[MEMORY_TOTAL] = {0: 7}
    now += 29
    assert client.read()[MEMORY_TOTAL].values == (16 * GIB, 16 * GIB)
    now += 1
    assert client.read()[MEMORY_TOTAL].values == (7,)


def test_a_proxy_is_not_asked(ask: Ask, runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://localhost:1")
    assert ask(runtime.port).read()[DUTY_CYCLE].values


def test_where_nothing_listens_it_says_so_and_a_program_that_comes_is_read(
    ask: Ask, runtime: Runtime, wait_until: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tpu_metrics, "_RECONNECT", 100)
    port = runtime.port
    with kept(port):
        runtime.stop()
        client = ask(port)
        answers = client.read()
        assert {answer.served for answer in answers.values()} == {False}
        assert answers[DUTY_CYCLE].reason == f"no program serves TPU metrics at localhost:{port}"
        again = Runtime(duty=[50], port=port)
    wait_until(lambda: client.read()[DUTY_CYCLE].values == (50,), "the program that came")
    again.stop()


def test_before_a_program_runs_there_are_no_values(ask: Ask, runtime: Runtime) -> None:
    runtime.values = {name: {} for name in METRICS}
    answer = ask(runtime.port).read()[MEMORY_USED]
    assert not answer.values
    assert "before a program runs" in answer.reason


def test_a_metric_that_the_runtime_does_not_know_costs_only_itself(ask: Ask, runtime: Runtime) -> None:
    del runtime.values[DUTY_CYCLE]
    answers = ask(runtime.port).read()
    assert answers[DUTY_CYCLE].reason == f"the TPU runtime does not support {DUTY_CYCLE}"
    assert answers[MEMORY_USED].values == (9 * GIB, 0)


def test_a_refusal_is_told_as_it_was_said(ask: Ask, runtime: Runtime) -> None:
    runtime.instead = grpc.StatusCode.PERMISSION_DENIED
    answer = ask(runtime.port).read()[DUTY_CYCLE]
    assert answer.reason == f"error of the TPU runtime at localhost:{runtime.port}: PERMISSION_DENIED: as it was told"


def test_another_grpc_service_is_no_runtime(ask: Ask, runtime: Runtime) -> None:
    runtime.instead = grpc.StatusCode.UNIMPLEMENTED
    answer = ask(runtime.port).read()[DUTY_CYCLE]
    assert answer.served
    assert f"another service listens at localhost:{runtime.port}; set TPU_RUNTIME_METRICS_PORTS" in answer.reason


def test_a_server_that_does_not_speak_grpc_is_no_runtime(ask: Ask) -> None:
    with socket.create_server(("localhost", 0)) as listener:
        port = listener.getsockname()[1]

        def answer_one() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                while connection.recv(1000):  # closed with something unread, it would be reset
                    pass

        server = threading.Thread(target=answer_one)
        server.start()
        answer = ask(port).read()[DUTY_CYCLE]
        server.join()
    assert answer.reason.startswith(f"another service listens at localhost:{port}")


@pytest.mark.parametrize(
    ("garbage", "reason"),
    [
        (b"<html>", "unknown type"),
        (b"\xff", "does not end"),
        (b"\xff" * 30, "does not end"),
        (b"\x0a\x7f", "middle of a field"),
        (b"\x02\x00", "no number"),
        (b"\x0a\x02\x1a\x00", "without a device"),
        (response(DUTY_CYCLE, {0: float("nan")}), "invalid value nan"),
        (response(MEMORY_USED, {0: -1}), "invalid value -1"),
    ],
)
def test_garbage_is_no_reading(ask: Ask, runtime: Runtime, garbage: bytes, reason: str) -> None:
    runtime.instead = garbage
    answer = ask(runtime.port).read()[DUTY_CYCLE]
    assert answer.values == ()
    assert answer.reason.startswith(f"cannot read the response of localhost:{runtime.port}: ")
    assert reason in answer.reason


def test_a_runtime_that_stalls_is_left_alone_ever_longer_and_read_again(
    ask: Ask, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    client = ask(runtime.port, clock=lambda: now)
    assert client.read()[DUTY_CYCLE].values
    monkeypatch.setattr(tpu_metrics, "READ_TIMEOUT", 0.05)
    runtime.stall()
    asked = runtime.questions
    for pause in (1, 2, 4, 8, 16, 32, 60, 60):
        for _ in range(3):
            answer = client.read()[DUTY_CYCLE]
            assert answer.reason == f"no response from the TPU runtime at localhost:{runtime.port}"
        now += pause - 0.5
        client.read()
        now += 0.5
    # A question may be called off before it gets there: no question is asked twice in a pause.
    assert runtime.questions <= asked + 8
    monkeypatch.setattr(tpu_metrics, "READ_TIMEOUT", 30.0)
    runtime.flow()
    assert client.read()[DUTY_CYCLE].values == (87.5, 0.0)


def test_a_program_at_each_port_is_read(ask: Ask, runtime: Runtime) -> None:
    other = Runtime(duty=[12.5, 99.0])
    client = ask(runtime.port, other.port)
    assert client.read()[DUTY_CYCLE].values == (87.5, 0.0, 12.5, 99.0)
    other.stop()
    assert client.read()[DUTY_CYCLE].values == (87.5, 0.0)


def test_a_port_that_stalls_does_not_keep_the_others_from_being_read(
    ask: Ask, runtime: Runtime, wait_until: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tpu_metrics, "READ_TIMEOUT", 0.3)
    stalled = Runtime()
    stalled.stall()
    client = ask(stalled.port, runtime.port)
    wait_until(lambda: client.read()[DUTY_CYCLE].values == (87.5, 0.0), "the other port's values")
    stalled.stop()


@pytest.mark.parametrize("ports", ["first", "8431,", "0", "70000", "8431;8432"])
def test_ports_that_are_none_are_named(ask: Ask, ports: str) -> None:
    answer = ask(ports).read()[DUTY_CYCLE]
    assert answer.reason == f"TPU_RUNTIME_METRICS_PORTS is {ports!r}; it must be ports such as 8431,8432"


def test_the_usual_port_is_asked_where_none_is_named() -> None:
    assert RuntimeMetrics(" ").addresses == "localhost:8431"


def test_without_grpcio_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def import_(name: str, *rest: Any) -> Any:
        if name == "grpc":
            raise ImportError(name)
        return found(name, *rest)

    monkeypatch.setattr(builtins, "__import__", import_)
    client = RuntimeMetrics()
    client.open()
    assert "pip install grpcio" in client.read()[DUTY_CYCLE].reason


READER = """
import sys
from accel_engine.devices.tpu_metrics import DUTY_CYCLE, RuntimeMetrics
client = RuntimeMetrics(sys.argv[1])
client.open()
while not client.read()[DUTY_CYCLE].values:
    pass
print("ready", flush=True)
while client.read()[DUTY_CYCLE].served:
    pass
sys.stdin.read()
client.close()
"""


def test_a_program_that_ends_while_it_is_asked_leaves_the_terminal_clean(
    runtime: Runtime, wait_until: Callable[..., None]
) -> None:
    command = [sys.executable, "-c", READER, str(runtime.port)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, **pipes, text=True) as reader:
        assert reader.stdout
        assert reader.stdout.readline() == "ready\n"
        runtime.stall()
        asked = runtime.questions
        wait_until(lambda: runtime.questions > asked, "a question under way")
        runtime.stop()
        assert reader.communicate(timeout=120) == ("", "")


def test_numbers_of_all_sizes_are_read() -> None:
    values = {0: 0, 1: 127, 2: 128, 3: 2**40 + 1, 4: 0.0, 5: 1e-300, 2**31: 2**62}
    assert decode_metric_response(response(MEMORY_USED, values)) == values


def test_what_is_unknown_or_of_another_type_is_as_if_it_were_not_set() -> None:
    message = Message(b"\x08\x05" + b"\x15\x00\x00\x80\x3f" + text_field(3, "text" * 50))
    assert (message.integer(1), message.double(1), message.integer(2), message.integer(3)) == (5, None, None, None)
    assert Message(b"\x08" + b"\xff" * 9 + b"\x01").integer(1) == -1


def test_every_beginning_of_an_answer_is_read_or_refused() -> None:
    whole = response(DUTY_CYCLE, {0: 1.5, 1: 99.0})
    for end in range(1, len(whole)):
        with pytest.raises(MalformedError):
            decode_metric_response(whole[:end])


def test_googles_own_client_reads_the_stand_in_alike(ask: Ask) -> None:
    """So that the stand-in speaks the runtime's protocol, not just ours; runs where ``tpu-info`` is installed."""
    device = pytest.importorskip("tpu_info.device")
    metrics = pytest.importorskip("tpu_info.metrics")
    runtime = Runtime(duty=[80, 20], used=[1, 2, 30, 40], total=[16 * GIB] * 4)
    usage = metrics.get_chip_usage(device.TpuChip.V3, f"localhost:{runtime.port}")
    ours = ask(runtime.port).read()
    assert tuple(each.memory_usage for each in usage) == ours[MEMORY_USED].values
    assert tuple(each.total_memory for each in usage) == ours[MEMORY_TOTAL].values
    assert tuple(each.duty_cycle_pct for each in usage[::2]) == ours[DUTY_CYCLE].values
    runtime.stop()
