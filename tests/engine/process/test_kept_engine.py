"""The process that answers several requests: what it answers, when it ends, and what gets a process of its own."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from accel_engine.errors import RunError
from accel_engine.plan import Plan
from accel_engine.process import engine_call as asking
from accel_engine.process.engine_call import EngineCall, KeptEngine, ask, keeping, warm_kept_engine
from accel_engine.requests.describe_data import DataRequest
from accel_engine.requests.protocol.request import ON_THE_CPU, EngineRequest

_STAND_IN = """
import json, sys
for line in sys.stdin:
    fields = json.loads(line)["fields"]
    if fields["word"] == "wait":
        sys.stdin.read()
    def send(kind, **fields):
        print(json.dumps({"kind": kind, "fields": fields, "number": 0}), flush=True)
    send("Doing", what="opening the model")
    if "--requests" in sys.argv:
        send("KeptState", is_usable=fields["word"] != "user")
    if fields["word"] == "problem":
        send("Problem", text="there is none", out_of_memory=False)
    else:
        send("Answer", word=fields["word"])
"""


@dataclass(frozen=True, slots=True)
class Answer:
    word: str


@dataclass(frozen=True, slots=True)
class Question(EngineRequest[Answer]):
    function: ClassVar = "nowhere:nothing"
    result: ClassVar = Answer

    word: str = "hello"


@dataclass(frozen=True, slots=True)
class GpuQuestion(Question):
    environment = {"CUDA_VISIBLE_DEVICES": "0"}  # type: ignore[assignment]  # noqa: RUF012


@dataclass(frozen=True, slots=True)
class Measurement(Question):
    is_batch: ClassVar = False


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list["subprocess.Popen[str]"]:
    """The processes that are started, for which a script stands in."""
    found = []

    def spawn(*arguments: str, stderr: Any, environment: Any, **_: Any) -> "subprocess.Popen[str]":
        assert "--requests" not in arguments or environment == ON_THE_CPU
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": stderr}
        found.append(subprocess.Popen([sys.executable, "-c", _STAND_IN, *arguments], text=True, **pipes))
        return found[-1]

    monkeypatch.setattr(asking, "spawn", spawn)
    monkeypatch.setattr(asking, "request_name", lambda _: "stand_in")
    return found


@pytest.fixture
def kept() -> Iterator[KeptEngine]:
    engine = KeptEngine()
    with keeping(engine):
        yield engine


def pid_of(request: EngineRequest[Any]) -> int:
    with EngineCall(request) as call:
        assert call.result() == Answer("hello")
        return call.connection.process.pid


def test_one_process_answers_until_it_is_no_longer_wanted(
    started: list[Any], kept: KeptEngine, wait_until: Callable[..., None]
) -> None:
    doing: list[str] = []
    warm_kept_engine()
    pids = {pid_of(Question()), pid_of(Question())}
    with pytest.raises(RunError, match="there is none"):
        ask(Question("problem"))
    with EngineCall(Question()) as call:
        call.result(on_doing=doing.append)
        pids.add(call.connection.process.pid)
    call.cancel()  # of a screen that is closed later: the process waits for others
    assert pids == {pid_of(Question())} == {started[0].pid}
    assert doing == ["opening the model"]
    kept.close()
    assert started[0].wait(5)
    assert len(started) == 1
    assert pid_of(Question()) != started[0].pid  # nothing is kept any more


def test_a_cancelled_request_ends_its_process_and_another_one_gets_ready(started: list[Any], kept: KeptEngine) -> None:
    with EngineCall(Question("wait")) as call:
        call.cancel()
        with pytest.raises(RunError, match="the engine exited"):
            call.result()
    assert started[0].returncode
    assert started[1].poll() is None
    assert pid_of(Question()) == started[1].pid


def test_a_process_in_which_code_of_the_user_has_run_is_not_used_again(started: list[Any], kept: KeptEngine) -> None:
    assert ask(Question("user")) == Answer("user")
    assert started[0].returncode is not None
    assert pid_of(Question()) == started[1].pid


def test_other_devices_and_a_second_request_at_once_have_a_process_of_their_own(
    started: list[Any], kept: KeptEngine
) -> None:
    with EngineCall(Question()) as call:
        first = call.connection.process.pid
        assert len({first, pid_of(Question()), pid_of(GpuQuestion())}) == 3
        call.result()
    assert pid_of(Question()) not in {each.pid for each in started if each.returncode is not None}


def test_what_is_measured_takes_a_process_that_has_answered_nothing(started: list[Any], kept: KeptEngine) -> None:
    assert pid_of(Measurement()) == started[0].pid
    assert pid_of(Question()) == started[-1].pid
    assert pid_of(Measurement()) == started[-1].pid != pid_of(Question())


def test_an_idle_process_ends_and_one_that_was_killed_is_replaced(started: list[Any]) -> None:
    with keeping(KeptEngine(idle_seconds=0.01)) as _:
        warm_kept_engine()
        assert started[0].wait(5)
    with keeping(KeptEngine()):
        warm_kept_engine()
        started[1].kill()
        started[1].wait()
        assert pid_of(Question()) == started[2].pid


def test_a_program_without_tensorflow_keeps_none(started: list[Any], kept: KeptEngine, monkeypatch: Any) -> None:
    monkeypatch.setattr(asking, "find_installation", lambda: type("Missing", (), {"problem": "none"}))
    warm_kept_engine()
    assert not started


def test_a_real_process_describes_data_twice_and_notices_code_of_the_user(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", x=np.ones((40, 3), np.float32), y=np.arange(40) % 2)
    (tmp_path / "own.py").write_text(
        "import numpy\ndef load():\n    return numpy.ones((9, 2), 'f4'), numpy.arange(9.)\n"
    )
    requests = [DataRequest(Plan(data=data)) for data in (str(tmp_path / "mine.npz"), f"{tmp_path}/own.py:load")]
    pids, doing = [], list[str]()
    with keeping(KeptEngine()):
        for request in (requests[0], requests[0], requests[1], requests[0]):
            with EngineCall(request) as call:
                if len(pids) == 3:
                    pids.append(call.connection.process.pid)
                    break  # a new one, which nobody waits for
                call.result(on_doing=doing.append)
                pids.append(call.connection.process.pid)
    assert pids[0] == pids[1] == pids[2] != pids[3]
    assert doing == ["importing TensorFlow"]
