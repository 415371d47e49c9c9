import shlex

import pytest

import damaged_runs
from accel_engine.run.directory.run_paths import WORKERS


def test_the_rows_that_are_saved_and_lost_are_printed(run_command):
    run = damaged_runs.record()
    damaged_runs.set_value(run, "sample", "readings", "x")
    result = run_command(f"repair {run.name}")
    assert result.status == 0
    rows = {line[:25].strip(): line[25:].split() for line in result.lines}
    assert rows["chunks of steps"] == ["20", "0"]
    assert rows["device samples"] == ["0", "40"]
    assert "Saved as run" in result.out
    assert "with steps up to 5,000." in result.out


def test_a_damaged_row_is_an_error_of_every_command_that_reads_it(run_command, tmp_path):
    run = damaged_runs.record()
    whole = damaged_runs.record("other")
    damaged_runs.set_value(run, "event", "body", "{", 12)
    damaged_runs.set_value(run, "chunk", "first_step", "=@ * 1000000000", 3)
    said = f"run {run.name} cannot be read: its run.db is damaged (row 13 of the table event: "
    for words in (
        f"watch {run.name} --plain",
        f"export {run.name} --to json -o {tmp_path / 'run.json'}",
        f"compare {run.name} {whole.name}",
    ):
        result = run_command(words)
        assert (result.status, said in result.err) == (1, True), result.err
        assert result.err.endswith(f"Save what is whole: accel-tui repair {run.name}\n")
    assert "row 4 of the table chunk" in run_command(f"export {run.name} --to csv -o -").err  # it has no events
    listed = " ".join(run_command("runs").out.split())
    assert said in listed
    assert "other run finished" in listed
    assert "Saved as run" in run_command(f"repair {run.name}").out


def test_nothing_to_save_ends_with_1(run_command):
    run = damaged_runs.record()
    damaged_runs.overwrite(run, 0, bytes(4096))
    result = run_command(f"repair {run.name}")
    assert result.status == 1
    assert "nothing of run" in result.err


def test_a_whole_run_needs_no_repair(run_command):
    run = damaged_runs.record()
    result = run_command(f"repair {run.name}")
    assert (result.status, result.err) == (0, "")
    assert result.out == f"Run {run.name} is whole: there is nothing to repair.\n"
    assert [run] == list(run.parent.iterdir())


def test_an_unreadable_run_is_named_with_what_saves_it(run_command):
    run = damaged_runs.record()
    damaged_runs.overwrite(run, 0.1, b"\xff" * 4096)
    said = (
        f"run {run.name} cannot be read: its run.db is damaged (database disk image is malformed). "
        f"Save what is whole: accel-tui repair {run.name}"
    )
    assert said in " ".join(run_command("runs").out.split())
    assert said in run_command(f"watch {run.name} --plain").err


@pytest.mark.parametrize("place", ["workers", "elsewhere"])
def test_the_command_that_saves_a_run_finds_it(run_command, tmp_path, place):
    run = damaged_runs.record()
    other = damaged_runs.copied(run, run / WORKERS / "1" if place == "workers" else tmp_path / "my runs" / "xy")
    damaged_runs.set_value(other, "event", "body", "{", 12)
    said = run_command(f"watch {shlex.quote(str(other))} --plain").err
    assert "Saved as run" in run_command(said.partition("Save what is whole: accel-tui ")[2].splitlines()[0]).out
    damaged_runs.overwrite(other, 0.1, b"\xff" * 4096)
    said = run_command(f"watch {shlex.quote(str(other))} --plain").err
    assert "Saved as run" in run_command(said.partition("Save what is whole: accel-tui ")[2].splitlines()[0]).out


def test_a_run_whose_age_is_not_known_has_none(run_command):
    run = damaged_runs.record()
    damaged_runs.change(run, "DELETE FROM meta WHERE key = 'created'")
    damaged_runs.change(run, "DELETE FROM event")
    assert "ago" not in run_command("runs").out
    assert '"created": null' in run_command("runs --json").out


def test_a_run_whose_end_is_damaged_is_not_told_as_one_that_exited(run_command):
    run = damaged_runs.record()
    damaged_runs.change(run, "UPDATE event SET body = '{' WHERE kind = 'run_ended'")
    result = run_command(f"watch {run.name} --plain")
    assert "is damaged (row 34 of the table event: " in result.err
    assert "unexpectedly" not in result.err + result.out
