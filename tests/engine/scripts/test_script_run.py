"""The run of a script on disk."""

import shutil
import sqlite3
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from accel_engine import clock
from accel_engine.errors import RunError
from accel_engine.events import Event, Outcome, PartEnded, PartStarted, RunEnded, RunStarted, Warned
from accel_engine.run import RunReader, RunWriter, Status, Update
from accel_engine.scripts.script_run import ScriptRun
from full_disk import database_error

from .conftest import Reports


def read(run: ScriptRun) -> tuple[Update, Status]:
    run.flush()
    with closing(RunReader(run.directory)) as reader:
        return reader.poll(), reader.info().status


def all_of(run: ScriptRun, kind: type[Event]) -> list[Any]:
    return [event for event in read(run)[0].events if isinstance(event, kind)]


def part_ended(outcome: Outcome = Outcome.FINISHED, reason: str = "", **metrics: float) -> RunEnded:
    return RunEnded(time=clock.now(), outcome=outcome, steps=0, epochs=0, seconds=1.0, metrics=metrics, reason=reason)


def steps(run: ScriptRun, first: int, *losses: float) -> None:
    run.write_chunk(first, clock.now(), clock.now(), {"loss": np.array(losses)})


def test_parts_follow_one_another_and_the_run_has_the_results_of_the_last(run: ScriptRun) -> None:
    first = run.begin_part({"name": "", "model": "cnn", "strategy": "MirroredStrategy", "epochs": 2})
    steps(run, first.step, 3.0, 2.0)
    run.end_part(part_ended(loss=2.0))
    second = run.begin_part({"name": "fine-tuning", "model": "cnn"})
    steps(run, second.step, 1.0)
    run.end_part(part_ended(loss=1.0))
    run.end(Outcome.FINISHED, "")

    assert [(part.part, part.name, part.step) for part in all_of(run, PartStarted)] == [
        (1, "cnn", 0),
        (2, "fine-tuning", 2),
    ]
    assert [(part.step, part.metrics) for part in all_of(run, PartEnded)] == [(2, {"loss": 2.0}), (3, {"loss": 1.0})]
    (ended,) = all_of(run, RunEnded)
    assert (ended.steps, ended.metrics, ended.outcome) == (3, {"loss": 1.0}, Outcome.FINISHED)
    with closing(RunReader(run.directory)) as reader:
        values = reader.info().plan_values
    assert (values["name"], values["model"], values["strategy"]) == ("train.py", "cnn", "MirroredStrategy")


def test_two_parts_at_once_are_refused(run: ScriptRun) -> None:
    run.begin_part({"model": "cnn"})

    with pytest.raises(RunError, match=r"part 1 \(cnn\) is being recorded"):
        run.begin_part({"model": "other"})


def test_the_end_of_the_script_ends_its_part(run: ScriptRun) -> None:
    run.begin_part({"model": "cnn"})
    steps(run, 0, 3.0)
    run.end(Outcome.FAILED, "the script was killed by SIGKILL")

    assert [part.reason for part in all_of(run, PartEnded)] == ["the script was killed by SIGKILL"]
    assert read(run)[1] is Status.FAILED


def test_a_full_disk_loses_nothing_and_is_told_once(
    run: ScriptRun, reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries, write = iter(range(3)), RunWriter.write_chunk

    def full(*arguments: Any) -> None:
        if next(tries, None) is not None:
            raise database_error(sqlite3.SQLITE_FULL)
        write(*arguments)

    monkeypatch.setattr(RunWriter, "write_chunk", full)
    steps(run, 0, 3.0, 2.0)

    assert [chunk.series["loss"].tolist() for chunk in read(run)[0].chunks] == [[3.0, 2.0]]
    run.end(Outcome.FINISHED, "")
    assert reports == [
        "disk I/O error: waiting to write the run; the script continues",
        "the run can be written again",
    ]


def test_a_run_that_another_process_has_taken_is_left_alone(
    run: ScriptRun, reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(*_: Any) -> None:
        raise RunError("another process has taken over")

    monkeypatch.setattr(RunWriter, "heartbeat", taken)
    run.heartbeat()
    run.heartbeat()
    steps(run, 0, 3.0)

    assert reports == ["another process has taken over: nothing more is recorded; the script continues"]
    assert not read(run)[0].chunks


def test_a_warning_is_in_the_log_and_in_the_run(run: ScriptRun, reports: Reports) -> None:
    run.warn("oh no")

    assert reports == ["oh no"]
    assert [warned.message for warned in all_of(run, Warned)] == ["oh no"]
    assert len(all_of(run, RunStarted)) == 1


def test_the_recording_of_a_script_whose_run_is_deleted_ends(run: ScriptRun) -> None:
    steps(run, 0, 3.0)
    run.flush()
    shutil.rmtree(run.directory)

    run.heartbeat()

    steps(run, 1, 2.0)
    run.end(Outcome.FINISHED, "")
    assert not run.directory.exists()
