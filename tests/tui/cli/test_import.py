"""``accel-tui import``, and what other commands make of an imported run."""

import json
from pathlib import Path

import pytest

from accel_engine.run import list_runs, runs_directory
from engine.imported_runs.event_files import old, old_image, tensor, write

TABLE = "step,time,loss,val_loss\n0,1700000000,0.5,\n1,1700000001,0.25,0.75\n"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    """A directory with sources of each kind."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    (place / "results.csv").write_text(TABLE)
    for name in ("a", "b"):
        write(place / "logs" / name, [old("loss", step, 1.0, 1001.0 + step) for step in range(3)])
    return place


@pytest.fixture
def imported(run_command) -> str:
    return str(run_command("import results.csv --name mine --tag paper").lines[0])


def test_the_id_of_each_run_is_printed(run_command):
    result = run_command("import logs results.csv")
    assert (result.status, result.err) == (0, "")
    assert sorted(result.lines) == sorted(run.id for run in list_runs())
    assert [line.partition("-")[2] for line in result.lines] == ["a", "b", "results"]


def test_notes_are_printed_and_stay_in_the_run(run_command, here):
    (here / "results.csv").write_text("loss,word\n0.5,x\n")
    result = run_command("import results.csv")
    assert result.status == 0
    assert "columns that are not numbers are left out: word" in result.err
    assert "note: columns that are not numbers are left out: word" in run_command("watch last").out


def test_values_beyond_float32_are_a_note_and_no_warning(run_command, here):
    (here / "results.csv").write_text("step,time,loss\n0,1700000000,1e308\n1,1700000001,1\n")
    result = run_command("import results.csv")
    assert (result.status, len(result.err.splitlines())) == (0, 1)
    assert "read as infinite: 1 value in loss: beyond the range of float32" in result.err


def test_a_log_of_keras_needs_no_note(run_command, here):
    (here / "log.csv").write_text("epoch,accuracy,loss\n0,0.5,1\n1,0.75,0.5\n")
    result = run_command("import log.csv")
    assert (result.status, result.err) == (0, "")


def test_images_that_are_left_out_are_in_a_note(run_command, here):
    write(here / "images", [old_image("\x1b[2Jsamples", 0, b"\xff\xd8\xff"), tensor("word", 0, "hello", "text")])
    result = run_command("import images")
    assert (result.status, "left out: 1 image in" in result.err, "damaged image" in result.err) == (0, True, True)
    assert "\x1b" not in result.out + result.err + run_command("watch last").out
    assert run_command("runs").status == 0


def test_a_name_and_tags(run_command, imported):
    (run,) = list_runs()
    assert run.info is not None
    assert (run.info.name, run.info.annotations.tags) == ("mine", ("paper",))
    refused = run_command("import logs --name mine")
    assert refused.status == 2
    assert "--name names one run, and there are 2" in refused.err


def test_what_is_imported_already_is_refused(run_command, imported):
    refused = run_command("import results.csv")
    assert refused.status == 1
    assert f"is already imported as {imported}; to import it again, add --again" in refused.err
    assert run_command("import results.csv --again").status == 0
    assert len(list_runs()) == 2


def test_one_of_several_that_fails_does_not_keep_the_others(run_command, here):
    (here / "bad.csv").write_text("step,loss\n0,1\n1,much\n")
    result = run_command("import bad.csv results.csv")
    assert result.status == 1
    assert "bad.csv, line 3: 'much' in the column 'loss' is not a number" in result.err
    assert "1 run of 2 not imported" in result.err
    assert [run.id for run in list_runs()] == result.lines


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("", 2, "missing argument 'PATH...'"),
        ("missing", 2, "missing does not exist"),
        ("results.csv --step tick", 2, "--step tick"),
        ("logs --step tick", 2, "--step and --epoch name columns of a CSV file"),
        ("results.csv --tag 'two words'", 2, "invalid tag 'two words'"),
    ],
)
def test_mistakes(run_command, words, status, said):
    result = run_command(f"import {words}")
    assert result.status == status
    assert said in result.err
    assert not runs_directory().exists() or not list(runs_directory().iterdir())


def test_text_from_outside_is_harmless(run_command, here):
    (here / "results.csv").write_text("step,loss,\x1b[2Jword\n0,1,x\n")
    (here / "results.csv").rename(here / "\x1b[2J.csv")
    result = run_command("import $'\\x1b[2J.csv'".replace("$'\\x1b", "'\x1b"))
    assert result.status == 0
    assert "\x1b" not in result.out + result.err + run_command("watch last").out + run_command("runs").out


def test_other_commands_show_it(run_command, imported):
    (shown,) = map(json.loads, run_command("runs --json").lines)
    assert (shown["run"], shown["status"], shown["steps"], shown["best"]) == (imported, "finished", 2, 0.75)
    assert run_command("watch last").lines[-1].endswith("finished at step 2 after 0:01, 1.00 steps/s")
    other = run_command("import logs/a").lines[0]
    compared = json.loads(run_command(f"compare {imported} {other} --json").out)
    assert compared["differs"] == {}
    assert compared["results"]["loss"] == [0.25, 1.0]
    assert run_command(f"export {imported} --to csv -o -").lines[1].startswith("0,1700000000.0,0.5")


def test_nothing_trains_it(run_command, imported):
    for words in ("continue last", "continue last --epochs 3"):
        refused = run_command(words)
        assert refused.status == 1
        assert "results.csv and cannot be continued here" in refused.err
    assert run_command("stop last").status == 1
