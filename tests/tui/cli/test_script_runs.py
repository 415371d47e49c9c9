"""What the commands say of scripts under ``accel-tui run``."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from accel_engine.events import Outcome, RunStarted
from accel_engine.run import RunReader, list_runs
from accel_engine.run.directory.run_paths import LOG
from accel_tui.cli import main
from accel_tui.cli.event_text import format_event
from accel_tui.cli.progress import progress
from accel_tui.run_state.fold_events import apply_update
from accel_tui.run_state.state import RunState
from tui.fake_script import COMMAND, FakeScript


@pytest.fixture
def script() -> FakeScript:
    return FakeScript().begin()


def test_wrong_usage_is_told_before_anything_starts(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "train.py").touch()
    for words, problem in (
        ((), "no script: accel-tui run SCRIPT.py"),
        (("nowhere.py",), "no script 'nowhere.py'"),
        (("--parse", "(", "train.py"), "is not a regular expression"),
        (("--devices", "gpu:99", "train.py"), "no device gpu:99"),
    ):
        assert main(["run", *words]) == 2
        assert problem in capsys.readouterr().err
    assert list_runs() == []


def test_each_part_begins_and_ends_with_a_line(script: FakeScript, capsys: pytest.CaptureFixture[str]) -> None:
    script.fit("base", epochs=1)
    script.begin_part("tuned", epochs=3, steps_per_epoch=50).train(20)
    script.end_part(Outcome.STOPPED, "stop requested by me")
    script.end()
    assert main(["watch", script.directory.name, "--plain"]) == 0
    lines = [line.partition(" ")[2] for line in capsys.readouterr().out.splitlines()]
    assert lines[:3] == [
        f"run {script.directory.name}: train.py",
        "part 1: base",
        "10 parameters; 1 epoch of 100 steps, batch size 64; Adam",
    ]
    assert "part 1 finished: loss 0.7200  validation loss 0.9000" in lines
    assert "10 parameters; 3 epochs of 50 steps, batch size 64; Adam" in lines
    assert "part 2 stopped: stop requested by me; loss 0.7200  validation loss 0.9000" in lines
    assert lines[-1] == "finished at step 120 after 1:23, 200 steps/s"


def test_epochs_are_counted_within_their_part(script: FakeScript, capsys: pytest.CaptureFixture[str]) -> None:
    script.fit("base", epochs=2, steps_per_epoch=10)
    script.begin_part("tuned", epochs=3, steps_per_epoch=50).train(50)
    script.end_epoch()
    script.train(20)
    with closing(RunReader(script.directory)) as reader:
        state = apply_update(RunState(info=reader.info()), reader.poll())
    assert progress(state).startswith("epoch 2/3  loss ")
    script.end_part()
    script.end()
    assert main(["watch", script.directory.name, "--plain"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[2] for line in lines if line[1] == "epoch" and line[3] == "loss"] == ["1/2", "2/2", "1/3"]
    assert [line[2] for line in lines if line[1] == "epoch" and line[3] == "validation"] == ["1/2", "2/2", "1/3"]


def test_json_lines_have_the_parts(script: FakeScript, capsys: pytest.CaptureFixture[str]) -> None:
    script.fit("base", epochs=1)
    script.end()
    assert main(["watch", script.directory.name, "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (began,) = (line for line in lines if line["event"] == "part_started")
    (ended,) = (line for line in lines if line["event"] == "part_ended")
    assert (began["part"], began["name"], began["step"], began["parsed"]) == (1, "base", 0, False)
    assert (ended["outcome"], ended["step"], ended["epoch"], ended["validation_loss"]) == ("finished", 100, 1, 0.9)


def test_a_script_that_failed_says_where_its_output_is_and_how_to_run_it_again(
    script: FakeScript, capsys: pytest.CaptureFixture[str]
) -> None:
    script.end(Outcome.FAILED, "the script exited with status 3")
    assert main(["watch", script.directory.name, "--plain"]) == 1
    said = capsys.readouterr().err
    assert "the script exited with status 3" in said
    assert f"Log: {script.directory / LOG}\nRun it again: {COMMAND}\n" in said


def test_a_lost_script_has_lost_its_supervisor(script: FakeScript, capsys: pytest.CaptureFixture[str]) -> None:
    script.begin_part("base").train(10)
    script.close()
    assert main(["watch", script.directory.name, "--plain"]) == 1
    said = capsys.readouterr().err
    assert "the script's supervisor was killed after step 10\n" in said
    assert f"Run it again: {COMMAND}\n" in said


def test_lists_find_a_script_by_its_command(script: FakeScript, capsys: pytest.CaptureFixture[str]) -> None:
    script.fit("base", epochs=1)
    script.end()
    FakeScript().begin().end(Outcome.STOPPED)
    assert main(["runs", "--filter", "script:train.py status:finished", "--json"]) == 0
    (found,) = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (found["run"], found["script"]) == (script.directory.name, COMMAND)
    assert found["metrics"]["validation_loss"] == 0.9
    assert main(["runs", "--filter", "script:other.py"]) == 0
    assert "No matching runs" in capsys.readouterr().out


def test_runs_before_their_first_part_are_listed_and_compared(
    script: FakeScript, capsys: pytest.CaptureFixture[str]
) -> None:
    other = FakeScript().begin()
    for words in (["runs"], ["compare", script.directory.name, other.directory.name]):
        assert main(words) == 0
        shown = capsys.readouterr()
        assert "None" not in shown.out + shown.err


def test_steps_are_exported_with_the_epochs_of_their_parts(
    script: FakeScript, capsys: pytest.CaptureFixture[str]
) -> None:
    script.fit("base", epochs=2, steps_per_epoch=3).fit("tuned", epochs=2, steps_per_epoch=5)
    script.end()
    assert main(["export", script.directory.name, "--to", "csv", "-o", "-"]) == 0
    header, *rows = (line.split(",") for line in capsys.readouterr().out.splitlines())
    assert [int(row[header.index("epoch")]) for row in rows] == [1] * 3 + [2] * 3 + [3] * 5 + [4] * 5


def test_values_in_the_output_have_no_epochs(script: FakeScript, capsys: pytest.CaptureFixture[str]) -> None:
    script.begin_part("output", parsed=True).train(4)
    script.end_part()
    script.end()
    assert main(["export", script.directory.name, "--to", "csv", "-o", "-"]) == 0
    assert "epoch" not in capsys.readouterr().out.splitlines()[0]


def test_a_run_without_name_and_model_is_named_by_its_data() -> None:
    started = RunStarted(
        time=0.0, run="k7m2", name="", plan={"model": "", "data": "a.py"}, first_step=0, pid=1, host="h", versions={}
    )
    assert format_event(started, RunState()) == "run k7m2: a.py"
