"""The state of a search as its study is read, piece by piece."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from accel_engine.run.directory.lock import WriterLock
from accel_engine.search.definition import Objective
from accel_engine.search.search_events import search_ended
from accel_engine.search.study_paths import LOCK, LOG
from accel_engine.search.study_reader import StudyReader
from accel_engine.search.study_writer import StudyWriter
from accel_engine.search.trial import Trial, TrialReport, TrialState
from accel_tui.formatting.table_columns import SortOrder, sort_rows
from accel_tui.study_state import study_list, study_texts
from accel_tui.study_state.state import StudyState, value_range
from accel_tui.study_state.study_follower import read_study
from accel_tui.study_state.study_list import ListedStudy
from accel_tui.study_state.study_texts import objective_form, objective_text
from accel_tui.study_state.trial_columns import trial_columns
from example_study import DEFINITION, END, add_trial, confirm, write_study


def read(directory: Path, state: StudyState | None = None) -> StudyState:
    with StudyReader(directory) as study:
        return read_study(study, state or StudyState("one"))


@pytest.fixture
def directory() -> Path:
    return write_study()


def test_only_what_is_new_is_read_and_nothing_new_is_the_same_state(directory: Path) -> None:
    with StudyReader(directory) as study, StudyWriter(directory) as writer:
        state = read_study(study, StudyState("one"))
        assert len(state.trials) == 36
        assert state.counts[TrialState.RUNNING] == 2
        assert read_study(study, state) is state
        writer.put(replace(state.trials[35], state=TrialState.FINISHED, objectives={"validation_accuracy": 1.0}))
        writer.add_report(11, TrialReport(35, 11, 550, END, 0.93))
        after = read_study(study, state)
    assert after.best is not None
    assert after.best.number == 35
    assert after.curves[35].epochs.tolist() == list(range(1, 12))
    assert after.curves[35].last == 0.93
    assert after.curves[0] is state.curves[0]
    assert after.trials[0] is state.trials[0]


def test_a_continued_trial_replaces_the_epochs_that_it_trains_again(directory: Path) -> None:
    with StudyWriter(directory) as writer:
        writer.add_report(2, TrialReport(35, 2, 100, END, 0.5))
    curve = read(directory).curves[35]
    assert curve.epochs.tolist() == list(range(1, 11))
    assert curve.values[1] == 0.5


def test_of_a_process_that_has_exited_the_last_line_of_its_log_is_told(directory: Path) -> None:
    (directory / LOG).write_text("Traceback\n  ...\nModuleNotFoundError: no module\x1b[31m\n\n")
    state = read(directory)
    assert study_texts.progress_text(state).startswith("ModuleNotFoundError: no module")
    assert "\x1b" not in state.last_words
    with WriterLock(directory, LOCK):
        assert not read(directory, state).last_words


def test_the_time_is_that_for_which_the_search_has_run_and_shared_results_are_not_done_trials(directory: Path) -> None:
    state = read(directory)
    with StudyWriter(directory) as study:
        study.redefine(within=7200.0)
        study.database.update(spent=3400.0)
        add_trial(study, replace(state.trials[3], number=36, duplicate_of=3))
    state = read(directory, state)
    assert study_texts.progress_text(state).startswith("34 of 40 trials · 56:40 of 2:00:00 · ")
    assert "about 10:00 left" in study_texts.progress_text(replace(state, is_running=True))


def test_texts_of_trials_can_be_shown_and_values_stay_as_they_are(directory: Path) -> None:
    with StudyWriter(directory) as study:
        add_trial(study, Trial(36, "", TrialState.FAILED, {"model": "a\x1bb"}, reason="red\x1b[31m"))
    trial = read(directory).trials[36]
    assert "\x1b" not in trial.reason
    assert trial.values["model"] == "a\x1bb"
    assert "\x1b" not in study_texts.parameter_text(trial.values["model"])


def test_of_several_objectives_the_front_has_what_no_other_trial_dominates() -> None:
    objectives = (Objective("validation_accuracy", maximize=True), Objective("time", maximize=False))
    found = {
        number: Trial(number, "", state, {}, {"validation_accuracy": accuracy, "time": time})
        for number, (accuracy, time, state) in enumerate(
            [
                (0.9, 10.0, TrialState.FINISHED),
                (0.8, 5.0, TrialState.FINISHED),
                (0.8, 6.0, TrialState.FINISHED),
                (0.7, 1.0, TrialState.PRUNED),
                (0.99, 1.0, TrialState.FAILED),
            ]
        )
    }
    state = StudyState(definition=replace(DEFINITION, objectives=objectives), trials=found)
    assert state.front == {0, 1, 3}
    assert state.best is found[0]


def test_the_best_trial_and_the_front_are_those_of_the_search_s_own_result(directory: Path) -> None:
    state = read(directory)
    assert state.best is not None
    pruned = replace(state.best, number=36, state=TrialState.PRUNED, objectives={state.monitor.name: 0.9999})
    shared = replace(pruned, number=37, objectives={state.monitor.name: 1.0}, duplicate_of=36)
    state = replace(state, trials={**state.trials, 36: pruned, 37: shared})
    assert state.definition is not None
    assert state.best is pruned
    assert search_ended(state.definition, tuple(state.trials.values()), "finished", "")["best"]["trial"] == 36


def test_both_figures_are_told_the_search_s_best_and_its_plan_trained_again(directory: Path) -> None:
    state = read(directory)
    assert study_texts.confirmation_text(state) == ""
    confirm(directory, 26)
    state = read(directory, state)
    assert study_texts.best_text(state, state.monitor) == "best val accuracy 0.9935, trial 26"
    assert study_texts.confirmation_text(state) == "trained again: 0.9726 ± 0.0046 over 3 seeds"


def test_trials_are_sorted_by_any_column_and_those_without_a_value_come_last(directory: Path) -> None:
    state = read(directory)
    columns = {column.title: column for column in trial_columns(state)}
    assert list(columns) == [
        "trial", "state", "val accuracy", "learning rate", "batch size", "optimizer", "weight decay", "epochs", "time",
        "reason",
    ]  # fmt: skip
    best_first = sort_rows(state.trials.values(), trial_columns(state), SortOrder("val accuracy"))
    assert best_first[0] is state.best
    assert {trial.number for trial in best_first[-2:]} == {7, 19}, "neither has reported"
    rates = [
        trial.values["learning_rate"]
        for trial in sort_rows(state.trials.values(), trial_columns(state), SortOrder("learning rate", reversed=True))
    ]
    assert rates == sorted(rates, reverse=True)
    assert columns["reason"].text(state.trials[7], END) == "the loss became NaN at step 12"


def test_searches_are_sorted_by_their_best_value_and_those_without_one_come_last() -> None:
    def listed(name: str, *values: float) -> ListedStudy:
        trials = {
            number: Trial(number, "r", TrialState.FINISHED, {}, objectives={"validation_accuracy": value})
            for number, value in enumerate(values)
        }
        return ListedStudy(Path(name), StudyState(definition=DEFINITION, trials=trials))

    studies = [listed("none"), listed("high", 3.0, 12.35), ListedStudy(Path("unreadable")), listed("low", 9.812)]
    for is_reversed, names in ((False, ["low", "high"]), (True, ["high", "low"])):
        found = sort_rows(studies, study_list.COLUMNS, SortOrder("best", reversed=is_reversed))
        assert [each.name for each in found] == [*names, "none", "unreadable"]
    (best,) = (column for column in study_list.COLUMNS if column.title == "best")
    assert [best.text(each, END) for each in studies] == ["—", "12.35", "—", "9.8120"]


def test_the_time_of_a_continued_trial_is_without_the_pause() -> None:
    trial = Trial(0, "r", TrialState.FINISHED, {}, started=100.0, ended=130.0, continued=115.0, idle=9.0)
    (time,) = (column for column in trial_columns(StudyState(definition=DEFINITION)) if column.title == "time")
    assert time.text(trial, END) == "0:21"


def test_no_two_columns_have_the_same_title() -> None:
    objectives = (*DEFINITION.objectives, Objective("time", maximize=False))
    titles = [
        column.title for column in trial_columns(StudyState(definition=replace(DEFINITION, objectives=objectives)))
    ]
    assert [title for title in titles if title in ("time", "elapsed")] == ["time", "elapsed"]


def test_the_worst_tenth_does_not_hide_the_differences_of_the_others(directory: Path) -> None:
    curves = read(directory).curves
    low, high = value_range(curves[0].values, maximize=True)
    assert curves[0].values.min() < low < high == curves[0].values.max()
    low, high = value_range(-curves[0].values, maximize=False)
    assert low == -curves[0].values.max()


def test_the_values_of_a_column_have_one_form() -> None:
    sizes = (300e6, 2.5e9)
    form = objective_form("memory", sizes)
    assert [form(each) for each in (*sizes, math.nan)] == ["0.28 GiB", "2.33 GiB", "—"]
    assert objective_text("memory", 300e6) == "286 MiB"
