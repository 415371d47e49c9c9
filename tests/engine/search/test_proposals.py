"""Proposals on Optuna's storage: what samplers are told, journals that were cut, and values that are given."""

from dataclasses import replace
from pathlib import Path

import pytest
from optuna.trial import TrialState as OptunaState

from accel_engine.errors import RunError, UsageError
from accel_engine.search.over import parse_all
from accel_engine.search.proposals import Proposals
from accel_engine.search.storage import load_definition
from accel_engine.search.study_paths import shown_address
from engine.search.searching import define


def test_a_failed_trial_is_worse_than_any_other_whatever_it_has_reported(tmp_path: Path) -> None:
    definition, journal = define(trials=40, sampler="tpe", pruner="off"), str(tmp_path / "journal")
    proposals = Proposals(definition, journal, "here", is_shared=True)
    failed = proposals.propose()
    proposals.report(failed.number, 0.99, 1)
    proposals.finish(failed.number, None, "not a number", has_failed=True)
    proposals.finish(failed.number, None, "not a number", has_failed=True)
    pruned = proposals.propose()
    proposals.report(pruned.number, 0.5, 1)
    proposals.finish(pruned.number, None, "not promising")
    other = Proposals(definition, journal, "there", is_shared=True)
    assert [(each.has_failed, each.state) for each in other.others()] == [
        (True, OptunaState.PRUNED),
        (False, OptunaState.PRUNED),
    ]


@pytest.mark.parametrize(
    ("pruner", "trials", "first_pruned"),
    [("asha", 12, 1), ("auto", 12, 4), ("auto", 40, 4)],
    ids=["asha", "auto with few trials", "auto with many"],
)
def test_the_automatic_choice_prunes_once_four_trials_have_a_result(
    tmp_path: Path, pruner: str, trials: int, first_pruned: int
) -> None:
    definition = define(trials=trials, sampler="tpe", pruner=pruner)
    proposals = Proposals(definition, str(tmp_path / "journal"), "here", is_shared=False)
    pruned = []
    for count in range(8):
        proposal, value = proposals.propose().number, 0.9 - count / 10  # each worse than all before
        proposals.report(proposal, value, 1)
        pruned.append(proposals.should_prune(proposal))
        assert proposals.should_prune(proposal, again=True) is pruned[-1]
        proposals.finish(proposal, None if pruned[-1] else [value])
    assert pruned.index(True) == first_pruned
    best = proposals.propose().number
    proposals.report(best, 0.95, 1)
    assert not proposals.should_prune(best)


@pytest.mark.parametrize(("sampler", "pruner"), [("tpe", "auto"), ("random", "auto"), ("random", "asha")])
def test_a_trial_that_trains_on_does_so_after_a_kill_whatever_others_have_reported(
    tmp_path: Path, sampler: str, pruner: str
) -> None:
    definition = define(trials=12, sampler=sampler, pruner=pruner)
    proposals = Proposals(definition, str(tmp_path / "journal"), "here", is_shared=False)
    first, *others = [proposals.propose().number for _ in range(6)]
    for number in (1, 2):
        proposals.report(first, 0.1, number)
        assert not proposals.should_prune(first)
    for proposal in others:
        for number in range(1, 5):
            proposals.report(proposal, 0.9, number)
            assert not proposals.should_prune(proposal)
        proposals.finish(proposal, [0.9])
    resumed = Proposals(definition, str(tmp_path / "journal"), "here", is_shared=False)
    assert not resumed.should_prune(first, again=True)
    resumed.report(first, 0.1, 3)
    resumed.report(first, 0.1, 4)
    assert resumed.should_prune(first, again=True), "the answer to a later report is a new one"


@pytest.mark.parametrize("is_shared", [True, False])
def test_a_line_that_was_cut_breaks_no_journal(tmp_path: Path, is_shared: bool) -> None:
    definition, journal = define(trials=40, pruner="off"), tmp_path / "journal"
    first = Proposals(definition, str(journal), "here", is_shared=is_shared)
    assert first.propose().number == 0
    for number, text in enumerate(('{"op_code": 4, "wor', "x" * 10_000), 1):
        with journal.open("a") as file:
            file.write(text)
        assert first.propose().number == number
    second = Proposals(definition, str(journal), "there", is_shared=is_shared)
    assert second.propose().number == 3


def test_values_are_given_also_where_the_choices_have_changed(tmp_path: Path) -> None:
    definition = define(over=("optimizer=adam,sgd", "learning_rate=1e-4..1e-1:log"))
    proposals = Proposals(definition, str(tmp_path / "journal"), "here", is_shared=False)
    before = proposals.propose()
    narrow = parse_all(("optimizer=adamw,lion", "learning_rate=0.2..0.3"))
    proposals.set_definition(replace(definition, parameters=narrow))
    assert proposals.propose(before.values).values == before.values
    with pytest.raises(UsageError, match="optimizer = 'rmsprop' is not in the range of this search"):
        proposals.propose({**before.values, "optimizer": "rmsprop"})
    after = proposals.propose()
    assert after.values["optimizer"] in ("adamw", "lion")
    assert after.number == 2
    again = Proposals(proposals.definition, str(tmp_path / "journal"), "here", is_shared=False)
    assert [each.number for each in again.unfinished()] == [0, 1, 2]


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
    definition = define(storage=storage)
    proposals = Proposals(definition, storage, "here", is_shared=True)
    proposals.set_definition(replace(definition, trials=7))
    assert load_definition(storage) == replace(definition, trials=7)
    assert proposals.shared_definition().storage == ""
    assert shown_address(storage) == f"sqlite:///{tmp_path}/shared.db"


def test_the_sampler_avoids_values_that_fail_after_good_reports(tmp_path: Path) -> None:
    definition = define(over=("optimizer=adam,sgd", "learning_rate=1e-4..1e-1:log"), sampler="tpe", pruner="off")
    proposals = Proposals(definition, str(tmp_path / "journal"), "here", is_shared=False)
    failed = []
    for _ in range(40):
        proposal = proposals.propose()
        has_failed = proposal.values["optimizer"] == "sgd"
        proposals.report(proposal.number, 0.99 if has_failed else 0.5, 1)
        proposals.finish(proposal.number, None, "ended", has_failed=has_failed)
        failed.append(has_failed)
    assert sum(failed[10:]) < 12, "20 and more, if it is told of the reports"
