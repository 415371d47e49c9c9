import json
import threading
from dataclasses import asdict, replace

import pytest

from accel_engine.events import Outcome, Worker, WorkersMet
from accel_engine.plan import Plan
from accel_engine.run import RunReader, Status
from accel_engine.run.directory.disk_problem import DiskProblem
from accel_tui.cli.event_text import means


@pytest.fixture
def no_terminal(monkeypatch):
    monkeypatch.setattr("accel_tui.cli.watch.has_terminal", lambda: False)


def test_an_ended_run_is_shown_from_its_beginning(no_terminal, run_command, new_run):
    new_run(name="mine").train()
    result = run_command("watch mine --json")
    assert (result.status, result.err) == (0, "")
    lines = [json.loads(line) for line in result.lines]
    assert [line["first_step"] for line in lines if line["event"] == "steps"] == [0, 4]
    assert lines[-1]["event"] == "run_ended"


def test_without_a_terminal_it_is_a_log(no_terminal, run_command, new_run):
    new_run().train()
    assert "finished at step 8" in run_command("watch last").out


def test_a_live_run_is_followed_to_its_end(no_terminal, run_command, new_run):
    engine = new_run(epochs=1)
    engine.begin()

    def go_on():
        engine.epoch(1)
        engine.end()

    later = threading.Timer(0.2, go_on)
    later.start()
    lines = run_command(f"watch {engine.directory.name} --json").lines
    later.join()
    assert json.loads(lines[-1])["event"] == "run_ended"
    assert sum(json.loads(line)["event"] == "steps" for line in lines) == 1


def test_every_epoch_of_a_run_that_ended_long_ago_has_its_own_means(no_terminal, run_command, new_run):
    engine = new_run(epochs=2)
    engine.begin()
    engine.epoch(1, loss=0.75)
    engine.epoch(2, loss=0.25)
    engine.end()
    out = run_command("watch last").out
    assert "epoch 1/2  loss 0.7500" in out
    assert "epoch 2/2  loss 0.2500" in out


def test_a_failed_run_gives_its_status(no_terminal, run_command, new_run):
    engine = new_run()
    engine.begin()
    engine.end(Outcome.FAILED, reason="it would not learn")
    result = run_command("watch last --plain")
    assert result.status == 1
    assert "it would not learn" in result.err


def test_a_lost_run_gives_its_status(no_terminal, run_command, new_run, dead_pid):
    engine = new_run(pid=dead_pid)
    engine.begin()
    engine.epoch(1)
    engine.writer.close()
    result = run_command("watch last --plain")
    assert result.status == 1
    assert "was lost after step 4" in result.out
    assert f"Train it again: {Plan(model='cnn', epochs=2).command()}" in result.err


def test_a_lost_run_that_was_queued_says_why_and_how_to_queue_it_again(
    no_terminal, run_command, new_run, dead_pid, monkeypatch
):
    engine = new_run(pid=dead_pid)
    engine.begin()
    engine.writer.close()
    notice = "I0000 00:00:1795701232.546177    9816 port.cc:153] oneDNN custom operations are on."
    (engine.directory / "log.txt").write_text(f"the last word\n\n{notice}\n")
    seen = []

    def info(reader, read=RunReader.info):
        found = read(reader)
        seen.append(found)
        return replace(found, status=Status.QUEUED) if len(seen) == 1 else found

    monkeypatch.setattr(RunReader, "info", info)
    err = run_command("watch last --plain").err
    assert "the last word" in err
    assert "oneDNN" not in err
    assert f"Train it again: {Plan(model='cnn', epochs=2).command()} --queue" in err


def test_a_stopped_run_of_which_not_all_was_saved_says_so(no_terminal, run_command, new_run):
    engine = new_run()
    engine.begin()
    engine.end(Outcome.STOPPED, reason="SIGTERM; disk full: not all was saved", hint="continue it from step 4: ...")
    said = run_command("watch last --plain").err
    assert "was stopped: SIGTERM; disk full: not all was saved; continue it from step 4: ..." in said


def test_on_a_terminal_it_opens_the_dashboard_on_the_run(monkeypatch, run_command, new_run):
    opened = []
    monkeypatch.setattr("accel_tui.cli.watch.has_terminal", lambda: True)
    monkeypatch.setattr("accel_tui.cli.watch.open_dashboard", lambda run: opened.append(run) or 0)
    engine = new_run()
    engine.writer.close()
    assert run_command("watch last").status == 0
    assert opened == [engine.directory]


@pytest.mark.parametrize(
    ("words", "said"),
    [("nothing", "no run 'nothing'"), ("last --json --plain", "exclude each other")],
)
def test_a_wrong_question_is_told(run_command, new_run, words, said):
    new_run().train()
    result = run_command(f"watch {words}")
    assert result.status == 2
    assert said in result.err


def test_a_run_of_a_newer_program_is_refused(no_terminal, run_command, new_run):
    engine = new_run()
    engine.train()
    from accel_engine.run.store.database import RunDatabase

    connection = RunDatabase(engine.directory)
    connection.execute("UPDATE main.meta SET value = 99 WHERE key = 'schema'")
    connection.close()
    result = run_command(f"watch {engine.directory}")
    assert result.status == 1
    assert "newer" in result.err


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        (("a", "b", "b"), "workers: 3 on a, b; all-reduce: ring"),
        (tuple("abcdefgh"), "workers: 8 on 8 machines; all-reduce: ring"),
    ],
)
def test_the_workers_that_train_together_are_told(no_terminal, run_command, new_run, hosts, said):
    engine = new_run()
    workers = tuple(Worker(f"worker {n}", host=host) for n, host in enumerate(hosts))
    engine.begin()
    engine.say(WorkersMet, workers=workers, reduction="ring")
    engine.end()
    assert said in run_command("watch last").out
    lines = [json.loads(line) for line in run_command("watch last --json").lines]
    (met,) = [line for line in lines if line["event"] == "workers_met"]
    assert (met["workers"], met["reduction"]) == (list(map(asdict, workers)), "ring")


def test_the_loss_comes_first_whatever_order_a_script_has_its_metrics_in() -> None:
    assert means({"accuracy": 0.5, "loss": 0.25, "mae": 1.5}) == "loss 0.2500  accuracy 0.5000  mae 1.5000"


def test_a_wait_for_the_disk_is_told_once(no_terminal, run_command, new_run, wait_until):
    engine = new_run(epochs=1)
    engine.begin()
    engine.writer.show_problem(DiskProblem.READ_ONLY)

    def go_on():
        engine.writer.show_problem(None)
        engine.epoch(1)
        engine.end()

    later = threading.Timer(0.5, go_on)
    later.start()
    result = run_command(f"watch {engine.directory.name}")
    later.join()
    assert result.err == "accel-tui: read-only disk: waiting to write again\n"
    assert result.status == 0
