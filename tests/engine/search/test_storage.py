"""Machines that share a search and no longer respond."""

from pathlib import Path

import optuna
import pytest

from accel_engine.search import storage as search_storage
from accel_engine.search.storage import LOST_SECONDS, Members
from accel_engine.search.study_reader import machine_names
from accel_engine.search.trial import TrialState
from engine.search.searching import Search, define, joined


def test_a_member_that_changes_nothing_for_some_time_is_lost_until_it_continues() -> None:
    study, now = optuna.create_study(), [0.0]
    here, there = (Members(study, name, lambda: now[0]) for name in ("here", "there"))
    there.update()
    for now[0] in (0.0, LOST_SECONDS):
        here.update()
        assert not here.is_lost("there")
    now[0] += 1.0
    here.update()
    assert here.is_lost("there")
    assert not here.is_lost("new")
    there.update()
    here.update()
    assert not here.is_lost("there")


def test_members_on_one_machine_are_told_apart() -> None:
    hosts = {"3f2a00": "vm", "77aa00": "vm", "9b1c00": "gpu-box"}
    assert machine_names(hosts) == {"3f2a00": "vm (3f2a)", "77aa00": "vm (77aa)", "9b1c00": "gpu-box"}


def test_trials_of_a_machine_that_has_died_are_lost_and_others_take_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_storage, "LOST_SECONDS", -1.0)
    storage = str(tmp_path / "journal")
    search = Search(define(trials=4, storage=storage, pruner="off", confirm=1), tmp_path)
    with joined(search, tmp_path / "dead") as dead:
        assert all(dead.claim_confirmation(trial) for trial in range(6))
        lost = [dead.put(dead.propose()).number for _ in range(2)]
    ended = search.run()
    assert ended["states"] == {"finished": 4, "lost": 2}
    assert ended["confirmation"]["values"]
    assert [each.number for each in search.trials() if each.state is TrialState.LOST] == lost
