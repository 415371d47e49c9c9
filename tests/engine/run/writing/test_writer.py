import json
import math
import os
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from accel_engine.devices.device_types import Reading, Sample
from accel_engine.errors import DatabaseError, RunError
from accel_engine.events import EpochEnded, Outcome, RunEnded, RunStarted, Warned
from accel_engine.plan import Plan
from accel_engine.run import RunReader, RunWriter, Status, create, list_runs, runs_directory, send_command
from accel_engine.run.directory.run_paths import LOG
from accel_engine.run.engine.commands import Command, read_answer, withdraw
from accel_engine.run.reading.update import Update
from accel_engine.run.runs.creation import assign_process, create_recorded, reopen
from accel_engine.run.store.database import DATABASE, RunDatabase
from accel_engine.run.store.schema import MAX_SERIES, MAX_STEP
from recorded_run import execute, started


def test_new_run_is_its_owners_alone(directory: Path, writer: RunWriter) -> None:
    writer.write_event(Warned(time=1.0, message="so that the WAL exists"))
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(directory.parent.stat().st_mode) == 0o700
    files = list(directory.iterdir())
    assert DATABASE in {path.name for path in files}
    for path in files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_modes_hold_under_a_lax_umask(home: Path) -> None:
    before = os.umask(0)
    try:
        directory = create(Plan())
        recorded = create_recorded({"name": 40 * "x", "model": "", "data": ""}, "train.py")
    finally:
        os.umask(before)
    assert recorded.name[5:] == 32 * "x"
    assert stat.S_IMODE((recorded / LOG).stat().st_mode) == 0o600
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((directory / DATABASE).stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_id_says_what_is_trained_and_starts_with_a_letter() -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]{3}-cnn-digits", create(Plan()).name)
    assert re.fullmatch(r"[a-z][a-z0-9]{3}-first-try", create(Plan(name="First try!")).name)
    assert re.fullmatch(r"[a-z][a-z0-9]{3}", create(Plan(name="???")).name)


def test_no_id_looks_like_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.choice", lambda characters: characters[-1])
    assert create(Plan()).name[0].isalpha()


@pytest.mark.parametrize("launched", [False, True])
def test_the_log_of_a_recorded_run_says_where_the_output_is(launched: bool) -> None:
    directory = create_recorded({"name": "x", "model": "", "data": ""}, "train.py", launched=launched)
    where = "the script's output is in the terminal where it was started: train.py\n"
    assert (directory / LOG).read_text() == ("" if launched else where)


def test_a_log_that_cannot_be_written_is_an_error_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(RunError, match=r"cannot write the log of run .*: No space left on device"):
        create_recorded({"name": "x", "model": "", "data": ""}, "train.py")


def test_ids_differ_in_their_first_four_characters() -> None:
    directories = [create(Plan()) for _ in range(20)]
    assert len({path.name[:4] for path in directories}) == 20


def test_a_run_is_listed_only_once_it_is_complete(home: Path) -> None:
    done = threading.Event()
    problems: list[str] = []

    def list_again() -> None:
        while not done.is_set():
            problems.extend(run.problem for run in list_runs() if run.problem)

    watcher = threading.Thread(target=list_again)
    watcher.start()
    for _ in range(30):
        create(Plan())
    done.set()
    watcher.join()
    assert problems == []


def test_place_that_cannot_be_made_is_told_with_what_to_do(home: Path) -> None:
    home.write_text("a file where the directory should be")
    with pytest.raises(RunError, match=r"cannot create the run directory .* ACCEL_TUI_HOME") as caught:
        create(Plan())
    assert str(runs_directory()) in str(caught.value)


@pytest.mark.parametrize("missing", [os.W_OK, os.X_OK])
def test_place_that_cannot_be_written_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch, missing: int) -> None:
    # Modes would not stop a test that root runs.
    monkeypatch.setattr("os.access", lambda _, mode: not mode & missing)
    with pytest.raises(RunError, match=r"cannot write to the run directory .* ACCEL_TUI_HOME"):
        create(Plan())


def test_series_come_back_exactly_in_float32(writer: RunWriter, reader: RunReader) -> None:
    losses = [2.5, math.nan, math.inf, 1e-30]
    writer.write_chunk(0, 10.0, 11.0, {"loss": losses, "accuracy": [0.0, 0.25, 0.5, 1.0]})
    (chunk,) = reader.poll().chunks
    assert (chunk.first_step, chunk.count, chunk.started, chunk.ended) == (0, 4, 10.0, 11.0)
    assert list(chunk.series) == ["loss", "accuracy"]
    assert chunk.series["loss"].dtype == np.float32
    np.testing.assert_array_equal(chunk.series["loss"], np.asarray(losses, np.float32))


def test_series_may_come_up_later(writer: RunWriter, reader: RunReader) -> None:
    writer.write_chunk(0, 0.0, 1.0, {"loss": [1.0]})
    writer.write_chunk(1, 1.0, 2.0, {"loss": [2.0], "gradient_norm": [3.0]})
    first, second = reader.poll().chunks
    assert list(first.series) == ["loss"]
    assert second.series["gradient_norm"].tolist() == [3.0]


@pytest.mark.parametrize("name", ['x"; DROP TABLE main.chunk; --', "", "two words", "1st"])
def test_series_name_that_is_no_name_is_refused(writer: RunWriter, name: str) -> None:
    with pytest.raises(ValueError, match="is not a valid series name"):
        writer.write_chunk(0, 0.0, 1.0, {"loss": [1.0], name: [1.0]})


@pytest.mark.parametrize(
    ("step", "left"),
    [
        (0, []),
        (2, [0, 1]),
        (4, [0, 1, 2, 3]),
        (5, [0, 1, 2, 3, 4]),
        (8, [0, 1, 2, 3, 4, 5, 6, 7]),
        (99, [0, 1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_rewinding_forgets_later_steps_even_within_a_chunk(
    directory: Path, writer: RunWriter, step: int, left: list[int]
) -> None:
    writer.write_chunk(0, 0.0, 1.0, {"loss": [0, 1, 2, 3]})
    writer.write_chunk(4, 1.0, 2.0, {"loss": [4, 5, 6, 7], "accuracy": [4, 5, 6, 7]})
    writer.rewind(step)
    with closing(RunReader(directory)) as reader:
        chunks = reader.poll().chunks
    assert [value for chunk in chunks for value in chunk.series["loss"].tolist()] == left
    for chunk in chunks:
        assert all(len(values) == chunk.count for values in chunk.series.values())
        assert chunk.count > 0


def test_rewinding_starts_again_from_an_earlier_step(directory: Path, writer: RunWriter) -> None:
    writer.write_event(started(first_step=8))
    writer.write_chunk(0, 0.0, 1.0, {"loss": [0, 1, 2, 3]})
    writer.rewind(2)
    with closing(RunReader(directory)) as reader:
        update = reader.poll()
    assert [event.first_step for event in update.events if isinstance(event, RunStarted)][-2:] == [8, 2]
    assert [value for chunk in update.chunks for value in chunk.series["loss"].tolist()] == [0, 1]


def test_steps_taken_again_after_rewinding_reach_a_reader_that_saw_the_old_ones(
    writer: RunWriter, reader: RunReader
) -> None:
    writer.write_chunk(0, 0.0, 1.0, {"loss": [0, 1, 2, 3]})
    assert len(reader.poll().chunks) == 1
    writer.rewind(2)
    writer.write_chunk(2, 1.0, 2.0, {"loss": [20, 30]})
    (again,) = reader.poll().chunks
    assert again.first_step == 2
    assert again.series["loss"].tolist() == [20, 30]


def test_commands_are_asked_seen_answered_and_gone(directory: Path, writer: RunWriter) -> None:
    writer.begin()
    pause = send_command(directory, "pause")
    rate = send_command(directory, "learning_rate", 0.01)
    first, second = writer.commands()
    assert (first.id, first.name, first.argument) == (pause, "pause", None)
    assert (second.id, second.name, second.argument) == (rate, "learning_rate", 0.01)
    assert "@" in first.who
    assert read_answer(directory, pause) is None
    writer.answer(first, obeyed=True, answer="paused")
    writer.answer(second, obeyed=False, answer="not now")
    assert read_answer(directory, pause) == (True, "paused")
    assert read_answer(directory, rate) == (False, "not now")
    assert writer.commands() == []


def test_what_was_asked_of_a_dead_engine_is_not_obeyed_by_the_next(directory: Path, writer: RunWriter) -> None:
    writer.begin()
    number = send_command(directory, "stop_now")
    writer.begin()
    assert writer.commands() == []
    answered = read_answer(directory, number)
    assert answered is not None
    assert not answered[0]


def test_a_withdrawn_command_is_not_obeyed(directory: Path, writer: RunWriter) -> None:
    writer.begin()
    pause, stop = send_command(directory, "pause"), send_command(directory, "stop")
    (_, second) = writer.commands()
    assert withdraw(directory, pause)
    assert writer.commands() == [second]
    assert read_answer(directory, pause) == (False, "withdrawn")
    writer.answer(second, obeyed=True, answer="stopping")
    assert not withdraw(directory, stop)
    assert read_answer(directory, stop) == (True, "stopping")


@pytest.mark.parametrize(
    ("name", "words"),
    [("stop", "stop"), ("stop_now", "stop without checkpoint"), ("learning_rate", "learning rate")],
)
def test_a_command_says_who_sent_it(name: str, words: str) -> None:
    assert Command(1, 0.0, "ann@box", name).origin == f"{words} requested by ann@box"


def test_unknown_command_is_refused(directory: Path) -> None:
    with pytest.raises(ValueError, match="known: stop, stop_now"):
        send_command(directory, "explode")


def test_ended_run_cannot_be_asked_anything(ended: Path) -> None:
    with pytest.raises(RunError, match="finished: only a live run takes commands"):
        send_command(ended, "stop")


def test_ended_run_can_be_reopened_with_another_plan(ended: Path) -> None:
    reopen(ended, Plan(epochs=20))
    with closing(RunReader(ended)) as reader:
        info = reader.info()
    assert info.status is Status.STARTING
    assert info.plan == Plan(epochs=20)
    assert info.pid is None


def test_run_that_is_being_trained_cannot_be_reopened(directory: Path, writer: RunWriter) -> None:
    writer.begin()
    with pytest.raises(RunError, match="already being trained"):
        reopen(directory, Plan())
    with pytest.raises(RunError, match=f"already being trained by process {os.getpid()}"):
        assign_process(directory, 1)
    pause = send_command(directory, "pause")  # the database is not left locked
    writer.close()
    reopen(directory, Plan())
    assert read_answer(directory, pause) == (False, "the engine had exited")


def test_samples_keep_values_and_reasons(writer: RunWriter, reader: RunReader) -> None:
    sample = Sample(
        5.0,
        "gpu:0",
        {"utilization": Reading(12.5, "%"), "power": Reading.missing("not supported", "W"), "load": Reading(0.0)},
    )
    writer.write_samples([sample, Sample(6.0, "cpu:0")])
    assert reader.poll().samples == (sample, Sample(6.0, "cpu:0", {}))


def test_many_threads_write_while_many_readers_read(
    directory: Path, writer: RunWriter, wait_until: Callable[..., None]
) -> None:
    chunks, readers = 200, 6
    seen: list[list[int]] = [[] for _ in range(readers)]
    failures: list[BaseException] = []

    def follow(steps: list[int]) -> None:
        try:
            with closing(RunReader(directory)) as reader:
                while len(steps) < chunks * 3:
                    for chunk in reader.poll().chunks:
                        assert len(chunk.series["loss"]) == chunk.count == 3
                        steps.extend(chunk.series["loss"].astype(int).tolist())
        except BaseException as error:  # noqa: BLE001 (told below, in the test's own thread)
            failures.append(error)

    followers = [threading.Thread(target=follow, args=(steps,), daemon=True) for steps in seen]
    beat = threading.Event()
    writer.begin()

    def sample() -> None:
        while not beat.is_set():
            writer.write_samples([Sample(0.0, "cpu:0", {"utilization": Reading(1.0, "%")})])
            writer.heartbeat()

    sampler = threading.Thread(target=sample)
    for thread in (*followers, sampler):
        thread.start()
    for index in range(chunks):
        writer.write_chunk(3 * index, 0.0, 1.0, {"loss": [3 * index, 3 * index + 1, 3 * index + 2]})
    beat.set()
    sampler.join()
    wait_until(lambda: failures or not any(thread.is_alive() for thread in followers), "the readers")
    assert failures == []
    assert all(steps == list(range(3 * chunks)) for steps in seen)


def test_failed_write_does_not_block_the_next(directory: Path, writer: RunWriter, reader: RunReader) -> None:
    with closing(RunDatabase(directory)) as other:
        other.execute("CREATE TRIGGER main.refuse BEFORE INSERT ON sample BEGIN SELECT RAISE(ABORT, 'full'); END")
        with pytest.raises(RunError, match="full"):
            writer.write_samples([Sample(0.0, "cpu:0")])
        other.execute("DROP TRIGGER refuse")
    writer.write_samples([Sample(1.0, "cpu:0")])
    assert len(reader.poll().samples) == 1


def test_not_a_number_in_an_event_is_null_in_the_file(directory: Path, writer: RunWriter) -> None:
    writer.write_event(EpochEnded(time=1.0, epoch=1, step=2, metrics={"loss": math.nan}, seconds=1.0))
    with closing(RunDatabase(directory)) as connection:
        (body,) = connection.execute("SELECT body FROM event").fetchone()
    assert json.loads(body)["metrics"] == {"loss": None}


def test_a_run_taken_up_again_never_looks_ended(ended: Path, writer: RunWriter) -> None:
    reopen(ended, Plan(epochs=20))

    writer.begin(started())

    assert list_runs()[0].status is Status.RUNNING


def test_taking_a_run_up_forgets_the_steps_after_its_checkpoint(writer: RunWriter, reader: RunReader) -> None:
    writer.write_chunk(0, 0.0, 1.0, {"loss": [0, 1, 2, 3]})

    writer.begin(started(first_step=3))

    update = reader.poll()
    assert update.chunks[0].series["loss"].tolist() == [0, 1, 2]
    assert isinstance(update.events[0], RunStarted)


def test_a_run_that_another_process_trains_is_not_taken_up(directory: Path, writer: RunWriter) -> None:
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assign_process(directory, other.pid)
        writer.write_chunk(0, 0.0, 1.0, {"loss": [0, 1, 2, 3]})

        with pytest.raises(RunError, match=f"already being trained by process {other.pid}"):
            writer.begin(started())

        assert len(writer.read_steps(0, 4)[0]["loss"]) == 4
    finally:
        other.communicate()
    writer.begin(started())


def test_what_was_recorded_is_read_back_with_its_seconds(writer: RunWriter) -> None:
    writer.write_chunk(0, 0.0, 1.0, {"loss": [0, 1]})
    writer.write_chunk(2, 1.0, 3.5, {"loss": [2, 3]})
    writer.write_chunk(4, 3.5, 4.0, {"loss": [4]})

    series, seconds = writer.read_steps(2, 5)

    assert series["loss"].tolist() == [2, 3, 4]
    assert seconds == 3.0
    assert writer.read_steps(0, 0) == ({}, 0)


def test_only_whole_chunks_are_read_back(writer: RunWriter) -> None:
    for first in (0, 4, 8):
        writer.write_chunk(first, 10.0 + first, 11.0 + first, {"loss": np.arange(first, first + 4)})

    series, seconds = writer.read_steps(2, 10)

    assert series["loss"].tolist() == [4, 5, 6, 7]
    assert seconds == 1.0


def test_a_run_without_its_tables_is_an_error_in_words(directory: Path) -> None:
    execute(directory, "DROP TABLE main.chunk")
    with pytest.raises(RunError, match=r"is damaged \(no such table: chunk\)"):
        RunWriter(directory)


def test_a_closed_database_is_not_one_that_may_be_written_later(writer: RunWriter) -> None:
    writer.close()
    with pytest.raises(RunError) as caught:
        writer.commands()
    assert not isinstance(caught.value, DatabaseError)


def test_nothing_follows_the_last_word(writer: RunWriter, reader: RunReader) -> None:
    ended = RunEnded(time=1.0, outcome=Outcome.FINISHED, steps=0, epochs=0, seconds=1.0, reason="the last")
    writer.end(ended)

    with pytest.raises(RunError, match="closed"):
        writer.write_chunk(0, 0.0, 1.0, {"loss": [0]})
    assert [*reader.poll().events] == [ended]


@pytest.mark.parametrize(
    ("first_step", "started", "ended"),
    [(MAX_STEP - 1, 1.0, 2.0), (-1, 1.0, 2.0), (0, -1.0, 2.0), (0, 1.0, 1e12), (0, math.nan, 2.0)],
)
def test_what_no_reader_would_take_is_not_written(
    writer: RunWriter, reader: RunReader, first_step: int, started: float, ended: float
) -> None:
    with pytest.raises(RunError, match=r"cannot write 2 steps|a run has times"):
        writer.write_chunk(first_step, started, ended, {"loss": [1.0, 2.0]})
    for empty in ({"loss": []}, {}):
        with pytest.raises(RunError, match="cannot write 0 steps from 0: a chunk has 1 to 16,777,216 steps"):
            writer.write_chunk(0, 1.0, 2.0, empty)
    with pytest.raises(RunError, match="a run has times"):
        writer.write_event(Warned(time=-5.0, message="early"))
    assert reader.poll() == Update()


def test_the_longest_chunk_is_written_and_a_longer_one_is_not(
    writer: RunWriter, reader: RunReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accel_engine.run.writing.step_writer.MAX_CHUNK", 4)
    writer.write_chunk(0, 1.0, 2.0, {"loss": np.ones(4)})
    with pytest.raises(RunError, match="a chunk has 1 to 4 steps"):
        writer.write_chunk(4, 1.0, 2.0, {"loss": np.ones(5)})
    assert [chunk.count for chunk in reader.poll().chunks] == [4]


def test_the_last_steps_that_a_run_can_have_are_read_again(writer: RunWriter, reader: RunReader) -> None:
    writer.write_chunk((1 << 32) - 2 - (1 << 10), 1.0, 2.0, {"loss": [1.0, 2.0]})
    assert [chunk.first_step for chunk in reader.poll().chunks] == [(1 << 32) - 2 - (1 << 10)]


def test_an_engine_waits_a_minute_for_others_who_write(writer: RunWriter) -> None:
    assert writer._database.execute("PRAGMA busy_timeout").fetchone() == (60_000,)


def test_series_beyond_the_columns_of_a_table_are_left_out_with_one_note(reader: RunReader, writer: RunWriter) -> None:
    series = {f"s{number}": [float(number)] for number in range(MAX_SERIES + 7)}
    writer.write_chunk(0, 1.0, 2.0, series)
    writer.write_chunk(1, 2.0, 3.0, {"new": [1.0]})
    writer.write_chunk(2, 3.0, 4.0, {"s0": [5.0]})

    update = reader.poll()
    whole, empty, last = update.chunks
    assert list(whole.series) == list(series)[:MAX_SERIES]
    assert [math.isnan(values[0]) for values in empty.series.values()] == [True]
    assert last.series["s0"][0] == 5.0
    names = "s1900, s1901, s1902, s1903, s1904 and 2 more, and others that come later"
    (warned,) = update.events
    assert isinstance(warned, Warned)
    assert warned.message == f"a run has at most 1,900 series; left out from step 0 on: {names}"


def test_a_heartbeat_before_the_run_has_begun_is_none(directory: Path) -> None:
    """As of a supervisor whose other thread is about to begin the run: it is not taken for another process's."""
    with closing(RunWriter(directory)) as writer:
        writer.heartbeat()
        writer.begin(started())
        writer.heartbeat()
        (found,) = list_runs()
        assert found.status is Status.RUNNING
