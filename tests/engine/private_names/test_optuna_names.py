"""Private names of Optuna: this version has them, and a search works without them."""

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.pruners import SuccessiveHalvingPruner
from optuna.trial import FrozenTrial, TrialState, create_trial

from accel_engine.private_names import optuna_names


def test_rungs_that_a_trial_has_completed() -> None:
    study = optuna.create_study(pruner=SuccessiveHalvingPruner(min_resource=1, reduction_factor=3))
    trial = study.ask()
    trial.report(0.5, 1)
    trial.should_prune()
    (found,) = study.get_trials()
    assert optuna_names.completed_rungs(found) == {"completed_rung_0": 0.5}
    assert optuna_names.last_rung(found) == "completed_rung_0"
    trial.report(0.4, 2)
    assert optuna_names.last_rung(study.get_trials()[0]) == ""
    other = create_trial(state=TrialState.RUNNING, intermediate_values={1: 0.5})
    assert (optuna_names.completed_rungs(other), optuna_names.last_rung(other)) == ({}, "")


def _running(study: optuna.Study) -> FrozenTrial:
    distributions = {"x": FloatDistribution(0.0, 1.0)}
    study.add_trial(create_trial(state=TrialState.RUNNING, params={"x": 0.5}, distributions=distributions))
    return study.get_trials()[-1]


def test_a_constraint_of_a_trial_that_another_process_has_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    study = optuna.create_study()
    number = _running(study).number
    optuna_names.set_constraint(study, number, "feasible", 1.0)
    assert study.get_trials()[number].constraints == {"feasible": 1.0}
    monkeypatch.setattr(optuna_names, "Trial", lambda: None)
    number = _running(study).number
    optuna_names.set_constraint(study, number, "feasible", 1.0)
    assert study.get_trials()[number].constraints == {}
