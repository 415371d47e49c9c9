"""The text of --over: what it means, its way back to text, and every mistake."""

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from accel_engine.errors import PlanError, UsageError
from accel_engine.json_values import decode, encode
from accel_engine.search.definition import Objective, StudyDefinition
from accel_engine.search.ranges import format_over, parameter_of, parse_all, parse_over
from accel_engine.search.samplers import distributions, field_values

MEANINGS = {
    "learning_rate=1e-4..1e-1:log": FloatDistribution(1e-4, 0.1, log=True),
    "label_smoothing=0..0.5:step=0.1": FloatDistribution(0.0, 0.5, step=0.1),
    "warmup=0..5%": FloatDistribution(0.0, 0.05),
    "epochs=5..20": IntDistribution(5, 20),
    "batch-size=16..64:step=16": IntDistribution(16, 64, step=16),
    "batch_size=8..512:log": IntDistribution(8, 512, log=True),
    "--batch-size=32,64, 128": CategoricalDistribution((32, 64, 128)),
    "optimizer=adam,sgd": CategoricalDistribution(("adam", "sgd")),
    "learning_rate=auto,0.001": CategoricalDistribution((None, 0.001)),
    "augmentation=none,light,flip+crop": CategoricalDistribution(("", "light", "flip+crop")),
}


@pytest.mark.parametrize("text", MEANINGS)
def test_a_text_is_a_distribution_and_the_parameter_is_the_text_again(text: str) -> None:
    parameter = parse_over(text)
    assert distributions([parameter]) == {parameter.name: MEANINGS[text]}
    assert parse_over(format_over(parameter)) == parameter
    definition = StudyDefinition("s", {}, (parameter,), (Objective("loss", maximize=False),))
    assert decode(encode(definition), StudyDefinition) == definition


def test_choices_that_are_lists_are_the_fields_values_again() -> None:
    parameters = parse_all(["augmentation=none,light,flip+crop", "batch_size=32,64", "learning_rate=1e-3..1"])
    found = field_values(parameters, {"augmentation": "flip+crop", "batch_size": 64, "learning_rate": 0.5})
    assert found == {"augmentation": ["flip", "crop"], "batch_size": 64, "learning_rate": 0.5}


def test_a_plan_file_has_choices_as_a_list() -> None:
    assert parameter_of("batch_size", [32, 64]) == parse_over("batch_size=32,64")
    with pytest.raises(PlanError, match="must be a range or a list"):
        parameter_of("batch_size", 32)


MISTAKES = {
    "learning_rate": "not a range of a field",
    "=1,2": "not a range of a field",
    "learning_rte=1..2": "did you mean learning_rate",
    "lr=1e-4..1e-1:log": "did you mean learning_rate",
    "learning_rate=": "empty value",
    "learning_rate=1,,2": "empty value",
    "learning_rate=..1": "end missing",
    "learning_rate=1..": "end missing",
    "learning_rate=1..0.1": "reversed: use 0.1..1",
    "learning_rate=1..1": "only one value.*--learning-rate 1",
    "learning_rate=0.1": "only one value",
    "learning_rate=0..1": "above 0",
    "learning_rate=nan..1": "above 0",
    "learning_rate=auto..1": "a range needs two numbers",
    "learning_rate=0.1,1e-1": "0.1 twice",
    "learning_rate=0.1..1:linear": "unknown option 'linear'",
    "weight_decay=0..1:log": "no logarithm",
    "weight_decay=0.1..1:log:step=0.1": "leave one out",
    "label_smoothing=0..0.5:step=0.2": "use 0..0.4:step=0.2",
    "batch_size=8..64:step=100": "step is larger",
    "batch_size=8..64:step=0": "whole number above 0",
    "batch_size=8..64:step=1.5": "whole number above 0",
    "batch_size=8.5..64": "an integer",
    "optimizer=adam,sdg": "did you mean sgd",
    "name=a,b": "a search sets it itself",
    "seed=1..9": "luckiest seed",
    "data=digits,mnist": "cannot be compared",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_explained(text: str) -> None:
    with pytest.raises(UsageError, match=MISTAKES[text]):
        parse_over(text)


def test_a_search_needs_one_range_for_each_field() -> None:
    with pytest.raises(UsageError, match="nothing varies"):
        parse_all([])
    with pytest.raises(UsageError, match="batch_size has two ranges"):
        parse_all(["batch_size=1,2", "batch-size=4,8"])
