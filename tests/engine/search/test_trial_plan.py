"""The plan of a trial, as the search trains it and as a user trains it anew."""

from dataclasses import replace

import pytest

from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.search.definition import Objective, Parameter, StudyDefinition
from accel_engine.search.new_study import default_monitor
from accel_engine.search.ranges import parse_over
from accel_engine.search.results import trial_command
from accel_engine.search.trial import Trial, TrialState
from accel_engine.search.trial_plan import plan_to_train, trial_plan, without_effect

DEFINITION = StudyDefinition(
    name="one",
    plan={"model": "cnn", "data": "digits", "epochs": 3, "keep_checkpoints": 5},
    parameters=(Parameter("batch_size", choices=(32, 64)), Parameter("on_nan", choices=("stop", "rollback"))),
    objectives=(Objective("validation_accuracy", maximize=True),),
    seed=4,
)


def test_a_trial_is_trained_anew_with_all_that_made_it_and_without_what_only_trials_need() -> None:
    prolonged = Trial(2, "r2", TrialState.FINISHED, {"batch_size": 32}, epochs=50)
    plan = plan_to_train(DEFINITION, prolonged)
    assert (plan.model, plan.batch_size, plan.epochs, plan.seed) == ("cnn", 32, 50, 4)
    assert (plan.monitor, plan.name) == ("validation_accuracy", "")
    assert (plan.keep_checkpoints, plan.on_nan) == (5, type(plan)().on_nan), "the search's own stays"
    assert trial_command(DEFINITION, prolonged) == plan.command()
    assert plan.restore_best == "on", "a trial counts by its best validation"
    assert "--restore-best on" in plan.command()
    trained = trial_plan(DEFINITION, prolonged.values, number=2, epochs=50)
    assert (trained.name, trained.on_oom) == ("one 2", "fail")


def test_a_value_that_varies_is_kept_where_trials_have_a_default_of_their_own() -> None:
    plan = plan_to_train(DEFINITION, Trial(0, "", TrialState.FINISHED, {"batch_size": 64, "on_nan": "rollback"}))
    assert (plan.on_nan, plan.seed, plan.epochs) == ("rollback", 4, 3)


@pytest.mark.parametrize(
    ("fields", "restore_best"),
    [({"restore_best": "off"}, "off"), ({"validation": "off"}, "off"), ({"validation": "end"}, "on")],
)
def test_the_best_weights_are_saved_if_there_are_any_and_the_search_does_not_say_otherwise(
    fields: dict[str, str], restore_best: str
) -> None:
    definition = replace(DEFINITION, plan={**DEFINITION.plan, **fields})
    plan = plan_to_train(definition, Trial(0, "", TrialState.FINISHED, {"batch_size": 64}))
    assert plan.restore_best == restore_best


def test_another_seed_has_the_same_validation_examples() -> None:
    values = {"batch_size": 32}
    first, again = trial_plan(DEFINITION, values), trial_plan(DEFINITION, values, seed=9)
    assert (first.seed, first.split_seed) == (4, None)
    assert (again.seed, again.split_seed) == (9, 4)
    assert first.data_options == again.data_options
    assert trial_plan(DEFINITION, values, seed=4) == first


def test_a_field_that_has_no_effect_on_any_trial_is_named_with_what_it_needs() -> None:
    momentum = parse_over("momentum=0..0.9")
    alone = replace(DEFINITION, parameters=(*DEFINITION.parameters, momentum, parse_over("learning_rate=1e-4..0.1")))
    assert list(without_effect(alone)) == ["momentum has no effect on any trial: it needs the optimizer sgd or rmsprop"]
    assert not list(without_effect(replace(alone, plan={**alone.plan, "optimizer": "sgd"})))
    varied = replace(alone, parameters=(momentum, parse_over("optimizer=adam,sgd"), parse_over("patience=2,5")))
    assert not list(without_effect(varied))


@pytest.mark.parametrize(("validation", "monitor"), [("epoch", "validation_accuracy"), ("off", "accuracy")])
def test_without_validation_a_search_looks_at_the_training_metric(validation: str, monitor: str) -> None:
    assert default_monitor(resolve(Plan(validation=validation))) == monitor
