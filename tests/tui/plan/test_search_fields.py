"""Ranges in fields of the form."""

import pytest

from accel_engine.errors import UsageError
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.search.definition import Objective, Parameter
from accel_tui.plan import search_start
from accel_tui.plan.search_fields import describe, is_range, search_command, split


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("learning_rate", "1e-4..1e-1:log", True),
        ("learning_rate", "0.001", False),
        ("batch_size", "32,64,128", True),
        ("batch_size", "128,256", True),
        ("batch_size", "1,000", False),
        ("epochs", "60,000", False),
        ("optimizer", "adam,sgd", True),
        ("model", "cnn,mlp", True),
        ("metrics", "accuracy,auc", False),
        ("name", "a,b", False),
        ("data", "../mine.npz", False),
    ],
)
def test_a_range_is_told_from_a_single_value(name: str, text: str, expected: bool) -> None:
    assert is_range(name, text) is expected


def test_fields_that_vary_have_their_first_value_in_the_plan() -> None:
    found = split({"learning_rate": "1e-4..1e-1:log", "batch_size": "32, 64", "epochs": "5"})
    assert found.texts == {"learning_rate": "0.0001", "batch_size": "32", "epochs": "5"}
    assert found.parameters == {
        "learning_rate": Parameter("learning_rate", low=1e-4, high=1e-1, log=True),
        "batch_size": Parameter("batch_size", choices=(32, 64)),
    }
    assert not found.errors
    parameters = tuple(found.parameters.values())
    assert describe(parameters).startswith("2 parameters: learning rate, batch size.")
    command = search_command(Plan(model="cnn", batch_size=32), parameters, always={"optimizer", "batch_size"})
    assert command == (
        "accel-tui search --model cnn --optimizer auto --over learning_rate=0.0001..0.1:log --over batch_size=32,64"
    )


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("learning_rate", "1e-1..1e-4", "is reversed"),
        ("epochs", "5..", "end missing"),
        ("batch_size", "32,,64", "empty value"),
        ("seed", "1,2", "cannot vary"),
        ("optimizer", "adam,nonsense", "must be"),
    ],
)
def test_what_is_wrong_with_a_range_is_an_error_of_its_field(name: str, text: str, words: str) -> None:
    found = split({name: text})
    assert words in str(found.errors[name])
    assert found.texts[name] != text
    assert not found.parameters


def test_questions_before_a_search_have_sensible_answers() -> None:
    filled = resolve(Plan(model="cnn", data="digits"))
    texts = search_start.default_texts(filled, {"digits-cnn"})
    assert texts == {"name": "digits-cnn-2", "trials": "40", "monitor": "validation_accuracy", "within": ""}
    parameters = (Parameter("learning_rate", low=1e-4, high=1e-1, log=True),)
    defined = search_start.define(filled.plan, parameters, texts | {"within": "2h"})
    assert (defined.name, defined.trials, defined.within) == ("digits-cnn-2", 40, 7200.0)
    assert defined.objectives == (Objective("validation_accuracy", maximize=True),)
    assert defined.plan == {"model": "cnn"} | ({"data": "digits"} if Plan().data != "digits" else {})


@pytest.mark.parametrize(
    ("text", "words"), [("", "must be a metric"), ("bleurgh", "write max or min"), ("loss up", "no direction")]
)
def test_a_monitor_needs_a_name_and_a_direction(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        search_start.parse_monitor(text)
    assert search_start.parse_monitor("bleurgh max") == Objective("bleurgh", maximize=True)
    assert search_start.parse_monitor("val_loss") == Objective("validation_loss", maximize=False)
