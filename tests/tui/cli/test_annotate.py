import json

import pytest

from accel_engine.run import list_runs


def test_a_live_run_is_renamed_noted_and_tagged(run_command, new_run):
    engine = new_run()
    engine.begin()
    run = engine.directory.name
    assert run_command(f"rename {run} 'the best'").out == f"{run}: name 'the best'\n"
    assert run_command("note 'the best' with  clean labels").out == f"{run}: note 'with clean labels'\n"
    assert run_command(f"tag {run} +paper old").out == f"{run}: tags old paper\n"
    assert run_command(f"tag {run} -old +new").out == f"{run}: tags new paper\n"
    engine.epoch(1)
    engine.end()
    (told,) = map(json.loads, run_command("runs --json").lines)
    assert (told["name"], told["note"], told["tags"]) == ("the best", "with clean labels", ["new", "paper"])
    assert f"{run[:4]} the best" in run_command("runs").out


def test_empty_words_take_labels_away(run_command, new_run):
    run = new_run(name="planned").directory.name
    run_command(f"rename {run} other")
    assert "name reset" in run_command(f"rename {run} ''").out
    assert "note removed" in run_command(f"note {run} ''").out
    assert "no tags" in run_command(f"tag {run} -gone").out
    assert list_runs()[0].info.name == "planned"


@pytest.mark.parametrize(
    "words", ["tag last +a,b", "rename last " + "n" * 81, "tag nobody +a", "tag last", "note last"]
)
def test_what_cannot_be_said_is_refused(run_command, new_run, words):
    new_run()
    result = run_command(words)
    assert result.status == 2
    assert result.err.startswith("accel-tui: ")
