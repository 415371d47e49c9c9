import json
import math
from dataclasses import replace

import pytest

from accel_engine.advice import Cure, Gain
from accel_engine.advice.cures import apply_cure
from accel_engine.race import cure_race
from accel_engine.run.store.database import RunDatabase
from tui.fake_script import FakeScript
from tui.stand_in_findings import MEMORY, POOR, SLOW, fail, find, raced


def test_a_healthy_run_takes_a_line_that_says_what_was_looked_at(run_command, new_run, monkeypatch):
    find(monkeypatch)
    run = new_run()
    run.train()
    result = run_command(f"advise {run.directory.name}")
    assert result.status == 0
    words = " ".join(result.out.split())
    assert words.startswith(f"{run.directory.name}: nothing found in 8 steps, 2 epochs, 2 validations.")
    assert "Not judged, as not recorded: readings of devices" in words


def test_findings_have_evidence_cost_and_cures_those_that_matter_most_first(run_command, new_run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    find(monkeypatch, MEMORY, SLOW, POOR)
    run = new_run(name="first")
    run.train()
    result = run_command("advise first")
    assert result.status == 0
    heads = [line for line in result.lines if line[:1].isdigit() and line[1] == "."]
    assert heads == [
        "1. The loss rises (diverging)",
        "2. Training waits for input (input-wait)",
        "3. The memory of the GPU is nearly full (batch-too-large)",
    ]
    assert "   evidence    The device waits for batches 42% of the time (steps 40 to 119)" in result.lines
    assert "               The processors are 97% busy" in result.lines
    assert "   cost        42% of the training time" in result.lines
    assert "   option      --xla on" in result.lines
    assert "   or          Decode the images once, to a file of arrays." in result.lines
    assert "   gain        1.7 times the steps per second, by the measured share of the time" in result.lines


@pytest.mark.parametrize("width", [40, 80, 200])
def test_lines_fit_the_terminal(run_command, new_run, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    find(monkeypatch, replace(SLOW, cost="as much time as it takes to say so in a line that is long " * 4))
    run = new_run()
    run.train()
    assert max(map(len, run_command("advise last").lines)) <= max(width, 55)


def test_each_run_is_an_object_in_a_line(run_command, new_run, monkeypatch):
    gain = Gain("more", "nothing", math.inf)
    find(monkeypatch, replace(SLOW, weight=math.nan, cures=(*SLOW.cures, Cure("?", {"batch_size": 32}, gain=gain))))
    one, other = new_run(name="one"), new_run(name="other")
    one.train()
    other.begin()
    result = run_command("advise one other --json")
    assert result.status == 0
    first, second = map(json.loads, result.lines)
    assert "NaN" not in result.out
    assert "Infinity" not in result.out
    assert (first["run"], first["status"], first["kind"]) == (one.directory.name, "finished", "training")
    assert (second["run"], second["status"]) == (other.directory.name, "running")
    assert first["looked_at"] == {"steps": 8, "epochs": 2, "validations": 2, "readings": 0}
    (found,) = first["findings"]
    assert (found["id"], found["category"], found["confidence"]) == ("input-wait", "speed", "certain")
    assert found["weight"] is None
    assert found["evidence"][0]["steps"] == [40, 120]
    assert found["evidence"][1]["steps"] is None
    compiled, words, anew = found["cures"]
    assert compiled["changes"] == {"xla": "on"}
    assert compiled["command"] == "accel-tui train --model cnn --name one --epochs 2 --xla on"  # the run is finished
    assert compiled["gain"]["factor"] == 1.7
    assert words["command"] == ""
    assert anew["command"].startswith("accel-tui train ")
    assert "--batch-size 32" in anew["command"]
    assert anew["gain"]["factor"] is None


def test_a_cure_that_the_plan_cannot_have_has_no_command_in_json(run_command, new_run, monkeypatch):
    cures = (Cure("?", {"clip_norm": 1.0, "global_clip_norm": 1.0, "batch_size": 8}), *SLOW.cures)
    find(monkeypatch, replace(SLOW, cures=cures))
    new_run().train()
    result = run_command("advise last --json")
    assert result.status == 0
    assert [cure["command"] is None for cure in json.loads(result.out)["findings"][0]["cures"]] == [True, False, False]


def test_a_rule_that_fails_does_not_silence_the_others(run_command, new_run, monkeypatch):
    fail(monkeypatch, SLOW)
    new_run().train()
    result = run_command("advise last")
    assert result.status == 0
    assert "1. Training waits for input (input-wait)" in result.lines
    failed = "failing (ZeroDivisionError: division by zero)"
    assert f"Internal error: 1 rule failed: {failed}." in " ".join(result.out.split())
    found = json.loads(run_command("advise last --json").out)
    assert [each["id"] for each in found["findings"]] == ["input-wait"]
    assert found["failed_rules"] == [failed]


def test_a_healthy_run_has_no_findings_in_json(run_command, new_run, monkeypatch):
    find(monkeypatch)
    new_run().train()
    found = json.loads(run_command("advise last --json").out)
    assert found["findings"] == []
    assert "layers" in found["not_judged"]


def test_cures_of_a_script_are_words_for_scripts(run_command, home, monkeypatch):
    find(monkeypatch, SLOW)
    script = FakeScript().begin().fit("base", epochs=1)
    result = run_command(f"advise {script.directory.name}")
    assert "   cure        Pass jit_compile=True to compile()." in result.lines
    assert "option" not in result.out
    script.close()


def test_a_run_that_cannot_be_read_does_not_keep_others_from_it(run_command, new_run, monkeypatch):
    find(monkeypatch)
    newer, whole = new_run(), new_run()
    whole.train()
    connection = RunDatabase(newer.directory)
    connection.execute("UPDATE main.meta SET value = 99 WHERE key = 'schema'")
    connection.close()
    result = run_command(f"advise {newer.directory.name} {whole.directory.name}")
    assert result.status == 1
    assert "newer accel-tui" in result.err
    assert "nothing found" in result.out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("nowhere", "nowhere"),
        ("", "missing argument"),
        ("one other --try input-wait", "--try needs a single run"),
        ("one --try input-wait --apply input-wait", "not both"),
        ("one --apply input-wait --undo", "not both"),
        ("one other --undo", "--undo needs a single run"),
        ("one --undo --cure 2", "--cure needs --try or --apply"),
        ("one --cure 2", "--cure needs --try or --apply"),
        ("one --seconds 5", "--seconds needs --try"),
        ("one --try input-wait --seconds 0", "0"),
    ],
)
def test_wrong_usage(run_command, new_run, words, problem):
    new_run(name="one")
    new_run(name="other")
    result = run_command(f"advise {words}")
    assert result.status == 2
    assert problem in result.err


@pytest.fixture
def actions(monkeypatch):
    """Stands in for what tries, applies and takes back, and notes what it was asked."""
    asked = []

    def try_cure(directory, changes, on_progress, *, seconds, quantity):
        asked.append((directory.name, changes, seconds, quantity))
        for detail in ("compiling", "taking turns", "taking turns"):
            on_progress(cure_race.CureProgress(1.0, 2.0, detail))
        return raced((600.0,) * 8, (900.0,) * 8, **changes)

    def apply(directory, changes, *, finding):
        asked.append((directory.name, changes, finding))
        return apply_cure.AppliedCure(apply_cure.Method.COMMAND, changes, {"xla": "auto"}, "it has XLA")

    def undo(directory):
        asked.append(directory.name)
        return apply_cure.AppliedCure(apply_cure.Method.CONTINUED, {"xla": "auto"}, {"xla": "on"}, "as before")

    monkeypatch.setattr(cure_race, "try_cure", try_cure)
    monkeypatch.setattr(apply_cure, "apply", apply)
    monkeypatch.setattr(apply_cure, "undo", undo)
    find(monkeypatch, replace(SLOW, cures=(*SLOW.cures, Cure("?", {"batch_size": 32}))), POOR)
    return asked


def test_a_cure_is_tried_and_its_progress_is_said_once(run_command, new_run, actions):
    run = new_run(name="one").directory.name
    result = run_command("advise one --try input-wait --cure 2 --seconds 5")
    assert result.status == 0
    assert [line.split()[:4] for line in result.lines[:3]] == [
        ["CONFIGURATION", "EXAMPLES/S", "SPEED", "MEMORY"],
        ["the", "cure", "900", "±0%"],
        ["this", "plan", "600", "±0%"],
    ]
    assert result.lines[-1] == "The fastest is the cure, 1.5 times as fast as this plan: --batch-size 32"
    assert "8 rounds in turns, from the initial weights." in result.lines
    assert result.err.splitlines() == ["accel-tui: compiling", "accel-tui: taking turns"]
    assert actions == [(run, {"batch_size": 32}, 5.0, "speed")]
    told = json.loads(run_command("advise one --try diverging --json").out)
    assert actions[1:] == [(run, {"learning_rate": 0.0001}, 10.0, "learning")]  # what the finding is about
    rates = [(each["configuration"], each["examples_per_second"], each["speed"]) for each in told["configurations"]]
    assert rates == [("this plan", 600.0, 1.0), ("the cure", 900.0, 1.5)]
    assert (told["run"], told["finding"], told["is_better"]) == (run, "diverging", True)


def test_a_cure_is_applied_and_taken_back(run_command, new_run, actions):
    run = new_run(name="one").directory.name
    result = run_command("advise one --apply input-wait")
    assert (result.status, result.lines, result.err) == (0, ["it has XLA"], "")
    assert run_command("advise one --undo").lines == ["as before"]
    assert actions == [(run, {"xla": "on"}, "input-wait"), run]
    told = json.loads(run_command("advise one --apply input-wait --json").out)
    changes = {"changes": {"xla": "on"}, "before": {"xla": "auto"}}
    assert told == {"run": run, "how": "by command", **changes, "text": "it has XLA"}
    told = json.loads(run_command("advise one --undo --json").out)
    assert (told["how"], told["changes"]) == ("by continuing the run", {"xla": "auto"})


def test_a_run_without_a_cure_has_nothing_to_take_back(run_command, new_run):
    run = new_run(name="one").directory.name
    result = run_command("advise one --undo")
    assert result.status == 1
    assert f"run {run} has no cure that could be taken back" in result.err
