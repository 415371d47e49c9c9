"""A recorder in a script and the supervisor's server, over a real socket."""

import os
import socket
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine import clock
from accel_engine.errors import RunError
from accel_engine.events import (
    CommandAnswered,
    EpochEnded,
    Outcome,
    PartEnded,
    Phase,
    PhaseChanged,
    RunEnded,
    Warned,
)
from accel_engine.protobuf import bytes_field, integer_field, text_field
from accel_engine.recording import run_link, supervisor_address
from accel_engine.recording.error_guard import warn
from accel_engine.recording.recorder_messages import pack_message
from accel_engine.recording.run_link import RunLink
from accel_engine.run import RunReader, diagnostics, send_command
from accel_engine.run.engine.commands import Command, read_answer
from accel_engine.run.media import LoggedText
from accel_engine.scripts.recorder_server import RecorderServer, _Connection
from accel_engine.scripts.script_run import ScriptRun

from .conftest import Reports
from .test_script_run import all_of, read


def begun(**values: str) -> RunLink:
    return RunLink({"name": "", "model": "cnn", **values})


def ended(outcome: Outcome = Outcome.FINISHED) -> RunEnded:
    return RunEnded(time=clock.now(), outcome=outcome, steps=0, epochs=0, seconds=1.0, metrics={"loss": 1.0})


def losses(run: ScriptRun) -> list[float]:
    return [value for chunk in read(run)[0].chunks for value in chunk.series["loss"].tolist()]


def test_what_a_part_records_is_in_the_run_when_it_has_ended(run: ScriptRun, server: RecorderServer) -> None:
    part = begun()
    part.write_chunk(part.step, 1.0, 2.0, {"loss": np.array([3.0, 2.0]), "accuracy": [0.5, 0.6]})
    part.write_event(EpochEnded(time=2.0, epoch=1, step=2, metrics={"loss": 2.5}, seconds=1.0))
    part.write_media(2, 2.0, "sample", LoggedText("what it writes"))
    part.end(ended())
    second = begun()

    assert part.directory == run.directory
    assert (second.step, second.epochs) == (2, 1)
    assert losses(run) == [3.0, 2.0]
    (chunk,) = read(run)[0].chunks
    assert np.allclose(chunk.series["accuracy"], [0.5, 0.6])
    assert [event.epoch for event in all_of(run, EpochEnded)] == [1]
    run.flush()
    with closing(RunReader(run.directory)) as reader:
        (series,) = reader.media_list()
        assert reader.media(series, 2) == (2, LoggedText("what it writes"))
    second.close()


def test_a_trace_of_a_script_becomes_a_profile_of_its_run(run: ScriptRun, server: RecorderServer) -> None:
    event = bytes_field(4, integer_field(1, 1) + integer_field(2, 5) + integer_field(3, 2 * 10**9))
    named = bytes_field(4, integer_field(1, 1) + bytes_field(2, text_field(2, "net/dense/MatMul:MatMul")))
    folder = run.directory / "profiles/plugins/profile/1"
    folder.mkdir(parents=True)
    plane = text_field(2, "/host:CPU") + bytes_field(3, event) + named
    (folder / "host.xplane.pb").write_bytes(bytes_field(1, plane))
    command = Command(send_command(run.directory, "profile", 1.0), clock.now(), "ann@box", "profile", 1.0)
    outside = Command(send_command(run.directory, "profile", 1.0), clock.now(), "ann@box", "profile", 1.0)

    part = begun()
    part.profiled(command, "profiles/plugins/profile/1", 1.0, 20, [(Phase.VALIDATING, 10**18)], ["a note."])
    part.profiled(outside, "../elsewhere", 1.0, 0, [], [])
    part.end(ended())
    run.flush()

    profile = diagnostics.read(run.directory).operations
    assert profile is not None
    assert [(each.name, each.group, each.seconds) for each in profile.operations] == [
        ("net/dense/MatMul", "net/dense", 2e-3)
    ]
    assert (profile.steps, profile.notes, profile.trace) == (20, ("a note.",), "profiles/plugins/profile/1")
    assert read_answer(run.directory, command.id) == (True, "profiled 20 steps in 1.0 s")
    problem = "the trace ../elsewhere is not in the run's directory"
    assert read_answer(run.directory, outside.id) == (False, problem)
    assert f"not profiled: {problem}" in [each.message for each in all_of(run, Warned)]


def test_a_second_part_at_once_is_refused_and_one_after_it_is_not(server: RecorderServer) -> None:
    first = begun()
    with pytest.raises(RunError, match="is being recorded"):
        begun()
    first.end(ended())

    begun().close()


def test_a_supervisor_that_is_gone_is_an_error_of_the_recorder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor_address, "given_address", "/nowhere/run")

    with pytest.raises(RunError, match="the supervisor of the run does not answer"):
        begun()
    with pytest.warns(RuntimeWarning, match="the disk is too slow"):
        warn("the disk is too slow")


def test_a_supervisor_that_does_not_answer_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_link, "REPLY_SECONDS", 0.01)
    monkeypatch.setattr(run_link, "_silent", threading.Event())
    monkeypatch.setattr(supervisor_address, "given_address", str(tmp_path / "run"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stopped:
        stopped.bind(supervisor_address.given_address)
        stopped.listen()
        stopped.setblocking(False)
        with pytest.raises(RunError, match="does not answer: timed out"):
            begun()
        with pytest.raises(RunError, match="does not answer: it has not answered before"):
            begun()
        with pytest.warns(RuntimeWarning, match="not recorded"):
            warn("not recorded")

        stopped.accept()[0].close()
        with pytest.raises(BlockingIOError):
            stopped.accept()


def test_a_command_goes_to_the_part_and_its_answer_to_the_sender(
    run: ScriptRun, server: RecorderServer, wait_until: Callable[..., None]
) -> None:
    part = begun()
    number = send_command(run.directory, "pause")
    (command,) = run.commands()

    assert server.forward(command)
    assert server.forward(command)  # it is sent only once
    wait_until(part.commands, "the command")
    assert [each.name for each in part.commands()] == ["pause"]
    part.answer(command, obeyed=True, answer="paused")
    wait_until(lambda: read_answer(run.directory, number), "the answer")
    assert read_answer(run.directory, number) == (True, "paused")
    assert part.commands() == []
    part.end(ended())
    assert not server.forward(command)


def test_a_command_that_a_part_leaves_is_answered_and_does_not_reach_the_script(
    run: ScriptRun, server: RecorderServer
) -> None:
    part = begun()
    number = send_command(run.directory, "learning_rate", 0.1)
    assert server.forward(run.commands()[0])
    part.end(ended())

    run.flush()
    assert read_answer(run.directory, number) is not None
    assert run.commands() == []
    assert [event.obeyed for event in all_of(run, CommandAnswered)] == [False]


@pytest.mark.parametrize("reused", [False, True])
def test_a_script_that_closes_all_descriptors_is_recorded_on(
    run: ScriptRun, server: RecorderServer, tmp_path: object, reused: bool
) -> None:
    part = begun()
    part.write_chunk(0, 1.0, 2.0, {"loss": [3.0]})
    assert part._connection
    descriptor = part._connection.fileno()
    os.close(descriptor)
    own = os.open(f"{tmp_path}/own", os.O_RDWR | os.O_CREAT) if reused else None
    if own is not None:
        os.dup2(own, descriptor)
    part.commands()
    part.write_chunk(1, 2.0, 3.0, {"loss": [2.0]})
    part.end(ended())

    assert losses(run) == [3.0, 2.0]
    assert len(all_of(run, PartEnded)) == 1
    if own is not None:
        assert os.fstat(own).st_size == 0
        os.close(own)
        os.close(descriptor)


def test_what_a_broken_connection_did_not_take_is_sent_over_another(run: ScriptRun, server: RecorderServer) -> None:
    part = begun()
    assert part._connection
    part._connection.shutdown(socket.SHUT_RDWR)
    part.write_chunk(0, 1.0, 2.0, {"loss": [3.0]})
    part.end(ended())

    assert losses(run) == [3.0]


@pytest.mark.parametrize(("lowest", "high"), [(200, True), (1 << 30, False)])
def test_the_connection_has_a_high_descriptor_where_there_are_such(
    server: RecorderServer, monkeypatch: pytest.MonkeyPatch, lowest: int, high: bool
) -> None:
    monkeypatch.setattr(run_link, "LOWEST_DESCRIPTOR", lowest)
    part = begun()

    assert part._connection
    assert (part._connection.fileno() >= 200) is high
    assert not part._connection.get_inheritable()
    part.end(ended())


def test_problems_of_recorders_are_in_the_log_of_the_run(
    server: RecorderServer, reports: Reports, wait_until: Callable[..., None]
) -> None:
    warn("the disk is too slow")
    wait_until(lambda: reports, "the message")
    part = begun()
    part.write_event(Warned(time=1.0, message="a value was skipped"))
    part.end(ended())

    assert reports == ["the disk is too slow", "a value was skipped"]


def test_a_message_that_is_none_of_a_recorder_harms_no_other_connection(
    run: ScriptRun, server: RecorderServer, reports: Reports
) -> None:
    part = begun()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as garbage:
        garbage.connect(supervisor_address.given_address)
        garbage.sendall(b"\xff" * 64)
        assert garbage.recv(1) == b""  # closed
    assert reports == ["a recorder has sent what cannot be recorded: ValueError: not a message of a recorder"]
    part.write_event(PhaseChanged(time=1.0, phase=Phase.TRAINING))
    part.end(ended())

    assert [event.phase for event in all_of(run, PhaseChanged)] == [Phase.SCRIPT, Phase.TRAINING, Phase.SCRIPT]


def test_a_connection_is_closed_where_its_problem_cannot_be_reported() -> None:
    def fail(*_: object) -> Any:
        raise LookupError("a fault")

    script, supervisor = socket.socketpair()
    with script:
        script.sendall(pack_message({"report": "the disk is too slow"}))
        with pytest.raises(LookupError):
            _Connection(supervisor, fail, fail).serve()

        assert supervisor.fileno() == -1
