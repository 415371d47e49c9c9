import json
from contextlib import closing

import pytest

from accel_engine.events import Outcome, RunStarted, Worker, WorkersMet
from accel_engine.run import RunWriter
from accel_engine.run.directory.disk_problem import DiskProblem
from accel_engine.run.store.database import RunDatabase


def test_no_runs_yet(run_command):
    result = run_command("runs")
    assert result.status == 0
    assert "No runs yet" in result.out
    assert "accel-tui train" in result.out
    assert run_command("runs --json").out == ""


def test_runs_are_a_table_of_80_columns(run_command, new_run, dead_pid):
    new_run(name="a-name-that-is-quite-a-bit-longer-than-others").train()
    lost = new_run(pid=dead_pid)
    lost.begin()
    lost.epoch(1)
    lost.writer.close()
    result = run_command("runs")
    assert result.status == 0
    assert all(len(line) <= 80 for line in result.lines)
    assert "\x1b" not in result.out
    assert result.lines[0].split() == ["RUN", "STATUS", "CREATED", "DURATION", "STEPS", "LOSS", "BEST", "MONITOR"]
    newest, oldest = result.lines[1:]
    assert newest.split()[:2] == [lost.directory.name, "lost"]
    assert " now " in newest
    assert newest.split()[-5:] == ["4", "0.2500", "0.7500", "val", "acc\u2026"]
    assert oldest.split()[1] == "finished"
    assert "\u2026" in oldest


def test_runs_as_json(run_command, new_run):
    engine = new_run(name="mine")
    engine.train()
    (line,) = run_command("runs --json").lines
    run = json.loads(line)
    assert run["run"] == engine.directory.name
    assert (run["status"], run["steps"], run["problem"]) == ("finished", 8, "")
    assert run["metrics"]["validation_accuracy"] == 0.9861
    assert (run["monitor"], run["best"]) == ("validation_accuracy", 0.75)  # of its validations
    assert run["plan"]["name"] == "mine"


def test_a_run_that_cannot_be_read_says_why(run_command, new_run):
    engine = new_run()
    engine.train()
    connection = RunDatabase(engine.directory)
    connection.execute("UPDATE main.meta SET value = 99 WHERE key = 'schema'")
    connection.close()
    result = run_command("runs")
    assert "unreadable" in result.lines[1]
    assert "newer accel-tui" in result.lines[-1]


def test_a_worker_s_own_run_is_listed_as_what_it_is(run_command, new_run):
    chief, worker = new_run(), new_run()
    chief.train()
    worker.begin()
    worker.say(RunStarted, run="", name="", plan={}, first_step=0, pid=1, host="h", versions={}, worker="worker 1")
    worker.writer.close()
    assert run_command("runs").lines[-1] == f"{worker.directory.name} is worker 1"

    workers = tuple(
        Worker(name, host="h", run=engine.directory.name)
        for name, engine in (("worker 0", chief), ("worker 1", worker))
    )
    with closing(RunWriter(worker.directory)) as writer:
        writer.write_event(WorkersMet(time=2.0, workers=workers, reduction="ring"))
    assert run_command("runs").lines[-1] == f"{worker.directory.name} is worker 1 of {chief.directory.name}"
    told = {run["run"]: (run["worker"], run["worker_of"]) for run in map(json.loads, run_command("runs --json").lines)}
    assert told == {
        chief.directory.name: ("", ""),
        worker.directory.name: ("worker 1", chief.directory.name),
    }


def test_runs_are_filtered_and_put_in_order(run_command, new_run):
    worse, better, failed = new_run(), new_run(model="mlp"), new_run(model="mlp", name="odd")
    for engine, loss in ((worse, 0.75), (better, 0.25)):
        engine.begin()
        engine.epoch(1, loss)
    failed.begin()
    failed.end(Outcome.FAILED, reason="out of memory")

    def found(words):
        return [json.loads(line)["run"] for line in run_command(f"runs --json {words}").lines]

    names = [engine.directory.name for engine in (worse, better, failed)]
    assert found("") == names[::-1]
    assert found("--reverse") == names
    assert found("--sort loss") == [failed.directory.name, better.directory.name, worse.directory.name]
    assert found("--filter 'model:mlp status:run'") == [better.directory.name]
    assert found("--filter odd") == [failed.directory.name]
    assert json.loads(run_command("runs --json --filter odd").out)["reason"] == "out of memory"
    assert run_command("runs --filter nothing").out == "No matching runs: 'nothing' matches none of 3 runs.\n"
    assert found("--sort created") == names[::-1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--sort stesp", "no column 'stesp'; did you mean steps"),
        ("--filter statsu:failed", "no key 'statsu'; did you mean status"),
    ],
)
def test_an_unknown_column_or_key_is_refused_with_the_nearest(run_command, words, said):
    result = run_command(f"runs {words}")
    assert result.status == 2
    assert said in result.err


def test_a_home_that_cannot_be_written_is_told(run_command, monkeypatch, tmp_path):
    place = tmp_path / "file"
    place.write_text("")
    monkeypatch.setenv("ACCEL_TUI_HOME", str(place))
    result = run_command("runs")
    assert result.status == 0
    assert "cannot be written" in result.out
    assert "Start one" not in result.out


def test_a_run_that_waits_for_the_disk_is_told(run_command, new_run):
    engine = new_run()
    engine.begin()
    engine.writer.show_problem(DiskProblem.FULL)
    assert run_command("runs").lines[-1] == f"{engine.directory.name}: disk full: waiting for space"
    assert json.loads(run_command("runs --json").out)["waiting"] == "disk full"
    engine.writer.show_problem(None)
    assert "waiting" not in run_command("runs").out
    assert json.loads(run_command("runs --json").out)["waiting"] == ""
