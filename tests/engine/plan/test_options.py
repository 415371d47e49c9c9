"""Options that are declared at the fields of a dataclass."""

from dataclasses import dataclass

import pytest

from accel_engine.errors import PlanError, UsageError
from accel_engine.finders.learning_rate_finder import RampOptions
from accel_engine.finders.throughput import SizeOptions
from accel_engine.model_export.export_options import ExportOptions
from accel_engine.plan.options import OptionSpec, default_of, option, option_problem, parse_latency, specs_of, text_of
from accel_engine.race.race import RaceOptions
from accel_engine.requests.bench_models import BenchOptions
from accel_engine.requests.evaluate import EvaluationOptions
from accel_engine.requests.predict import PredictionOptions
from accel_engine.requests.write_text import WritingOptions
from accel_engine.run.store.annotations import Annotations, TagChanges
from accel_engine.search.definition import SearchOptions

KINDS = (
    Annotations,
    BenchOptions,
    EvaluationOptions,
    ExportOptions,
    PredictionOptions,
    RaceOptions,
    RampOptions,
    SearchOptions,
    SizeOptions,
    TagChanges,
    WritingOptions,
)


@dataclass(frozen=True, slots=True)
class Oven:
    degrees: float | None = option(None, OptionSpec("Heat.", float, above=0, maximum=300, optional=True))
    tray: str = option("middle", OptionSpec("Where.", str, choices=("top", "middle")))
    colour: str = "white"


def test_only_fields_that_are_options_have_a_specification():
    assert list(specs_of(Oven)) == ["degrees", "tray"]
    assert default_of(Oven, "tray") == "middle"


@pytest.mark.parametrize(
    ("name", "text", "value"), [("degrees", "180", 180.0), ("degrees", " ", None), ("tray", "top", "top")]
)
def test_a_text_gives_a_value_of_the_type(name, text, value):
    assert specs_of(Oven)[name].value_of(name, text) == value


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("degrees", "hot", "'hot' must be a number above 0, or nothing"),
        ("degrees", "nan", "'nan' must be a number above 0"),
        ("degrees", "301", "'301' must be a number above 0"),
        ("tray", "midle", "'midle': did you mean middle?"),
    ],
)
def test_what_is_wrong_with_a_text_is_said(name, text, message):
    with pytest.raises(UsageError) as raised:
        specs_of(Oven)[name].value_of(name, text)
    assert message in option_problem(raised.value, text)


def test_an_error_that_is_about_no_field_is_said_as_it_is():
    assert option_problem(UsageError("give a target latency"), "20") == "give a target latency"
    assert option_problem(PlanError("tray", "attic", "no such tray"), "attic") == "'attic': no such tray"


@pytest.mark.parametrize("kind", KINDS)
def test_the_text_of_a_default_gives_the_default_again(kind):
    for name, spec in specs_of(kind).items():
        if spec.type is not bool:
            default = default_of(kind, name)
            assert spec.value_of(name, text_of(default)) == default, name


@pytest.mark.parametrize("kind", KINDS)
def test_each_option_says_what_it_is_in_a_sentence(kind):
    assert all(spec.doc.endswith(".") for spec in specs_of(kind).values())


@pytest.mark.parametrize(("text", "seconds"), [("10ms", 0.01), ("500us", 0.0005), (" 1.5 s ", 1.5), ("", None)])
def test_a_latency_has_a_unit(text, seconds):
    assert parse_latency(text) == seconds


def test_options_that_contradict_each_other_are_refused_wherever_they_come_from():
    with pytest.raises(UsageError, match="give a target latency"):
        BenchOptions(scenario="server")
    with pytest.raises(PlanError, match="needs --resamples 5000"):
        EvaluationOptions(confidence=0.999)
    with pytest.raises(UsageError, match="no format is chosen"):
        ExportOptions(output="models")
