"""Tests mirroring the runs of a host."""

import os
import shutil
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from accel_engine.advice.cures.apply_cure import apply
from accel_engine.devices import Reading, Sample
from accel_engine.errors import RunError, UsageError
from accel_engine.events import Outcome, RunEnded
from accel_engine.hosts import answers, link
from accel_engine.hosts.answers import commands
from accel_engine.hosts.connection import HostConnection
from accel_engine.hosts.host_list import Host
from accel_engine.hosts.host_requests import CommandsRequest, Done, Ping, SentCommand
from accel_engine.hosts.mirrored_runs import follow, forward, list_mirror, list_runs_of
from accel_engine.run import RunReader, RunWriter, Status, find_run, list_runs, send_command
from accel_engine.run.directory.lock import WriterLock
from accel_engine.run.directory.log_file import note_in_log
from accel_engine.run.engine.commands import read_answer, withdraw
from accel_engine.run.runs.listing import summarize
from accel_engine.run.runs.removal import count_contents, remove
from accel_engine.run.store.annotations import rename_run
from accel_engine.run.store.database import RunDatabase
from recorded_run import execute, put, started

TABLES = ("event", "chunk", "summary", "sample", "diagnostics", "media")


def rows(directory: Path) -> dict[str, list[object]]:
    """All rows of a run but its ``meta``, in any order of columns."""
    return {table: execute(directory, f"SELECT * FROM {table} ORDER BY 1, 2, 3") for table in TABLES}


def write_steps(writer: RunWriter, first: int, count: int) -> None:
    """Add a chunk."""
    values = np.arange(first, first + count, dtype=np.float32)
    writer.write_chunk(first, 1.0 + first, 1.0 + first + count, {"loss": values, "accuracy": -values})


def ended(steps: int) -> RunEnded:
    """The last event of a run."""
    return RunEnded(
        time=99.0, outcome=Outcome.FINISHED, steps=steps, epochs=1, seconds=1.0, steps_per_second=0.0, metrics={}
    )


def test_a_run_of_a_host_is_listed_and_read_as_if_it_were_here(far_writer: RunWriter) -> None:
    """Test the list, the names of its runs, and all tables of one that is read."""
    write_steps(far_writer, 0, 5000)
    far_writer.write_samples([Sample(5.0, "cpu:0", {"utilization": Reading(50.0, "%")})])
    note_in_log(far_writer.directory, "hello")
    list_runs_of("gpu1")
    name = far_writer.directory.name
    (listed,) = list_runs()
    assert (listed.id, listed.status, listed.steps) == (f"gpu1:{name}", Status.RUNNING, 5000)
    assert [find_run(each) for each in (f"gpu1:{name}", name, "gpu1:last", name[:4])] == [listed.directory] * 4
    with closing(RunReader(listed.directory)) as reader:
        assert reader.info().status is Status.RUNNING
        assert rows(listed.directory) == rows(far_writer.directory)
        assert (listed.directory / "log.txt").read_text() == "accel-tui: hello\n"


def test_what_happens_there_is_followed(far_writer: RunWriter, wait_until: Callable[..., None]) -> None:
    """Test steps, an earlier beginning, a new series and the end, all while the run is read."""
    list_runs_of("gpu1")
    mirror = find_run("gpu1:last")
    with closing(RunReader(mirror)) as reader:
        write_steps(far_writer, 0, 100)
        write_steps(far_writer, 100, 100)
        wait_until(lambda: rows(mirror)["chunk"] == rows(far_writer.directory)["chunk"])
        far_writer.begin(started(first_step=150))
        far_writer.write_chunk(150, 5.0, 6.0, {"loss": [1.0, 2.0], "rate": [3.0, 4.0]})
        wait_until(lambda: rows(mirror)["chunk"] == rows(far_writer.directory)["chunk"])
        far_writer.end(ended(152))
        wait_until(lambda: reader.info().status is Status.FINISHED)
        assert rows(mirror) == rows(far_writer.directory)


def test_a_link_that_breaks_goes_on_where_it_was(
    host: Host, far_writer: RunWriter, cut: Path, wait_until: Callable[..., None]
) -> None:
    """Test that nothing is lost while there is no connection, and nothing comes twice."""
    list_runs_of("gpu1")
    mirror = find_run("gpu1:last")
    write_steps(far_writer, 0, 10)
    with closing(RunReader(mirror)) as reader:
        assert len(reader.poll().chunks) == 1
        cut.touch()
        link.link_to("gpu1").close()
        write_steps(far_writer, 10, 10)
        wait_until(lambda: link.link_to("gpu1").problem is not None)
        assert "Network is unreachable" in str(link.link_to("gpu1").problem)
        assert not reader.poll()
        cut.unlink()
        wait_until(lambda: len(rows(mirror)["chunk"]) == 2, timeout=120)
        assert [chunk.first_step for chunk in reader.poll().chunks] == [10]


def test_commands_are_given_to_the_engine_once(far_writer: RunWriter, wait_until: Callable[..., None]) -> None:
    """Test a pause, the resumption of just this pause, and a command that is withdrawn."""
    list_runs_of("gpu1")
    mirror = find_run("gpu1:last")
    with closing(RunReader(mirror)):
        pause = send_command(mirror, "pause", 60.0)
        wait_until(lambda: len(far_writer.commands()) == 1)
        (there,) = far_writer.commands()
        assert (there.name, there.argument) == ("pause", 60.0)
        far_writer.answer(there, obeyed=True, answer="paused after step 3")
        wait_until(lambda: read_answer(mirror, pause) == (True, "paused after step 3"))
        send_command(mirror, "checkpoint")
        send_command(mirror, "resume", float(pause))
        wait_until(lambda: len(far_writer.commands()) == 2)
        checkpoint, resume = far_writer.commands()
        assert (resume.name, resume.argument) == ("resume", there.id)
        assert withdraw(mirror, 2)
        wait_until(lambda: far_writer.is_withdrawn(checkpoint))
    assert len(execute(far_writer.directory, "SELECT id FROM command")) == 3


def test_a_cure_is_applied_on_the_host(far_writer: RunWriter, wait_until: Callable[..., None]) -> None:
    """Test one by command, and one that a run cannot have."""
    list_runs_of("gpu1")
    mirror = find_run("gpu1:last")
    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(apply, mirror, {"learning_rate": 0.01}, finding="slow-descent")
        wait_until(lambda: done.done() or far_writer.commands(), timeout=120)
        (there,) = far_writer.commands()
        assert (there.name, there.argument, there.reason) == ("learning_rate", 0.01, "advice slow-descent")
        far_writer.answer(there, obeyed=True, answer="the rate is 0.01")
        assert done.result().text == f"run {mirror.name}: the rate is 0.01"
    with pytest.raises(RunError, match=r"gpu1: .*batch_size"):
        apply(mirror, {"batch_size": 7})


def test_the_last_command_of_a_run_has_its_answer(far_writer: RunWriter, wait_until: Callable[..., None]) -> None:
    """Test that a stop is answered before the run is seen to have ended."""
    list_runs_of("gpu1")
    mirror = find_run("gpu1:last")
    with closing(RunReader(mirror)) as reader:
        stop = send_command(mirror, "stop")
        wait_until(lambda: far_writer.commands())
        (there,) = far_writer.commands()
        far_writer.answer(there, obeyed=True, answer="stopped after step 3")
        far_writer.end(ended(0))
        wait_until(lambda: not reader.info().status.live)
        assert read_answer(mirror, stop) == (True, "stopped after step 3")
    late = CommandsRequest(mirror.name, (SentCommand(there.time, there.who, "stop"), SentCommand(9.0, "x", "pause")))
    answers = link.link_to("gpu1").ask(late).answers
    assert [(each.obeyed, each.answer) for each in answers] == [
        (True, "stopped after step 3"),
        (False, "the run has ended"),
    ]


def test_an_answer_that_comes_with_the_end_is_given(
    far_writer: RunWriter, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Test an answer and the end that are written while the host looks for the answer."""
    monkeypatch.setenv("ACCEL_TUI_HOME", str(there))
    send_command(far_writer.directory, "stop")
    (stop,) = waiting = far_writer.commands()
    read = RunDatabase.answer_to

    def look(database: RunDatabase, command: int) -> tuple[bool, str] | None:
        found = read(database, command)
        if waiting:
            far_writer.answer(waiting.pop(), obeyed=True, answer="stopped after step 3")
            far_writer.end(ended(0))
        return found

    monkeypatch.setattr(RunDatabase, "answer_to", look)
    sent = CommandsRequest(far_writer.directory.name, (SentCommand(stop.time, stop.who, "stop"),), seconds=60.0)
    (given,) = commands(sent, lambda _: None).answers
    assert (given.obeyed, given.answer) == (True, "stopped after step 3")


def test_names_are_changed_and_runs_deleted_there(far_writer: RunWriter) -> None:
    """Test a new name, a refused deletion, and a deletion."""
    list_runs_of("gpu1")
    mirror = find_run("gpu1:last")
    rename_run(mirror, "here and there")
    assert summarize(far_writer.directory).info.name == "here and there"  # type: ignore[union-attr]
    assert summarize(mirror).info.name == "here and there"  # type: ignore[union-attr]
    with pytest.raises(RunError, match=r"gpu1: .* is running: stop it before deleting it"):
        remove(mirror)
    far_writer.end(ended(0))
    assert count_contents(mirror).size > 0
    remove(mirror)
    assert not far_writer.directory.exists()
    assert list_runs() == []


def test_runs_that_are_gone_there_are_gone_here(
    host: Host, far_writer: RunWriter, wait_until: Callable[..., None]
) -> None:
    """Test a deletion there, noticed through the same connection and through a new one."""
    list_runs_of("gpu1")
    mirror = find_run("gpu1:last")
    far_writer.end(ended(0))
    link.link_to("gpu1").close()
    far_writer.directory.rename(far_writer.directory.with_name(".gone"))
    list_mirror("gpu1").poll_all()
    assert not mirror.exists()


def test_a_damaged_mirror_is_deleted_and_made_again(far_writer: RunWriter) -> None:
    list_runs_of("gpu1")
    (listed,) = list_runs()
    (listed.directory / "run.db").write_bytes(b"SQLite format 3\0" + bytes(4096))
    with pytest.raises(RunError, match=f"a copy of a run of gpu1: delete {listed.directory}, and it is copied again"):
        RunReader(listed.directory)
    shutil.rmtree(listed.directory)
    link.link_to("gpu1").close()
    list_runs_of("gpu1")
    assert [run.status for run in list_runs()] == [Status.RUNNING]


def test_all_of_many_runs_are_listed(host: Host, on_host: Callable[[], Path]) -> None:
    """Test runs whose list comes in several parts, through a first connection and a new one."""
    names = {f"gpu1:{on_host().name}" for _ in range(2 * answers._MOST_RUNS + 1)}
    for _ in range(2):
        list_runs_of("gpu1")
        assert {run.id for run in list_runs()} == names
        link.link_to("gpu1").close()


def test_a_host_that_is_not_reached_is_said(host: Host, far_writer: RunWriter, cut: Path) -> None:
    """Test that commands fail with the reason of ssh, and that nothing old is taken for new."""
    list_runs_of("gpu1")
    mirror = find_run("gpu1:last")
    link.link_to("gpu1").close()
    cut.touch()
    for deed in (lambda: list_runs_of("gpu1"), lambda: follow(mirror), lambda: forward(mirror)):
        with pytest.raises(RunError, match=r"gpu1: .*Network is unreachable"):
            deed()


def test_an_unknown_host_is_wrong_usage(host: Host) -> None:
    """Test a reference to a host that is not in the list."""
    with pytest.raises(UsageError, match=r"no host 'gpu2'; .*gpu1"):
        find_run("gpu2:last")


def test_a_status_that_nobody_knows_is_no_status(far_writer: RunWriter) -> None:
    """Test a mirror with what another version, or another program, may tell."""
    list_runs_of("gpu1")
    mirror = find_run("gpu1:last")
    put(mirror, host_state='{"status": "\\u001b[2Jdreaming"}')
    (listed,) = list_runs()
    assert "a status that this version does not know" in listed.problem
    assert "\x1b" not in listed.problem


def test_one_process_mirrors_a_run_and_others_wait_for_it(
    far_writer: RunWriter, wait_until: Callable[..., None]
) -> None:
    """Test a run that another process of this machine mirrors, which stops doing so."""
    list_runs_of("gpu1")
    mirror = find_run("gpu1:last")
    write_steps(far_writer, 0, 10)
    with WriterLock(mirror, "follow.lock"), closing(RunReader(mirror)) as reader:
        assert not reader.poll().chunks  # the other one has not copied them yet, and is not far behind
        assert not reader.link_problem
    with closing(RunReader(mirror)) as reader:
        wait_until(lambda: bool(reader.poll().chunks))


def test_ctrl_c_is_for_the_program_and_not_for_ssh(host: Host) -> None:
    """Test that a connection outlives the signal that a terminal sends to all of its programs."""
    connection = HostConnection(host, may_ask=True)
    os.kill(connection._process.pid, signal.SIGINT)
    assert connection.ask(Ping()) == Done()
    connection.close()
