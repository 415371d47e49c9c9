"""``accel-tui stop`` of a search, which is named as a run is."""

import threading
from pathlib import Path

import pytest

from accel_engine.plan import Plan
from accel_engine.run import create
from accel_engine.run.directory.lock import WriterLock
from accel_engine.search.search_events import search_ended
from accel_engine.search.storage import create_study
from accel_engine.search.study_database import StudyDatabase
from accel_engine.search.study_paths import LOCK, study_directory
from accel_tui.cli import control
from engine.search.searching import define
from tui.cli.test_completion import asked
from waiting import wait_until


def new_search(name: str = "") -> Path:
    """A search without a process; by default, the id of a run begins with its name."""
    name = name or create(Plan()).name[:3]
    directory = study_directory(name)
    create_study(directory, define(name))
    return directory


def answering(directory: Path, answer: str, *, obeyed: bool) -> threading.Thread:
    """Answer one command in a thread, as the process of a search does."""

    def reply() -> None:
        with StudyDatabase(directory) as database:
            wait_until(database.commands)
            (command,) = database.commands()
            database.answer(command.id, f"{command.name}: {answer}", obeyed=obeyed)

    thread = threading.Thread(target=reply)
    thread.start()
    return thread


def test_a_search_that_runs_is_stopped_by_its_name(run_command, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = new_search()
    name = directory.name
    with WriterLock(directory, LOCK):
        thread = answering(directory, "its trials stop", obeyed=True)
        result = run_command(f"stop {name}")
        thread.join()
        assert (result.status, result.err) == (0, "")
        assert result.out == f"{name}: stop: its trials stop; continue it with accel-tui search --resume {name}\n"
        thread = answering(directory, "no", obeyed=False)
        assert f"the search {name} did not stop: stop: no" in run_command("stop --search last").err
        thread.join()
        assert run_command(f"stop {name} --no-wait").out == f"{name}: stop requested\n"
        assert "leave out --now" in run_command(f"stop {name} --now").err
        assert name in asked("stop", name[:2])[0]
        monkeypatch.setattr(control, "PATIENCE", 0.0)
        assert "has not answered in 0 seconds, and stops after that" in run_command(f"stop {name}").err


def test_a_search_that_does_not_run_has_nobody_to_ask(run_command) -> None:
    directory = new_search()
    result = run_command(f"stop {directory.name}")
    assert result.status == 1
    assert f"is interrupted; continue it with accel-tui search --resume {directory.name}" in result.err
    with StudyDatabase(directory) as database:
        database.update(ended=search_ended(define(directory.name), [], "finished", "all trials are done"))
    assert f"the search {directory.name} is finished" in run_command(f"stop {directory.name}").err


def test_a_search_without_the_version_of_its_format_is_damaged(run_command) -> None:
    directory = new_search()
    with StudyDatabase(directory) as database:
        database.set_meta(schema=None)
    result = run_command(f"stop {directory.name}")
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith(
        f"accel-tui: the search {directory.name} cannot be read: its study.db is damaged (it has no version"
    )


@pytest.mark.parametrize("command", ["pause", "resume", "checkpoint", "set --learning-rate 1"])
def test_other_commands_say_what_to_do_with_a_search(run_command, command: str) -> None:
    name = new_search().name
    result = run_command(f"{command} {name}")
    assert result.status == 2
    assert f"accel-tui stop {name}" in result.err


def test_a_name_of_a_run_and_of_a_search_is_refused_for_stop_alone_and_an_id_is_the_runs(run_command, new_run) -> None:
    run = new_run(name="both")
    run.train()
    new_search("both")
    result = run_command("stop both")
    assert result.status == 2
    assert f"give the run's id, {run.directory.name}" in result.err
    assert "accel-tui stop --search both" in result.err
    assert "the search both is interrupted" in run_command("stop --search both").err
    assert "only a live run takes commands" in run_command("pause both").err, "which searches do not take"
    new_search(run.directory.name)
    assert "only a live run takes commands" in run_command(f"stop {run.directory.name}").err
