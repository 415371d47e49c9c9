"""The scheduler with stand-in runs: what trials become, what ends a search, and that a killed one goes on exactly."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import optuna
import pytest

from accel_engine.errors import DataError, RunError
from accel_engine.run.engine.status import Status
from accel_engine.search.definition import Objective
from accel_engine.search.storage import open_storage
from accel_engine.search.study_reader import StudyReader
from accel_engine.search.trial import TrialState
from engine.search.searching import ACCURACY, Search, define, learns
from engine.search.stand_in_runs import StandInError


class Killed(BaseException):
    """What a test raises in place of a kill."""


def kill_after(looks: int) -> Any:
    """Called at each wait: raises after a number of them."""
    left = [looks]

    def each(_: StudyReader) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Killed

    return each


def test_a_search_finds_a_good_plan_and_says_how_to_train_it(tmp_path: Path) -> None:
    search = Search(define(trials=20, confirm=2), tmp_path)
    ended = search.run()
    assert (ended["outcome"], ended["reason"]) == ("finished", "all 20 trials are done")
    assert ended["best"]["objectives"]["validation_accuracy"] > 0.8
    assert f"--learning-rate {ended['best']['values']['learning_rate']}" in ended["best"]["command"]
    assert "--on-oom" not in ended["best"]["command"]
    assert len(ended["confirmation"]["values"]) == 2
    assert ended["confirmation"]["mean"] == pytest.approx(ended["best"]["objectives"]["validation_accuracy"])
    states = {trial.state for trial in search.trials()}
    assert states == {TrialState.FINISHED, TrialState.PRUNED}
    with search.study() as study:
        assert study.database.part.ended == ended
        assert {number for number, reports in study.reports.items() if reports} == study.trials.keys()


def test_trials_have_runs_of_their_own_with_the_searchs_monitor(tmp_path: Path) -> None:
    search = Search(define(trials=2), tmp_path)
    search.run()
    for trial in search.trials():
        stored = search.runs.read(trial.run)
        assert (stored["study"], stored["trial"]) == ("s", trial.number)
        plan = stored["plan"]
        assert (plan["monitor"], plan["on_oom"], plan["name"]) == ("validation_accuracy", "fail", f"s {trial.number}")
        assert plan["learning_rate"] == trial.values["learning_rate"]


@pytest.mark.parametrize("sampler", ["tpe", "random", "grid"])
def test_same_seed_same_proposals_also_across_kills(tmp_path: Path, sampler: str) -> None:
    over = ("batch_size=8..512:log", "learning_rate=0.1,0.01,0.001,0.0001")
    whole = Search(define("whole", over, sampler=sampler, trials=14, seed=3), tmp_path)
    whole.run()
    killed = Search(define("killed", over, sampler=sampler, trials=14, seed=3), tmp_path)
    kills, looks = 0, 1
    while True:
        try:
            killed.run(kill_after(looks))
        except Killed:
            kills, looks = kills + 1, looks % 5 + 1
        else:
            break
    assert kills > 3
    assert killed.values() == whole.values()
    assert [each.state for each in killed.trials()] == [each.state for each in whole.trials()]
    assert len(killed.runs.find("killed")) == len(whole.runs.find("whole"))  # no run was started twice
    other = Search(define("other", over, sampler=sampler, trials=14, seed=4), tmp_path)
    other.run()
    assert other.values() != whole.values()


def test_a_grid_is_tried_whole_and_nothing_twice(tmp_path: Path) -> None:
    search = Search(define(over=("batch_size=32,64", "learning_rate=0.1,0.01,0.001"), trials=40), tmp_path)
    ended = search.run()
    assert ended["reason"] == "all combinations of values are tried"
    tried = [(each["batch_size"], each["learning_rate"]) for each in search.values()]
    assert sorted(tried) == sorted((size, rate) for size in (32, 64) for rate in (0.1, 0.01, 0.001))


def test_equal_plans_share_their_result(tmp_path: Path) -> None:
    """Adam has no momentum: its trials differ in nothing."""
    over = ("optimizer=adam,sgd", "momentum=0..0.5")
    search = Search(define(over=over, trials=4, sampler="random"), tmp_path)
    search.run()
    adams = [each for each in search.trials() if each.values["optimizer"] == "adam"]
    assert len([each for each in adams if each.duplicate_of is None]) == 1
    for each in adams[1:]:
        assert (each.duplicate_of, each.run, each.objectives) == (adams[0].number, "", adams[0].objectives)


def test_failed_trials_are_infeasible_and_end_nothing(tmp_path: Path) -> None:
    def metrics(plan: Mapping[str, Any], epoch: int) -> Mapping[str, float]:
        if plan["batch_size"] >= 64:
            raise StandInError(
                "out of memory" if plan["batch_size"] == 128 else f"no batches of {plan['learning_rate']}"
            )
        return learns(plan, epoch)

    search = Search(define(trials=25), tmp_path, metrics)
    ended = search.run()
    assert ended["outcome"] == "finished"
    assert ended["best"]["values"]["batch_size"] == 32
    failed = [each for each in search.trials() if each.state is TrialState.FAILED]
    assert failed
    assert all(each.reason.startswith("no batches of") for each in failed)
    no_memory = [each for each in search.trials() if each.state is TrialState.OUT_OF_MEMORY]
    first, *later = no_memory
    assert first.run
    assert [each for each in later if each.run] == []  # what needs as much memory is not tried again
    assert all(each.duplicate_of == first.number for each in later)


def test_a_search_ends_if_its_first_trials_all_fail_for_the_same_reason(tmp_path: Path) -> None:
    def metrics(plan: Mapping[str, Any], epoch: int) -> Mapping[str, float]:
        raise StandInError("the data is damaged")

    search = Search(define(), tmp_path, metrics)
    ended = search.run()
    assert ended["outcome"] == "failed"
    assert ended["reason"] == "the first 3 trials have all failed: the data is damaged"
    assert len(search.trials()) == 3


def test_trials_that_train_when_the_search_fails_are_stopped_and_continued_with_it(tmp_path: Path) -> None:
    damaged = Damaged()

    def metrics(plan: Mapping[str, Any], epoch: int) -> Mapping[str, float]:
        return damaged(plan, epoch) if plan["name"] != "s 0" else learns(plan, epoch)

    search = Search(define(at_once=4, trials=5, pruner="off"), tmp_path, metrics)
    ended = search.run()
    assert (ended["outcome"], ended["states"]) == ("failed", {"failed": 3, "stopped": 1})
    assert search.runs.reopened == []
    damaged.is_damaged = False
    ended = search.run()
    assert (ended["outcome"], ended["states"]) == ("finished", {"failed": 3, "finished": 2})


def test_a_search_that_its_first_trials_ended_is_continued_once_their_reason_is_gone(tmp_path: Path) -> None:
    search = Search(define(trials=6), tmp_path, damaged := Damaged())
    assert search.run()["outcome"] == "failed"
    damaged.is_damaged = False
    ended = search.run()
    assert (ended["outcome"], ended["trials"], ended["states"]["failed"]) == ("finished", 6, 3)


class Damaged:
    """Metrics of trials that fail for as long as the data is damaged."""

    is_damaged = True

    def __call__(self, plan: Mapping[str, Any], epoch: int) -> Mapping[str, float]:
        if self.is_damaged:
            raise StandInError("the data is damaged")
        return learns(plan, epoch)


def test_trials_without_enough_memory_end_no_search(tmp_path: Path) -> None:
    def metrics(plan: Mapping[str, Any], epoch: int) -> Mapping[str, float]:
        if plan["optimizer"] != "sgd":
            raise StandInError("out of memory")
        return learns(plan, epoch)

    over = ("optimizer=adam,adamw,rmsprop,nadam,sgd", "batch_size=32,64")
    search = Search(define(over=over, sampler="random", trials=10, pruner="off"), tmp_path, metrics)
    ended = search.run()
    by_time = sorted((each for each in search.trials() if each.run), key=lambda each: each.ended or 0.0)
    assert [each.state for each in by_time[:3]].count(TrialState.OUT_OF_MEMORY) >= 2
    assert (ended["outcome"], ended["states"]["finished"]) == ("finished", 2)
    assert ended["states"]["out of memory"] >= 4


def test_an_objective_that_no_trial_reports_ends_the_search_after_the_first(tmp_path: Path) -> None:
    search = Search(define(objectives=(Objective("validation_f1", maximize=True),)), tmp_path)
    ended = search.run()
    assert ended["outcome"] == "failed"
    expected = "no trial reports validation_f1; there are loss, validation_loss, validation_accuracy"
    assert ended["reason"].startswith(expected)
    assert len(search.trials()) == 1


def test_several_objectives_have_a_front_and_no_pruning(tmp_path: Path) -> None:
    objectives = (ACCURACY, Objective("time", maximize=False))
    ended = Search(define(objectives=objectives, trials=10), tmp_path).run()
    assert set(ended["states"]) == {"finished"}
    front = [(each["objectives"]["validation_accuracy"], each["objectives"]["time"]) for each in ended["front"]]
    assert ended["best"]["objectives"]["validation_accuracy"] == max(accuracy for accuracy, _ in front)
    ordered = sorted(front)
    assert [time for _, time in ordered] == sorted(time for _, time in front)


def test_patience_and_time_end_a_search(tmp_path: Path) -> None:
    ended = Search(define("patient", patience=3, trials=100), tmp_path).run()
    assert ended["reason"] == "no better trial in 3 trials"
    ended = Search(define("short", within=1e-9), tmp_path).run()
    assert (ended["reason"], ended["trials"], ended["best"]) == ("the time of 1e-09 s is over", 0, None)


def test_a_pruned_trial_that_is_among_the_best_after_all_is_continued_from_its_checkpoint(tmp_path: Path) -> None:
    """Each trial is worse than the one before, so that the second is pruned at once and promoted later."""
    search = Search(define(trials=9, pruner="asha", plan={"epochs": 9}), tmp_path, _worse_by_number)
    search.run()
    first, second, *_ = search.trials()
    assert first.state is TrialState.FINISHED
    assert second.run in search.runs.reopened
    assert _proposals(search).count(second.number) == 2
    assert search.runs.read(second.run)["done"] > 1  # not from its start
    assert second.ended is not None
    assert second.started < second.continued < second.ended
    assert first.idle == 0.0 < second.idle < second.continued - second.started
    pruned = [each for each in search.trials() if each.state is TrialState.PRUNED]
    assert pruned
    assert all(each.reason.startswith("not promising after") for each in pruned)


def test_a_pruned_trial_whose_run_was_deleted_is_not_continued(tmp_path: Path) -> None:
    search = Search(define(trials=9, pruner="asha", plan={"epochs": 9}), tmp_path, _worse_by_number)

    def delete(study: StudyReader) -> None:
        second = study.trials.get(1)
        if second and second.state is TrialState.PRUNED:
            (search.runs.directory / f"{second.run}.json").unlink(missing_ok=True)

    search.run(delete)
    assert search.trials()[1].state is TrialState.PRUNED


def _worse_by_number(plan: Mapping[str, Any], epoch: int) -> Mapping[str, float]:
    number = int(plan["name"].split()[1])
    return {"validation_accuracy": 1 - number / 100 + epoch / 1000}


def _proposals(search: Search) -> list[int]:
    """The number of the trial for which each of Optuna's stands."""
    storage = open_storage(str(search.directory / "journal.log"))
    study = optuna.load_study(study_name=search.directory.name, storage=storage)
    return [each.user_attrs["trial"]["number"] for each in study.get_trials()]


def test_a_lost_engine_is_continued_once(tmp_path: Path) -> None:
    search = Search(define(trials=1), tmp_path)

    def lose(_: StudyReader) -> None:
        for run in search.runs.find("s"):
            stored = search.runs.read(run)
            if stored["done"] == 2 and not search.runs.reopened:
                search.runs.write(run, stored | {"status": "lost"})

    search.run(lose)
    (trial,) = search.trials()
    assert (trial.state, trial.lost, search.runs.reopened) == (TrialState.FINISHED, 1, [trial.run])

    always = Search(define("always", trials=1), tmp_path)

    def lose_always(_: StudyReader) -> None:
        for run in always.runs.find("always"):
            always.runs.write(run, always.runs.read(run) | {"status": "lost", "reason": "its engine was lost"})

    always.run(lose_always)
    (trial,) = always.trials()
    assert (trial.state, trial.lost, trial.reason) == (TrialState.FAILED, 1, "its engine was lost")


def test_a_trial_that_a_user_holds_in_the_queue_waits_and_has_the_reason(tmp_path: Path) -> None:
    search = Search(define(trials=2, pruner="off"), tmp_path)
    search.runs.held["r000"] = "held by a user"
    reasons: list[str] = []

    def release(study: StudyReader) -> None:
        reasons.append(study.trials[0].reason)
        if len(reasons) == 3:
            search.runs.held.clear()

    ended = search.run(release)
    assert reasons[:3] == ["held by a user"] * 3
    assert (ended["states"], search.trials()[0].reason) == ({"finished": 2}, "")


def test_a_trial_that_cannot_be_started_fails_with_the_reason(tmp_path: Path) -> None:
    search = Search(define(trials=3, confirm=1), tmp_path)
    search.runs.held |= {"r001": DataError("cannot be started: its log"), "r003": DataError("cannot be started")}
    ended = search.run()
    assert ended["states"] == {"failed": 1, "finished": 2}
    assert search.trials()[1].reason == "cannot be started: its log"
    assert search.runs.read("r001")["status"] == Status.STOPPED  # so that the queue cannot start it later
    assert (ended["outcome"], "confirmation" in ended) == ("finished", False)


@pytest.mark.parametrize(
    ("changes", "most"),
    [
        ({"sampler": "grid"}, 5),
        ({"sampler": "random", "pruner": "off"}, 5),
        ({"sampler": "tpe"}, 2),
        ({"sampler": "random", "pruner": "asha"}, 2),
        ({"sampler": "random", "patience": 3}, 2),
        ({"sampler": "random", "within": 1e6}, 2),
    ],
)
def test_trials_wait_ahead_at_a_place_if_no_result_decides_about_them(
    tmp_path: Path, changes: dict[str, Any], most: int
) -> None:
    over = ("learning_rate=1e-3,1e-2,1e-1", "batch_size=16,32,64")
    search = Search(define(over=over, at_once=2, trials=8, **changes), tmp_path)
    search.runs.waiting = 3
    live: list[int] = []
    search.run(lambda study: live.append(sum(each.state.live for each in study.trials.values())))
    assert max(live) == most


def test_trials_train_at_once_and_a_stopped_search_goes_on_with_them(tmp_path: Path) -> None:
    search = Search(define(at_once=3, trials=6, pruner="off", confirm=1), tmp_path)
    most = 0

    def stop(study: StudyReader) -> None:
        nonlocal most
        statuses = [search.runs.read(run)["status"] for run in search.runs.find("s")]
        most = max(most, statuses.count("running"))
        if statuses.count("running") == 3 and not study.database.commands():
            study.database.request("stop")

    ended = search.run(stop)
    assert most == 3
    assert (ended["outcome"], ended["states"]) == ("stopped", {"stopped": 3})
    stopped = [each.run for each in search.trials()]
    assert all(search.runs.read(run)["status"] == Status.STOPPED for run in stopped)
    ended = search.run()
    assert (ended["outcome"], ended["states"]) == ("finished", {"finished": 6})
    assert search.runs.reopened == stopped
    assert len(ended["confirmation"]["values"]) == 1


def test_a_machine_that_cannot_train_ends_the_process_and_fails_no_trial(tmp_path: Path) -> None:
    search = Search(define(trials=3), tmp_path)
    create = search.runs.create
    search.runs.create = lambda *_: (_ for _ in ()).throw(RunError("the disk is full"))  # type: ignore[method-assign]
    with pytest.raises(RunError, match="the disk is full"):
        search.run()
    with search.study() as study:
        assert study.database.part.ended is not None
        assert (study.database.part.ended["outcome"], study.database.part.ended["reason"]) == (
            "failed",
            "the disk is full",
        )
    search.runs.create = create  # type: ignore[method-assign]
    ended = search.run()
    assert (ended["outcome"], ended["trials"]) == ("finished", 3)


def test_a_trial_that_trains_on_does_so_after_a_kill_whatever_others_have_reported(tmp_path: Path) -> None:
    def metrics(plan: Mapping[str, Any], epoch: int) -> Mapping[str, float]:
        return {"validation_accuracy": 0.1 if plan["name"] == "s 0" else 0.9}

    def kill(study: StudyReader) -> None:
        if len(study.reports.get(1, ())) == 1:
            raise Killed

    search = Search(define(at_once=2, trials=2, pruner="asha", plan={"epochs": 9}), tmp_path, metrics)
    with pytest.raises(Killed):
        search.run(kill)
    assert len(search.study().reports[0]) >= 1
    search.run()
    first, _ = search.trials()
    assert first.state is TrialState.FINISHED, "its only answer was before the other trial reported"
