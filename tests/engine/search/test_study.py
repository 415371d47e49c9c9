"""The study of a search in Optuna's storage: what samplers and pruners are told, and journals that were cut."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accel_engine.errors import RunError, UsageError
from accel_engine.search.storage import create_study, load_definition
from accel_engine.search.study_paths import shown_address, study_directory
from accel_engine.search.study_reader import StudyReader
from accel_engine.search.study_writer import StudyWriter
from accel_engine.search.trial import Trial, TrialReport, TrialState
from engine.search.searching import Search, define, joined


def opened(**changes: Any) -> StudyWriter:
    """The study of a new search, as its process has it open."""
    definition = define(**changes)
    directory = study_directory(definition.name)
    create_study(directory, definition)
    return StudyWriter(directory)


def report(study: StudyWriter, trial: int, number: int, value: float) -> bool:
    """Report a value; returns whether the pruner ends the trial."""
    found = TrialReport(trial, number, number, 0.0, value)
    is_pruned = study.should_prune(number, found)
    study.add_report(number, found)
    return is_pruned


def finish(study: StudyWriter, trial: Trial, value: float) -> None:
    study.end(replace(trial, state=TrialState.FINISHED, objectives={"validation_accuracy": value}))


def test_what_has_become_of_a_trial_is_read_on_other_machines_too(tmp_path: Path) -> None:
    search = Search(define(trials=40, pruner="off", storage=str(tmp_path / "journal")), tmp_path)
    with StudyWriter(search.directory) as study:
        failed = study.put(study.propose())
        assert not report(study, failed.number, 1, 0.99)
        failed = replace(failed, state=TrialState.FAILED, reason="not a number", run="here")
        study.end(failed)
        study.end(failed)
        pruned = study.put(study.propose())
        report(study, pruned.number, 1, 0.5)
        study.end(replace(pruned, state=TrialState.PRUNED, objectives={"validation_accuracy": 0.5}))
        with joined(search, tmp_path / "there") as other:
            first, second = other.trials.values()
            assert (first.state, first.reason, first.run) == (TrialState.FAILED, "not a number", "")
            assert (second.state, second.objectives) == (TrialState.PRUNED, {"validation_accuracy": 0.5})
            assert first.machine == second.machine != ""
            assert other.reports[0][1].value == 0.99


def test_only_what_is_new_is_read(tmp_path: Path) -> None:
    with opened() as study, StudyReader(study.database.directory) as reader:
        assert (reader.trials, reader.refresh()) == ({}, set())
        first, second = study.put(study.propose()), study.put(study.propose())
        assert reader.refresh() == {0, 1}
        report(study, 1, 1, 0.5)
        before = reader.trials
        assert (reader.refresh(), reader.refresh()) == ({1}, set())
        finish(study, first, 0.7)
        assert reader.refresh() == {0}
        assert before[0] == first, "who has the trials of a moment keeps them"
        assert reader.trials[1] == second
        assert [each.value for each in reader.reports[1].values()] == [0.5]


@pytest.mark.parametrize(("name", "value"), [("report 1", [1, 1]), ("report x", [1, 1, 1.0, 1.0]), ("trial", "x")])
def test_attributes_that_another_program_has_written_are_an_error(name: str, value: object) -> None:
    with opened() as study:
        study.put(study.propose())
        study._storage.set_trial_user_attr(0, name, value)
        with pytest.raises(RunError, match=r"the storage .* cannot be used"):
            StudyReader(study.database.directory)


@pytest.mark.parametrize(
    ("pruner", "trials", "first_pruned"),
    [("asha", 12, 1), ("auto", 12, 4), ("auto", 40, 4)],
    ids=["asha", "auto with few trials", "auto with many"],
)
def test_the_automatic_choice_prunes_once_four_trials_have_a_result(
    pruner: str, trials: int, first_pruned: int
) -> None:
    pruned = []
    with opened(trials=trials, sampler="tpe", pruner=pruner) as study:
        for count in range(8):
            trial, value = study.put(study.propose()), 0.9 - count / 10  # each worse than all before
            first = TrialReport(trial.number, 1, 1, 0.0, value)
            pruned.append(study.should_prune(1, first))
            assert study.should_prune(1, first) is pruned[-1], "as a process asks that was killed before it noted it"
            study.add_report(1, first)
            if pruned[-1]:
                study.end(replace(trial, state=TrialState.PRUNED))
            else:
                finish(study, trial, value)
        assert pruned.index(True) == first_pruned
        assert not report(study, study.put(study.propose()).number, 1, 0.95)


@pytest.mark.parametrize("is_shared", [True, False])
def test_a_line_that_was_cut_breaks_no_journal(tmp_path: Path, is_shared: bool) -> None:
    with opened(pruner="off", storage=str(tmp_path / "journal") if is_shared else "") as study:
        assert study.put(study.propose()).number == 0
        for number, text in enumerate(('{"op_code": 4, "wor', "x" * 10_000), 1):
            with Path(study.database.address).open("a") as file:
                file.write(text)
            assert study.put(study.propose()).number == number
        with StudyWriter(study.database.directory) as again:
            assert again.put(again.propose()).number == 3


def test_proposals_that_a_killed_process_has_not_noted_are_taken_up() -> None:
    with opened() as study:
        values = [study.propose().values for _ in range(2)]
        study._storage.create_new_trial(study._id)  # without values
        with StudyWriter(study.database.directory) as again:
            assert [each.values for each in again.unfinished()] == values
            assert again.propose().number == 3


@pytest.mark.parametrize(
    "storage",
    ["postgresql://me:secret@host/db", "nosql://me:secret@host:1/db?password=secret", "mysql://me:sec:secret@"],
)
def test_a_password_of_a_storage_is_in_no_message(storage: str) -> None:
    with pytest.raises((RunError, UsageError)) as caught:
        load_definition(storage)
    assert "secret" not in str(caught.value)
    assert "://" in str(caught.value)


def test_the_address_of_a_storage_is_not_on_it(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/shared.db?timeout=9"
    with opened(storage=storage) as study:
        study.redefine(trials=7, at_once=3)
        assert study.definition == define(storage=storage, trials=7, at_once=3)
        assert load_definition(storage) == define(storage=storage, trials=7), "of this machine alone"
        assert study._shared.storage == ""
    assert shown_address(storage) == f"sqlite:///{tmp_path}/shared.db"


def test_the_sampler_avoids_values_that_fail_after_good_reports() -> None:
    over = ("optimizer=adam,sgd", "learning_rate=1e-4..1e-1:log")
    failed = []
    with opened(over=over, sampler="tpe", pruner="off", trials=40) as study:
        for _ in range(40):
            trial = study.put(study.propose())
            has_failed = trial.values["optimizer"] == "sgd"
            report(study, trial.number, 1, 0.99 if has_failed else 0.5)
            study.end(replace(trial, state=TrialState.FAILED if has_failed else TrialState.PRUNED))
            failed.append(has_failed)
    assert sum(failed[10:]) < 12, "20 and more, if it is told of the reports"
