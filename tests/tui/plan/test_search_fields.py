"""Ranges in fields of the form."""

from pathlib import Path

import pytest

from accel_engine.errors import UsageError
from accel_engine.plan import Plan
from accel_engine.plan.options import specs_of
from accel_engine.plan.resolved_plan import resolve
from accel_engine.search.definition import Objective, Parameter
from accel_engine.search.new_study import define
from accel_tui.plan.search_fields import describe_parameters, is_range, search_command, split
from accel_tui.plan.search_start import SearchStart, first_texts


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
    assert describe_parameters(parameters).startswith("2 parameters: learning rate, batch size.")
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


def test_questions_before_a_search_have_sensible_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.keras", "b.keras"):
        Path(name).touch()
    filled = resolve(Plan(model="cnn", data="digits"))
    texts = first_texts(filled)
    assert texts == {"name": "cnn-digits", "monitor": "validation_accuracy", "direction": ""}
    parameters = (Parameter("model", choices=("a.keras", "b.keras")),)
    chosen = texts | {"within": "2h", "monitor": "val_loss", "direction": "maximize"}
    options = SearchStart(**chosen).with_parameters(parameters)
    defined = define(filled.plan.replace(monitor=options.monitor), ("epochs",), options)
    assert (defined.name, defined.trials, defined.within) == ("cnn-digits", 40, 7200.0)
    assert defined.objectives == (Objective("validation_loss", maximize=True),)
    assert defined.plan == {"epochs": Plan().epochs} | ({"data": "digits"} if Plan().data != "digits" else {})
    assert defined.parameters[0].choices == tuple(str(Path(name).absolute()) for name in ("a.keras", "b.keras"))
    again = first_texts(resolve(Plan(monitor="bleurgh", monitor_mode="min")))
    assert (again["monitor"], again["direction"]) == ("bleurgh", "minimize")


@pytest.mark.parametrize(
    ("monitor", "direction", "words"),
    [
        ("", "", "use a metric"),
        ("bleurgh", "", "choose the direction"),
        ("loss", "up", "not a direction"),
        ("time", "", "a metric"),
    ],
)
def test_a_monitor_needs_a_name_and_a_direction(monitor: str, direction: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        SearchStart(monitor=monitor, direction=direction)


@pytest.mark.parametrize(
    ("monitor", "direction", "found"),
    [("bleurgh", "maximize", ("bleurgh", "maximize")), ("val_loss", "", ("validation_loss", "minimize"))],
)
def test_what_is_searched_for_has_its_name_and_direction(monitor: str, direction: str, found: tuple[str, str]) -> None:
    options = SearchStart(monitor=monitor, direction=direction).with_parameters(())
    assert (options.monitor, options.direction) == found


@pytest.mark.parametrize(
    ("name", "expected"), [("", "cnn-digits"), ("Größe 1!", "gr-e-1"), ("1e-4..1:log", "cnn-digits")]
)
def test_the_name_that_is_suggested_is_one_that_a_search_can_have(home: Path, name: str, expected: str) -> None:
    suggested = first_texts(resolve(Plan(model="cnn", name=name), ()))["name"]
    assert suggested == expected
    assert specs_of(SearchStart)["name"].value_of("name", suggested) == suggested
