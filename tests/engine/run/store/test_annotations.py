from contextlib import closing
from pathlib import Path

import pytest

from accel_engine.errors import RunError, UsageError
from accel_engine.plan import Plan
from accel_engine.run import Annotations, RunReader, RunWriter, create, find_run, list_runs, reopen
from accel_engine.run.store.annotations import apply_tag_changes, rename_run, set_note, set_tags
from recorded_run import execute


def labels(directory: Path) -> Annotations:
    with closing(RunReader(directory)) as reader:
        return reader.info().annotations


def test_a_run_has_no_labels_before_it_is_given_some(directory: Path) -> None:
    assert labels(directory) == Annotations()
    (run,) = list_runs()
    assert run.info is not None
    assert run.info.name == "first try"


def test_name_note_and_tags_stand_beside_the_plan(directory: Path) -> None:
    assert rename_run(directory, " the  best\none ").name == "the best one"
    set_note(directory, "with the old data")
    assert set_tags(directory, ["+paper", "old", "-gone"]).tags == ("old", "paper")
    (run,) = list_runs()
    assert run.info is not None
    assert run.info.annotations == Annotations("the best one", "with the old data", ("old", "paper"))
    assert run.info.title == run.info.name == "the best one"
    assert run.info.plan is not None
    assert run.info.plan.name == "first try"
    assert find_run("the best one") == directory
    assert set_tags(directory, ["-old"]).tags == ("paper",)
    assert rename_run(directory, "").name == ""
    assert list_runs()[0].info.title == "first try"  # type: ignore[union-attr]


def test_labels_are_given_while_an_engine_writes_and_stay_when_the_run_is_taken_up_again(
    directory: Path, writer: RunWriter
) -> None:
    writer.begin()
    set_tags(directory, ["live"])
    writer.write_chunk(0, 0.0, 1.0, {"loss": [1.0]})
    writer.heartbeat()
    rename_run(directory, "renamed")
    writer.close()
    reopen(directory, Plan(name="another"))
    assert labels(directory) == Annotations("renamed", "", ("live",))


def test_tags_are_changed_by_words_with_signs() -> None:
    assert apply_tag_changes(("a", "b"), ["-a", "+c", "d", "-x"]) == ("b", "c", "d")


@pytest.mark.parametrize("word", ["", "+", "two words", "-", "++a", "a,b", "x" * 41, "\x1b[31m"])
def test_what_is_no_tag_is_refused(directory: Path, word: str) -> None:
    with pytest.raises(UsageError, match="invalid tag"):
        set_tags(directory, [word])
    assert labels(directory) == Annotations()


def test_too_long_a_name_or_note_is_refused(directory: Path) -> None:
    with pytest.raises(UsageError, match="at most 80 characters; this one has 81"):
        rename_run(directory, "n" * 81)
    with pytest.raises(UsageError, match="at most 2000"):
        set_note(directory, "n" * 2001)


def test_what_cannot_be_seen_is_written_out_in_a_name_and_a_note(directory: Path) -> None:
    assert rename_run(directory, "a\x1b[2J\tb\u202e").name == r"a\x1b[2J b\u202e"
    assert set_note(directory, "👩\u200d💻 \x1b[1mbold\x1b[0m").note == "👩\u200d💻 bold"


def test_what_is_no_run_takes_no_labels(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no run in"):
        rename_run(tmp_path, "x")


def test_damaged_labels_are_an_error() -> None:
    directory = create(Plan())
    execute(directory, "INSERT INTO main.meta VALUES ('tags', '{')")
    assert "row 'tags' of the table meta" in list_runs()[0].problem
    with pytest.raises(RunError, match="row 'tags' of the table meta"):
        rename_run(directory, "x")
