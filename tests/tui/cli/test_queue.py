"""``train --queue``, ``continue --queue`` and ``queue``; nobody starts the runs."""

import json

import pytest

from accel_engine import run
from accel_engine.events import Outcome
from accel_engine.plan import Plan
from accel_engine.process import engine_process
from accel_engine.process.engine_process import Installation
from accel_engine.run_queue import queue, queue_database
from accel_tui.cli.follow_run import QueueReasons


@pytest.fixture(autouse=True)
def _asleep(monkeypatch):
    monkeypatch.setattr(queue_database, "start_waiter", lambda: None)
    monkeypatch.setattr(engine_process, "find_installation", lambda: Installation("tensorflow-cpu", "2.21.0"))


@pytest.fixture
def add(run_command):
    """Add a run; returns its id."""

    def make(options=""):
        result = run_command(f"train --queue --model mlp {options}")
        assert (result.status, result.err) == (0, "")
        return result.out.strip()

    return make


def states(run_command):
    return {line["run"]: line for line in map(json.loads, run_command("queue --json").lines)}


def test_a_run_is_queued_and_its_id_printed(run_command, add):
    one = add("--name one --priority 3")
    assert run.list_runs()[0].id == one
    assert " queued " in run_command("runs").lines[1]
    result = run_command("queue")
    assert result.lines[0].split() == ["RUN", "PRIORITY", "DEVICES", "STATE"]
    assert result.lines[1].split() == ["1", one, "3", "waits"]


def test_an_empty_queue(run_command):
    assert run_command("queue").out == "The queue is empty. Add a run: accel-tui train --queue\n"
    assert run_command("queue --json").out == ""


def test_a_run_after_another(run_command, add):
    one = add("--name one")
    other = add("--name other --after one --after last")
    found = states(run_command)[other]
    assert found["after"] == [one]
    assert (found["position"], found["status"], found["reason"]) == (2, "queued", f"after {one}")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("train --priority 3", "--priority, --after and --devices-each go with --queue"),
        ("train --queue --json", "--json, --plain, --detach and --queue exclude each other"),
        ("train --queue --after nope", "no runs yet"),
        ("train --queue --devices-each 2", "the run gets no accelerator, as it trains on the CPU"),
        ("train --queue --priority 99999999", "a priority is a whole number from"),
        ("queue cancel nope", "no runs yet"),
        ("queue limit 0", "must be a number from 1 to 1,000, or auto"),
        ("queue limit -3", "the limit '-3' must be a number from 1 to 1,000, or auto"),
        ("queue --json limit 1", "--json lists the queue"),
    ],
)
def test_what_is_wrong_is_refused_and_leaves_no_run(run_command, words, problem):
    result = run_command(words)
    assert result.status == 2
    assert problem in result.err
    assert run.list_runs() == []
    assert queue.entries() == []


def test_a_command_that_is_interrupted_leaves_no_run(run_command, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(queue, "enqueue", interrupted)
    assert run_command("train --queue --model mlp").status == 130
    assert run.list_runs() == []


def test_the_order_changes(run_command, add):
    one, two, three = (add(f"--name {name}") for name in ("one", "two", "three"))
    assert run_command(f"queue move {three} 1").out == f"{three}: moved\n"
    assert run_command(f"queue priority {one} -4").out == f"{one}: priority -4\n"
    assert run_command(f"queue hold {two}").out == f"{two}: held\n"
    found = states(run_command)
    assert list(found) == [three, two, one]
    assert [line["held"] for line in found.values()] == [False, True, False]
    assert run_command(f"queue release {two.partition('-')[0]}").out == f"{two}: released\n"
    assert not states(run_command)[two]["held"]


@pytest.mark.parametrize("words", ["queue cancel one", "stop one", "stop one --now"])
def test_a_run_is_taken_out(run_command, add, words):
    one = add("--name one")
    assert run_command("pause one").err.startswith(f"accel-tui: run {one} waits in the queue: it has no engine yet")
    assert run_command("rm one --yes").status == 1
    assert run_command(words).status == 0
    assert states(run_command) == {}
    assert " stopped " in run_command("runs").lines[1]
    assert run_command("rm one --yes").status == 0


def test_a_continuation_is_queued(run_command, new_run):
    engine = new_run()
    engine.begin()
    engine.epoch(1)
    engine.save()
    engine.end(Outcome.STOPPED)
    name = engine.directory.name
    assert run_command("continue last --queue --priority 2 --epochs 9").out == f"{name}\n"
    assert states(run_command)[name]["priority"] == 2
    assert run_command("continue last --queue").err == (
        f"accel-tui: run {name} is queued: follow it with accel-tui watch {name}\n"
    )
    assert run_command("stop last").status == 0
    assert run.list_runs()[0].info.plan.epochs == engine.plan.epochs


def test_the_limit(run_command):
    assert run_command("queue limit").out == "auto: as many at once as there are accelerators, or one on the CPU\n"
    assert run_command("queue limit 3").out == "at most 3 at once (accel-tui queue limit auto: the default)\n"
    assert queue.limit() == 3
    assert run_command("queue limit auto").status == 0
    assert queue.limit() is None


def test_the_limit_of_the_settings(run_command, tmp_path, monkeypatch):
    file = tmp_path / "settings.toml"
    file.write_text("[queue]\nat_once = 4\n")
    monkeypatch.setenv("ACCEL_TUI_SETTINGS", str(file))
    assert run_command("queue limit").out == "at most 4 at once, by the setting queue.at_once\n"
    assert run_command("queue limit 2").out == "at most 2 at once (accel-tui queue limit auto: the default)\n"
    assert run_command("queue limit auto").out == "at most 4 at once, by the setting queue.at_once\n"
    file.write_text("[queue]\nat_once = 0\n")
    assert "queue.at_once = 0: must be an integer from 1 to 1000, or auto" in run_command("queue").err


def test_who_follows_a_queued_run_reads_why_it_waits(add, monkeypatch):
    one = add("--name one")
    monkeypatch.setattr("accel_tui.cli.follow_run._QUEUE_INTERVAL", 0.0)
    reasons = QueueReasons()
    assert reasons.new(one) == [f"run {one} waits: waits"]
    assert reasons.new(one) == []
    queue.hold(one)
    (said,) = reasons.new(one)
    assert said.startswith(f"run {one} waits: held by ")
    lost = run.create(Plan(model="mlp"), queued=True).name
    assert QueueReasons().new(lost) == [f"run {lost} waits: not in the queue; add it: accel-tui queue release {lost}"]
