"""Processes of searches with stand-in runs: killed at any moment, and several homes on one journal."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from accel_engine.devices import detect
from accel_engine.errors import RunError, UsageError
from accel_engine.run.directory.lock import WriterLock
from accel_engine.search import launch, new_study
from accel_engine.search.storage import create_study, load_definition, reaching
from accel_engine.search.study_database import StudyDatabase, create_study_database
from accel_engine.search.study_paths import LOCK
from accel_engine.search.study_reader import StudyReader
from accel_engine.search.trial import TrialState
from engine.search.searching import Search, define, joined

PROGRAM = str(Path(__file__).with_name("stand_in_process.py"))


def start(directory: Path, runs: Path, pause: float = 0.0) -> "subprocess.Popen[bytes]":
    environment = os.environ | {"STAND_IN_PAUSE": str(pause)}
    return subprocess.Popen([sys.executable, PROGRAM, str(directory), str(runs)], env=environment)


def test_a_search_that_is_killed_again_and_again_ends_as_one_that_is_not(
    tmp_path: Path, wait_until: Callable[..., None]
) -> None:
    whole = Search(define("whole", trials=8, seed=5), tmp_path)
    whole.run()
    killed = Search(define("killed", trials=8, seed=5), tmp_path)

    def reports() -> int:
        with killed.study() as study:
            return sum(map(len, study.reports.values()))

    for enough in (1, 4, 9):
        process = start(killed.directory, killed.runs.directory, pause=0.02)
        wait_until(lambda enough=enough: reports() >= enough, f"{enough} reports")
        process.kill()
        process.wait()
    assert start(killed.directory, killed.runs.directory).wait(120) == 0
    assert killed.values() == whole.values()
    assert [each.objectives for each in killed.trials()] == [each.objectives for each in whole.trials()]
    assert [each.state for each in killed.trials()] == [each.state for each in whole.trials()]
    assert len(killed.runs.find("killed")) == len(whole.runs.find("whole"))


def test_a_search_runs_as_soon_as_its_process_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    imports = [sys.executable, "-c", "input()"]
    process = subprocess.Popen(imports, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    monkeypatch.setattr(launch, "start_search_process", lambda _: process)
    search = Search(define(), tmp_path)
    assert not launch.is_search_running(search.directory)
    launch.resume_study(search.directory)
    assert launch.is_search_running(search.directory)
    process.communicate()  # it ends before it takes the lock
    assert not launch.is_search_running(search.directory)


@pytest.mark.parametrize("address", ["{}/journal.log", "sqlite:///{}/shared.db"], ids=["journal", "database"])
def test_machines_share_a_search_by_a_storage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait_until: Callable[..., None], address: str
) -> None:
    (tmp_path / "shared").mkdir()
    storage = address.format(tmp_path / "shared")
    monkeypatch.setenv("ACCEL_TUI_HOME", str(tmp_path / "first"))
    first = Search(define(trials=10, storage=storage, pruner="off"), tmp_path / "first")
    go = tmp_path / "go"
    monkeypatch.setenv("STAND_IN_GO", str(go))  # the first machine has one trial until the second has one, too
    one = start(first.directory, first.runs.directory)
    try:
        monkeypatch.delenv("STAND_IN_GO")
        monkeypatch.setenv("ACCEL_TUI_HOME", str(tmp_path / "second"))
        assert load_definition(storage) == define(trials=10, storage=storage, pruner="off")
        directory = tmp_path / "second" / "studies" / "s"
        directory.mkdir(parents=True)
        create_study_database(directory, storage)
        two = start(directory, tmp_path / "second" / "runs-s", pause=0.02)
        wait_until(lambda: _own_trials(directory), "a trial of the second machine")
        go.touch()
        assert (one.wait(120), two.wait(120)) == (0, 0)
    finally:
        one.kill()
        one.wait()
    with first.study() as mine, StudyReader(directory) as theirs:
        here, there = list(mine.trials.values()), list(theirs.trials.values())
        ended = mine.database.part.ended
    own = {each.number for each in here if not each.machine}
    others = {each.number for each in there if not each.machine}
    assert own
    assert others
    assert not own & others
    assert 10 <= len(own | others) <= 11  # both may start a last one at the same moment
    shared = [each for each in here if each.machine]
    assert {each.number for each in shared} <= others
    values = {each.number: each.values for each in there}
    assert all(each.values == values[each.number] and each.run == "" for each in shared)
    assert len({each.machine for each in shared}) == 1
    assert all(each.machine.startswith(f"{socket.gethostname()} (") for each in shared), "two homes of one machine"
    finished = [each for each in shared if each.state is TrialState.FINISHED]
    assert all(each.objectives for each in finished)
    assert ended is not None


def test_a_search_waits_for_the_trials_of_other_machines_and_one_machine_confirms(tmp_path: Path) -> None:
    definition = define(trials=3, confirm=1, storage=str(tmp_path / "journal"), pruner="off")
    search = Search(definition, tmp_path)
    looks: list[bool] = []
    with joined(search, tmp_path / "other") as other:
        theirs = other.put(other.propose())

        def finish(study: StudyReader) -> None:
            own = [each.state.live for each in study.trials.values() if not each.machine]
            looks.append(len(own) == 2 and not any(own))
            if looks.count(True) == 3:  # nothing is left to do here
                assert study.database.part.confirmation is None
                other.end(replace(theirs, state=TrialState.FINISHED, objectives={"validation_accuracy": 2.0}))

        ended = search.run(finish)
        assert (ended["outcome"], ended["states"]) == ("finished", {"finished": 3})
        assert ended["best"]["trial"] == _confirmed(search)
        assert not other.claim_confirmation(theirs.number)


def _confirmed(search: Search) -> int:
    """The trial that a search has confirmed."""
    with StudyDatabase(search.directory) as database:
        assert database.part.confirmation is not None
        assert len(database.part.confirmation.values) == 1
        return database.part.confirmation.trial


def _own_trials(directory: Path) -> list[int]:
    with StudyReader(directory) as study:
        return [each.number for each in study.trials.values() if not each.machine]


def test_a_storage_that_cannot_be_reached_is_a_clear_error_and_nothing_is_lost(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    unreachable = r"storage .*journal cannot be reached: (Not a directory|File exists)"
    with pytest.raises(RunError, match=unreachable):
        Search(define("none", storage=str(tmp_path / "file" / "journal")), tmp_path)
    folder, away = tmp_path / "shared", tmp_path / "away"
    folder.mkdir()
    search = Search(define(trials=2, storage=str(folder / "journal")), tmp_path)

    def unmount(_: StudyReader) -> None:
        if folder.is_dir():
            folder.rename(away)

    with pytest.raises(RunError, match="cannot be reached: No such file or directory"):
        search.run(unmount)
    with StudyDatabase(search.directory) as database:
        assert database.part.ended is not None
        assert database.part.ended["outcome"] == "failed"
    with pytest.raises(RunError, match="cannot be reached"):
        search.run()
    away.rename(folder)
    assert search.run()["outcome"] == "finished"


def test_addresses_of_storages_that_are_wrong(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no storage"):
        load_definition(str(tmp_path / "none"))
    with pytest.raises(RunError, match=r"the storage sqlite:////none/x\.db cannot be reached"):
        load_definition("sqlite:////none/x.db")
    with pytest.raises((RunError, UsageError), match="the storage nosql://somewhere"):
        load_definition("nosql://somewhere")
    missing = ModuleNotFoundError("No module named 'MySQLdb'", name="MySQLdb")
    with (
        pytest.raises(UsageError, match=r"mysql://h/x needs the package mysqlclient, .* pip install 'mysqlclient'"),
        reaching("mysql://user:secret@h/x"),
    ):
        raise ImportError("Please install appropriate one.") from missing
    (tmp_path / "empty").touch()
    with pytest.raises(UsageError, match="has no search of accel-tui"):
        load_definition(str(tmp_path / "empty"))
    (tmp_path / "text").write_text("hello\nyou\n")
    with pytest.raises(RunError, match="cannot be used"):
        load_definition(str(tmp_path / "text"))


def test_a_journal_whose_last_line_was_cut_is_taken_up(tmp_path: Path) -> None:
    search = Search(define(trials=2), tmp_path)
    search.run()
    journal = search.directory / "journal.log"
    with journal.open("ab") as file:
        file.write(b'{"op_code": 4, "worker')
    search.request("set_trials", argument=3)
    assert search.run()["trials"] == 3


def test_two_searches_of_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    search = Search(define(), tmp_path)
    with pytest.raises(UsageError, match="there is a search s already: continue it with --resume s"):
        create_study(search.directory, define())
    storage = str(tmp_path / "journal")
    Search(define("shared", trials=1, storage=storage), tmp_path).run()
    monkeypatch.setenv("ACCEL_TUI_HOME", str(tmp_path / "other"))
    with pytest.raises(UsageError, match=f"the storage {storage} has a search shared already: join it"):
        new_study.begin_study(define("shared", storage=storage), detect().devices)


def test_who_joins_again_may_change_how_many_trials_train_at_once(tmp_path: Path) -> None:
    storage = str(tmp_path / "journal")
    search = Search(define("shared", storage=storage), tmp_path)
    with search.study() as study:
        assert study.definition.at_once == 1
    for at_once, found in ((3, 3), (None, 3)):
        assert new_study.join_study(storage, "shared", (), at_once) == search.directory
        with search.study() as study:
            assert study.definition.at_once == found
    words = "the search shared is running here: leave out --at-once"
    with WriterLock(search.directory, LOCK), pytest.raises(UsageError, match=words):
        new_study.join_study(storage, "shared", (), 2)
