"""``accel-tui search`` with a process whose trials are stand-ins, and all that can be wrong before it starts."""

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accel_engine.errors import EngineMissingError
from accel_engine.hosts.host_list import Host, add_host
from accel_engine.hosts.reading import HostReading
from accel_engine.search import launch
from accel_engine.search.study_database import StudyDatabase
from accel_engine.search.study_paths import find_study, studies_directory
from accel_engine.search.study_reader import StudyReader
from accel_engine.search.study_writer import StudyWriter
from accel_tui.cli import search_run
from engine.search import stand_in_runs
from example_study import add_trial
from waiting import wait_until

PROGRAM = str(Path(stand_in_runs.__file__).with_name("stand_in_process.py"))

OVER = "--over learning_rate=1e-4..1e-1:log --over batch_size=32,64"

SEARCH = f"search {OVER} --trials 3 --epochs 2 --confirm 1 --name s"


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list["subprocess.Popen[str]"]:
    """The processes of searches, whose trials are stand-ins."""
    processes: list[subprocess.Popen[str]] = []

    def start(directory: Path) -> "subprocess.Popen[str]":
        process = subprocess.Popen([sys.executable, PROGRAM, str(directory), str(tmp_path / "stand-ins")])
        processes.append(process)
        return process

    monkeypatch.setattr(launch, "start_search_process", start)
    return processes


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("", []),
        ("--within 1h --confirm 3 --json", ["--within", "1h", "--confirm", "3", "--json"]),  # 3 is the default
        ("--trials 60 --detach", ["--trials", "60", "--detach"]),
    ],
)
def test_a_search_on_a_host_is_continued_with_the_options(
    run_command, monkeypatch, options: str, words: list[str]
) -> None:
    add_host(Host("gpu1"))
    asked = []
    monkeypatch.setattr(search_run, "chosen_host", HostReading)
    monkeypatch.setattr(search_run, "command_on", lambda host, words, _: asked.append((host, words)) or 0)
    assert run_command(f"search --on gpu1 --resume s {options}").status == 0
    assert asked == [("gpu1", ["search", "--resume", "s", *words])]


def test_a_search_as_json_and_as_lines(run_command, started, here) -> None:
    result = run_command(f"{SEARCH} --json")
    assert result.status == 0, result.err
    events = [json.loads(line) for line in result.lines]
    kinds = [event["event"] for event in events]
    assert kinds[0] == "trial_started"
    assert kinds.count("trial_started") == 3
    assert all(event["run"] for event in events if event["event"] == "trial_started")
    assert "trial_reported" in kinds
    last = events[-1]
    assert (last["event"], last["outcome"], last["reason"]) == ("search_ended", "finished", "all 3 trials are done")
    assert last["best"]["command"].startswith("accel-tui train --epochs 2 ")
    assert len(last["confirmation"]["values"]) == 1

    again = run_command("search --resume last --trials 4 --plain")
    assert again.status == 0, again.err
    assert "trial 3 started" in again.out
    assert "the search s has finished: all 4 trials are done" in again.out
    assert "trained again with 1 other seed" in again.out
    assert "Train it: accel-tui train --epochs 2 " in again.out
    assert all(len(line) <= 120 for line in again.lines if not line.startswith("Train it"))

    damaged = studies_directory() / "damaged" / "study.db"
    damaged.parent.mkdir()
    damaged.write_text("no database")
    table = run_command("searches")
    assert table.status == 0
    assert "damaged  unreadable" in table.out
    assert "is damaged (file is not a database)" in " ".join(table.out.split())
    damaged.unlink()
    (listed,) = [json.loads(line) for line in run_command("searches --json").lines]
    assert (listed["search"], listed["state"], listed["trials"]) == ("s", "finished", 4)
    assert run_command("search --list").lines[1].split()[:2] == ["s", "finished"]
    assert run_command(SEARCH).status == 2  # of the same name


def test_a_plan_file_with_a_table_search(run_command, started, here: Path) -> None:
    (here / "plan.toml").write_text(
        'epochs = 2\n[search]\nname = "toml"\ntrials = 2\nconfirm = 0\n'
        '[search.over]\nlearning_rate = "1e-4..1e-1:log"\nbatch_size = [32, 64]\n'
    )
    result = run_command("search plan.toml --over batch_size=8,16 --seed 7 --json")
    assert result.status == 0, result.err
    with StudyReader(find_study("toml")) as study:
        definition = study.definition
    assert [each.name for each in definition.parameters] == ["learning_rate", "batch_size"]
    assert definition.parameters[1].choices == (8, 16)
    assert (definition.trials, definition.seed, dict(definition.plan)) == (2, 7, {"epochs": 2})


WRONG = {
    "search": "nothing varies",
    "search --over": "is not a range of a field",
    "search --over learning_rate": "is not a range of a field",
    "search --over learning_rate=1..0.1": "is reversed: use 0.1..1",
    "search --over batch_size=": "empty value",
    "search --over learning_rte=1..2": "did you mean learning_rate",
    "search --over model=cnn,mpl": "did you mean mlp",
    "search --over batch_size=1,2 --batch-size 3": "has a value and varies",
    "search --over batch_size=1,2 --over batch_size=3,4": "two ranges",
    f"search {OVER} --trials 0": "'0' must be an integer from 1",
    f"search {OVER} --sampler gird": "'gird'",
    f"search {OVER} --sampler grid": "has no steps for a grid",
    f"search {OVER} --within soon": "within",
    f"search {OVER} --name ../x": "cannot be the name of a search",
    f"search {OVER} --monitor val_f1": "f1 is not measured",
    f"search {OVER} --monitor val_quality": "'validation_quality': quality is not measured; measured are loss",
    f"search {OVER} --monitor quality --direction maximize": "quality is not measured",
    f"search {OVER} --objective val_recall": "measured are loss, accuracy: add --metrics recall",
    f"search {OVER} --objective val_foo": "measured are loss, accuracy: use --objective validation_accuracy",
    "search own.toml --monitor quality": "does not tell whether larger values are better",
    f"search {OVER} --monitor time": "the monitor is a metric",
    f"search {OVER} --objective val_accuracy": "validation_accuracy is an objective twice",
    f"search {OVER} --storage nodir/s.log": "create it first",
    f"search {OVER} --storage .": "is a folder: give a file in it",
    f"search {OVER} --storage /proc/s.log": "/proc/s.log cannot be written",
    f"search {OVER} --resume s": "leave out all others",
    f"search {OVER} --json --detach": "--json, --plain and --detach exclude each other",
    "search --resume s --batch-size 64": "the search keeps its plan: leave out --batch-size",
    "search --join j.log --epochs 1": "the search keeps its plan: leave out --epochs",
    "search --resume nothing": "there is no search 'nothing'",
    "search --join nowhere.log": "there is no storage",
    "search missing.toml": "missing.toml",
    "search unknown.toml": "unknown.toml:2: search.trails = 3: unknown field; did you mean trials?",
    "search typed.toml": "typed.toml:2: search.trials = '3': must be an integer from 1 to 100000",
}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_is_said_before_anything_starts(run_command, started, here: Path, words: str) -> None:
    (here / "unknown.toml").write_text("[search]\ntrails = 3\nover.batch_size = [1, 2]\n")
    (here / "own.py").write_text("def build(): ...\n")
    (here / "own.toml").write_text('model = "own.py:build"\n[search]\nover.batch_size = [1, 2]\n')
    (here / "typed.toml").write_text('[search]\ntrials = "3"\nover.batch_size = [1, 2]\n')
    result = run_command(words)
    assert (result.status, result.out) == (2, "")
    assert WRONG[words] in result.err
    assert not studies_directory().exists()
    assert not started


def test_without_optuna_the_message_has_the_command_that_installs_it(
    run_command, here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "installed_versions", lambda *_: {})
    result = run_command(SEARCH)
    assert result.status == 1
    assert "pip install '.[search]' in a checkout" in result.err


def test_a_refused_resume_writes_nothing(run_command, started, here, monkeypatch: pytest.MonkeyPatch) -> None:
    began = run_command(f"{SEARCH} --over momentum=0..0.9")
    with StudyWriter(find_study("s")) as study:
        first, *rest = study.trials.values()
        add_trial(study, replace(first, number=len(rest) + 1, duplicate_of=first.number))
    assert "3 of 3" in run_command("searches").out
    assert (began.status, began.err) == (
        0, "accel-tui: warning: momentum has no effect on any trial: it needs the optimizer sgd or rmsprop\n"
    )  # fmt: skip
    with StudyReader(find_study("s")) as study:
        before = study.definition, study.database.part.ended
        fewer = run_command("search --resume s --trials 2")
        assert (fewer.status, fewer.out) == (2, "")
        assert "the search has 3 trials already, more than 2: choose 3 or more" in fewer.err
        monkeypatch.setattr(launch, "installed_versions", lambda *_: {})
        assert [run_command(f"search --resume s {more}").status for more in ("", "--trials 9")] == [1, 1]
        with pytest.raises(EngineMissingError, match="Optuna"):
            launch.resume_study(find_study("s"))
        study.refresh()
        assert (study.definition, study.database.part.ended) == before
    assert len(started) == 1


def test_a_killed_process_is_reported_and_the_search_can_be_continued(
    run_command, started, here, monkeypatch: pytest.MonkeyPatch
) -> None:
    start: Any = launch.start_search_process

    def killed(directory: Path) -> "subprocess.Popen[str]":
        process: subprocess.Popen[str] = start(directory)
        process.kill()
        return process

    monkeypatch.setattr(launch, "start_search_process", killed)
    result = run_command(SEARCH)
    assert result.status == 1
    assert "the process of the search s has ended" in result.err
    assert "accel-tui search --resume s" in result.err
    monkeypatch.setattr(launch, "start_search_process", start)
    assert run_command("search --resume s --json").status == 0


def interrupting(*signals: int) -> threading.Thread:
    """Start a thread that sends signals to this process once the search s has a trial."""

    def interrupt() -> None:
        def has_trial() -> bool:
            directory = studies_directory() / "s"
            if not (directory / "study.db").exists():
                return False
            with StudyReader(directory) as study:
                return bool(study.trials)

        wait_until(has_trial)
        for each in signals:
            os.kill(os.getpid(), each)

    thread = threading.Thread(target=interrupt)
    thread.start()
    return thread


LONG_SEARCH = f"search {OVER} --trials 3 --epochs 500 --confirm 0 --pruner off --name s --plain"


def test_ctrl_c_stops_the_search_and_says_how_to_continue(
    run_command, started, here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_PAUSE", "0.1")
    thread = interrupting(signal.SIGINT)
    result = run_command(LONG_SEARCH)
    thread.join()
    assert result.status == 0
    assert "stopping; its trials save checkpoints" in result.err
    assert "continue it with: accel-tui search --resume s" in result.err
    assert "the search s was stopped: stopped by a user" in result.out


def test_a_second_ctrl_c_leaves_and_the_search_stops_in_the_background(
    run_command, started, here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_PAUSE", "0.1")
    thread = interrupting(signal.SIGINT, signal.SIGTERM)  # two of the same at once may be one
    result = run_command(LONG_SEARCH)
    thread.join()
    assert result.status == 0
    assert "the search stops in the background; continue it with: accel-tui search --resume s" in result.err
    for process in started:
        process.returncode = None  # the command leaves it
        process.wait(120)
    with StudyDatabase(find_study("s")) as database:
        assert (database.part.ended or {})["outcome"] == "stopped"
