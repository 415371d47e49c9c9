"""Commands of users to a search that runs."""

from pathlib import Path
from typing import Any

import pytest

from accel_engine.search import launch
from accel_engine.search.command_handlers import _HANDLERS
from accel_engine.search.study_database import COMMANDS
from accel_engine.search.study_reader import StudyReader
from accel_engine.search.trial import TrialState
from engine.search.searching import Search, define, learns


def test_every_command_is_answered() -> None:
    assert _HANDLERS.keys() == COMMANDS.keys()


def at(done: int, name: str, argument: Any = None, trial: int = 0) -> Any:
    """Called at each wait: sends a command once when the first trial has trained a number of epochs."""
    sent: list[int] = []

    def each(study: StudyReader) -> None:
        if not sent and len(study.reports.get(trial, ())) >= done:
            sent.append(study.database.request(name, trial, argument))

    return each


def test_a_trial_that_a_user_stops_counts(tmp_path: Path) -> None:
    search = Search(define(trials=1, plan={"epochs": 9}), tmp_path)
    ended = search.run(at(2, "stop_trial"))
    (trial,) = search.trials()
    assert trial.state is TrialState.STOPPED
    assert trial.reason.startswith("stopped by ")
    assert ended["best"]["trial"] == 0


def test_a_trial_that_a_user_prunes_is_not_continued_by_itself(tmp_path: Path) -> None:
    search = Search(
        define(trials=6, pruner="asha", plan={"epochs": 9}), tmp_path, lambda *_: {"validation_accuracy": 1.0}
    )
    search.run(at(2, "prune"))
    first, *others = search.trials()
    assert (first.state, first.pruned_by_user) == (TrialState.PRUNED, True)
    assert first.run not in search.runs.reopened
    assert {each.state for each in others} == {TrialState.FINISHED}


def test_an_ended_trial_is_prolonged_and_an_ended_search_goes_on_for_it(tmp_path: Path) -> None:
    search = Search(define(trials=2, pruner="off"), tmp_path)
    search.run()
    command = search.request("prolong", 1, 3)
    ended = search.run()
    assert search.answer(command) == (True, "trial 1 is continued, up to 7 epochs")
    assert search.runs.reopened == [search.trials()[1].run]
    assert (search.runs.read(search.trials()[1].run)["done"], ended["outcome"]) == (7, "finished")
    assert "--epochs 7" in ended["best"]["command"] or ended["best"]["trial"] == 0


def test_a_trial_whose_run_was_deleted_is_not_prolonged_and_keeps_its_result(tmp_path: Path) -> None:
    search = Search(define(trials=2, pruner="off"), tmp_path)
    best = search.run()["best"]["trial"]
    before = search.trials()
    (search.runs.directory / f"{before[best].run}.json").unlink()
    command = search.request("prolong", best, 3)
    assert search.run()["best"]["trial"] == best
    obeyed, answer = search.answer(command) or (True, "no answer")
    assert (obeyed, answer.endswith(f"run {before[best].run} was deleted")) == (False, True)
    assert search.trials() == before


def test_the_number_of_trials_changes(tmp_path: Path) -> None:
    search = Search(define(trials=4, pruner="off", sampler="tpe"), tmp_path)
    search.run()
    commands = [search.request("set_trials", argument=3), search.request("set_trials", argument=9)]
    ended = search.run()
    assert [search.answer(each) for each in commands] == [
        (False, "the search has 4 trials already, more than 3: choose 4 or more"),
        (True, "the search has 9 trials"),
    ]
    assert ended["reason"] == "all 9 trials are done"
    assert len(search.values()) == 9


WRONG = {
    ("stop_trial", 7, None): "there is no trial 7",
    ("stop_trial", 0, None): "trial 0 is finished already",
    ("prolong", 0, None): "the number of epochs must be an integer",
    ("prolong", 0, -1): "the number of epochs must be an integer",
    ("set_trials", None, "many"): "the number of trials must be an integer",
    ("dance", None, None): "unknown command 'dance'",
}


def test_wrong_commands_are_answered_and_harm_nothing(tmp_path: Path) -> None:
    search = Search(define(trials=1), tmp_path, learns)
    search.run()
    sent = {search.request(*command): words for command, words in WRONG.items()}
    assert search.run()["outcome"] == "finished"
    for command, words in sent.items():
        obeyed, answer = search.answer(command) or (True, "no answer")
        assert not obeyed
        assert words in answer


@pytest.mark.parametrize("storage", ["", "shared"])
def test_a_command_to_stop_that_is_older_than_the_process_is_refused(tmp_path: Path, storage: str) -> None:
    search = Search(define(trials=1, storage=str(tmp_path / storage) if storage else ""), tmp_path)
    command = search.request("stop")
    launch.reopen_search(search.directory)
    assert search.run()["outcome"] == "finished"
    assert search.answer(command) == (False, "the search was not running")


def test_a_command_to_stop_that_is_sent_while_the_process_starts_is_done(tmp_path: Path) -> None:
    search = Search(define(trials=1), tmp_path)
    launch.reopen_search(search.directory)
    command = search.request("stop")
    assert search.run()["outcome"] == "stopped"
    assert search.answer(command) == (True, "the search stops; its live trials stop with a checkpoint")


def test_commands_during_the_confirmation_are_done_and_the_best_trial_is_confirmed_after_them(tmp_path: Path) -> None:
    search = Search(define(trials=3, confirm=2, pruner="off"), tmp_path)
    commands: list[int] = []

    def send(study: StudyReader) -> None:
        if not commands and study.database.part.confirmation and study.database.part.confirmation.runs:
            sent = ("prolong", 0, 5), ("set_trials", None, 6)
            commands.extend(study.database.request(*each) for each in sent)

    ended = search.run(send)
    assert [obeyed for obeyed, _ in map(search.answer, commands) if obeyed] == [True] * 2
    assert (ended["outcome"], ended["states"]) == ("finished", {"finished": 6})
    trials = search.trials()
    assert search.runs.read(trials[0].run)["done"] == 9
    assert len(ended["confirmation"]["values"]) == 2
    plans = [search.runs.read(run)["plan"] for run in ended["confirmation"]["runs"]]
    assert {plan["learning_rate"] for plan in plans} == {ended["best"]["values"]["learning_rate"]}


def test_a_confirmation_that_trials_interrupt_is_continued_if_the_best_is_the_same(tmp_path: Path) -> None:
    search = Search(define(trials=2, confirm=1, pruner="off"), tmp_path, lambda *_: {"validation_accuracy": 0.5})
    with_runs: list[str] = []

    def prolong_the_worse(study: StudyReader) -> None:
        confirmation = study.database.part.confirmation
        if not with_runs and confirmation and confirmation.runs:
            with_runs.extend(confirmation.runs)
            study.database.request("prolong", 1 - confirmation.trial, 3)

    ended = search.run(prolong_the_worse)
    assert ended["confirmation"]["runs"] == with_runs
    assert set(with_runs) < set(search.runs.reopened)
    assert len(ended["confirmation"]["values"]) == 1


def test_a_search_that_is_stopped_while_it_confirms_continues_its_confirmation(tmp_path: Path) -> None:
    search = Search(define(trials=2, confirm=2), tmp_path)

    def stop(study: StudyReader) -> None:
        confirmation = study.database.part.confirmation
        if confirmation and len(confirmation.values) == 1 and not study.database.commands():
            study.database.request("stop")

    ended = search.run(stop)
    assert (ended["outcome"], len(ended["confirmation"]["values"])) == ("stopped", 1)
    ended = search.run()
    assert (ended["outcome"], len(ended["confirmation"]["values"])) == ("finished", 2)
