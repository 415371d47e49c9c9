"""What holds for each request: its types pass the pipe, and whatever its engine does ends in a result or an error."""

import ast
import importlib.util
import inspect
import io
import json
import math
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from accel_engine.engine_main import request_server
from accel_engine.engine_main.request_server import answer
from accel_engine.errors import AccelError, RunError, UsageError
from accel_engine.process import engine_call
from accel_engine.process.engine_call import EngineCall
from accel_engine.requests.protocol.channel import Channel, ProtocolError
from accel_engine.requests.protocol.request import (
    ComputeDevice,
    DeviceRequest,
    EngineRequest,
    FolderRequest,
    Problem,
    find_request,
    request_name,
    request_names,
)
from accel_engine.requests.revalidate import Revalidation, RevalidationRequest

from .samples import sample

_STAND_IN = """
import json, sys
request = json.loads(sys.stdin.readline())
for line in {lines!r}:
    print(line, flush=True)
sys.stdin.read() if {waits} else print("the last line", file=sys.stderr)
"""


def line_of(message: Any, folder: Path | None = None) -> str:
    sink = io.StringIO()
    channel = Channel(io.StringIO(), sink)
    channel.folder = folder
    channel.send(message)
    return sink.getvalue().strip()


def passed(message: Any, folder: Path) -> Any:
    """What comes out of a channel."""
    channel = Channel(io.StringIO(line_of(message, folder) + "\n"), io.StringIO())
    channel.folder = folder
    received = channel.receive(type(message))
    assert received is not None
    return received[0]


class Tensorflow:
    """Is imported already."""

    imported = True

    def wait(self) -> None: ...


@pytest.mark.parametrize("kind", [find_request(name) for name in request_names()], ids=request_names())
class TestRequest:
    """Run by each request that is registered."""

    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch, kind: type[EngineRequest[Any]], tmp_path: Path) -> Any:
        """Asks an engine that writes some lines, for which a script stands in."""

        def begin(*lines: str, waits: bool = False) -> EngineCall[Any]:
            def spawn(*options: str, stderr: Any, **_: Any) -> "subprocess.Popen[str]":
                assert options == ("--request", request_name(kind))
                command = [sys.executable, "-c", _STAND_IN.format(lines=lines, waits=waits)]
                pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
                return subprocess.Popen(command, text=True, stderr=stderr, **pipes)

            monkeypatch.setattr(engine_call, "spawn", spawn)
            monkeypatch.setattr(kind, "check", lambda _: None)
            request = sample(kind)
            if issubclass(kind, FolderRequest):
                object.__setattr__(request, "folder", tmp_path)
            return EngineCall(request)

        return begin

    def test_its_types_have_names_of_their_own(self, kind: type[EngineRequest[Any]]) -> None:
        sent = [*kind.parts, *({kind.result, Problem})]
        assert len({each.__name__ for each in sent}) == len(sent)
        taken = [kind, *kind.asks]
        assert len({each.__name__ for each in taken}) == len(taken)

    def test_its_types_pass_the_pipe(self, kind: type[EngineRequest[Any]], tmp_path: Path) -> None:
        for each in (kind, kind.result, *kind.parts, *kind.asks):
            message = sample(each)
            found = passed(message, tmp_path)
            assert type(found) is each
            assert repr(found) == repr(message)  # NaN is not equal to itself

    def test_its_function_is_there(self, kind: type[EngineRequest[Any]]) -> None:
        module, _, name = kind.function.partition(":")
        found = importlib.util.find_spec(module)
        assert found is not None
        assert found.origin is not None
        tree = ast.parse(Path(found.origin).read_text())
        (function,) = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == name]
        assert len(function.args.args) == (4 if kind.asks else 2)

    def test_an_error_of_its_function_is_a_problem(
        self, kind: type[EngineRequest[Any]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def failing(error: BaseException) -> Callable[..., Any]:
            def fail(*_: Any) -> Any:
                raise error

            return lambda _: fail

        request = sample(kind)
        if isinstance(request, DeviceRequest):
            request = replace(request, device=ComputeDevice())
        for error, text in ((AccelError("no data"), "no data"), (ValueError("oh no"), "ValueError: oh no")):
            monkeypatch.setattr(request_server, "request_function", failing(error))
            assert answer(request, print, Tensorflow()) == Problem(text)  # type: ignore[arg-type]
        assert "Traceback" in capsys.readouterr().err  # of the unexpected one, in the log

    def test_flags_that_would_end_tensorflow_are_told_before_it_starts(
        self, kind: type[EngineRequest[Any]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail() -> None:
            raise UsageError("TensorFlow would end the process: Unknown flag in XLA_FLAGS: --xla_a")

        monkeypatch.setattr(request_server, "refuse_xla_flags", fail)
        monkeypatch.setattr(Tensorflow, "wait", lambda _: pytest.fail("TensorFlow is started"))
        monkeypatch.setattr(request_server, "request_function", lambda _: lambda *_: "answered")
        told = Problem("TensorFlow would end the process: Unknown flag in XLA_FLAGS: --xla_a")
        assert answer(sample(kind), print, Tensorflow()) == (told if kind.needs_tensorflow else "answered")  # type: ignore[arg-type]

    def test_parts_come_before_the_result(self, kind: type[EngineRequest[Any]], asked: Any, tmp_path: Path) -> None:
        if kind.asks:
            return  # a conversation has no result
        lines = [line_of(sample(each), tmp_path) for each in kind.parts]
        parts: list[Any] = []
        with asked(*lines) as question:
            assert not parts
            with pytest.raises(RunError, match="the engine exited: the last line"):
                question.result(parts.append)
        assert [type(each) for each in parts if type(each) in kind.parts] == list(kind.parts)

    def test_a_problem_is_raised(self, asked: Any) -> None:
        line = line_of(Problem("there is no model"))
        with asked(line) as question, pytest.raises(RunError, match=r"^there is no model$"):
            question.result()

    def test_garbage_is_an_error(self, asked: Any) -> None:
        with asked("Hello") as question, pytest.raises(RunError, match="this version does not understand"):
            question.result()

    def test_it_is_cancelled_from_any_thread_and_leaves_nothing(self, asked: Any, tmp_path: Path) -> None:
        with asked(waits=True) as question:
            threading.Timer(0.05, question.cancel).start()
            with pytest.raises(RunError, match="the engine exited unexpectedly"):
                question.result()
        assert question.connection.process.returncode == -9
        assert not any(tmp_path.iterdir())


def test_the_result_tells_the_device_that_computed_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gpu = ComputeDevice("gpu:1", "NVIDIA H200", {"CUDA_VISIBLE_DEVICES": "GPU-2"})
    asked: list[ComputeDevice] = []

    def revalidate(request: RevalidationRequest, _: object) -> Revalidation:
        asked.append(request.device)
        return Revalidation(7, ())

    def device_of(device: ComputeDevice) -> Any:
        result = answer(RevalidationRequest(tmp_path, device=device), print, Tensorflow())  # type: ignore[arg-type]
        return getattr(result, "device", result)

    monkeypatch.setattr(request_server, "request_function", lambda _: revalidate)
    assert device_of(ComputeDevice()) == ComputeDevice()
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda _: [])
    replaced = device_of(gpu)  # TensorFlow cannot use it
    assert replaced.text == "on the CPU (TensorFlow cannot use gpu:1: see accel-tui doctor)"
    assert device_of(replace(gpu, is_required=True)) == Problem("TensorFlow cannot use gpu:1: see accel-tui doctor")
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda _: ["GPU:0"])
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda _: [])
    monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda _: {"device_name": "Orin"})
    rounds = tf.config.experimental.tensor_float_32_execution_enabled()
    try:
        assert device_of(gpu) == gpu
        assert device_of(replace(gpu, name="")).text == "on gpu:1 (Orin)"
        assert not tf.config.experimental.tensor_float_32_execution_enabled()
    finally:
        tf.config.experimental.enable_tensor_float_32_execution(rounds)
    assert asked == [ComputeDevice(), replaced, gpu, replace(gpu, name="Orin")]


def test_a_gpu_whose_memory_runs_out_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fill(*_: object) -> None:
        raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor with shape[64]")

    monkeypatch.setattr(request_server, "request_function", lambda _: fill)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda _: ["GPU:0"])
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda _: [])
    request = RevalidationRequest(tmp_path, device=ComputeDevice("gpu:0", "NVIDIA H200"))
    answered = answer(request, print, Tensorflow())  # type: ignore[arg-type]
    assert answered == Problem("the memory of gpu:0 ran out: choose --device cpu")


def test_a_message_that_is_cut_off_is_the_end() -> None:
    line = line_of(Problem("no"))
    assert Channel(io.StringIO(line), io.StringIO()).receive(Problem) is None
    assert Channel(io.StringIO(), io.StringIO()).receive(Problem) is None


def test_what_no_message_can_have_is_an_error_of_the_program() -> None:
    with pytest.raises(TypeError, match="a message cannot have a object"):
        line_of(Problem(object()))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "line",
    [
        "Hello",
        "[]",
        "[" * 100_000,
        json.dumps({"kind": "Evaluated", "fields": {}, "number": 0}),
        json.dumps({"kind": "Problem", "fields": {"text": 7}, "number": 0}),
        json.dumps({"kind": "Problem", "fields": {"text": "no"}}),
        json.dumps({"kind": "Problem", "fields": {"text": "no"}, "number": math.inf}),
    ],
    ids=["no JSON", "no object", "nested", "another version", "another type", "no number", "infinite"],
)
def test_garbage_is_refused(line: str) -> None:
    with pytest.raises(ProtocolError):
        Channel(io.StringIO(f"{line}\n"), io.StringIO()).receive(Problem)


def test_requests_know_their_names() -> None:
    assert all(request_name(find_request(name)) == name for name in request_names())
    assert all(inspect.getdoc(find_request(name)) for name in request_names())
    with pytest.raises(AccelError, match="there is no request 'nosuch'; the requests are bench_models, "):
        find_request("nosuch")
