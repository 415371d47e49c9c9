import json
import math
import shlex
import tomllib
from contextlib import suppress
from typing import Any

import pytest
import tomlkit

from accel_engine.errors import FieldValue, PlanError
from accel_engine.plan import DEFAULTS, SPECS, USES, Plan
from accel_engine.plan.resolved_plan import resolve
from field_values import away, with_needs


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """A plan in which every field differs from its default that goes with the others."""
    arrays = tmp_path_factory.mktemp("arrays") / "my data.npz"
    arrays.touch()
    values: dict[str, Any] = {
        "data": str(arrays),
        "devices": ("cpu:0", "cpu:1"),
        "virtual_cpus": 2,
        "name": "it's a try",
        "optimizer": "sgd",
        "schedule": "steps",
        "loss": "categorical_crossentropy",
    }
    for name in reversed(SPECS):
        with suppress(PlanError):
            values = Plan(**with_needs({name: away(name)}) | values).changed()
    return Plan(**values)


def test_default_plan_trains_the_default_model_on_the_data_that_needs_no_network() -> None:
    plan = Plan()
    assert (plan.model, plan.data, plan.strategy) == ("auto", "digits", "default")
    assert plan.changed() == {}
    assert plan.command() == "accel-tui train"
    assert plan.title == "auto on digits"


def test_every_field_is_documented_and_its_default_is_allowed() -> None:
    assert list(SPECS) == list(DEFAULTS)
    for name, spec in SPECS.items():
        assert spec.doc, name
        assert "\n" not in spec.doc, name
        assert spec.check(name, DEFAULTS[name]) == DEFAULTS[name]
        assert spec.allowed, name


def test_every_field_survives_toml_and_json(changed: Plan) -> None:
    alone = SPECS.keys() - changed.changed().keys()
    assert len(alone) <= 8, "they are tried alone"
    for plan in (changed, *(Plan.from_mapping(away_from_default(changed, name)) for name in alone)):
        values = {name: SPECS[name].none_word if value is None else value for name, value in plan.to_mapping().items()}
        assert Plan.from_mapping(tomllib.loads(tomlkit.dumps(values))) == plan
        assert Plan.from_mapping(json.loads(plan.to_json())) == plan
        assert Plan.from_mapping(plan.to_mapping()) == plan


def away_from_default(changed: Plan, name: str) -> dict[str, Any]:
    """The values of a plan with this field away from its default, and what the field needs of others."""
    values = with_needs({name: away(name)})
    if name in ("time", "window", "horizon", "group"):
        values["data"] = changed.data
    return Plan.from_mapping(values).to_mapping()


@pytest.mark.parametrize("name", list(SPECS))
def test_what_only_training_needs_never_matters_to_a_trained_run(changed: Plan, name: str) -> None:
    trained_with = away_from_default(changed, name)
    opened = Plan.of_trained_run(trained_with)
    kept = {each for each, use in USES.items() if not use.only_training}
    policy = Plan.from_mapping(trained_with).policy
    assert opened.to_mapping() == {
        **Plan().to_mapping(),
        **{each: trained_with[each] for each in kept},
        "precision": policy,
    }
    about_training = {error.field for error in resolve(opened, chosen=()).plan_errors} - kept
    assert not about_training


def test_the_precision_of_a_trained_run_is_that_of_its_strategy() -> None:
    assert Plan.of_trained_run({"strategy": "tpu"}).policy == "mixed_bfloat16"
    assert Plan.of_trained_run({"strategy": "tpu", "precision": "float32"}).policy == "float32"
    with pytest.raises(PlanError, match="strategy"):
        Plan.of_trained_run({"strategy": ["mirrored"]})  # a damaged run


def test_command_says_what_differs_and_can_be_pasted_into_a_shell(changed: Plan) -> None:
    words = shlex.split(changed.command())
    assert words[:2] == ["accel-tui", "train"]
    given = dict(zip(words[2::2], words[3::2], strict=True))
    assert given["--devices"] == "cpu:0,cpu:1"
    assert given["--virtual-cpus"] == "2"
    assert given["--data"] == changed.data
    assert given["--name"] == "it's a try"
    assert set(given) == {str(FieldValue(name)) for name in changed.changed()}


def test_devices_may_be_given_as_text_or_as_a_list() -> None:
    assert Plan(devices="gpu:0, gpu:1").devices == ("gpu:0", "gpu:1")  # type: ignore[arg-type]
    assert Plan.from_mapping({"devices": ["gpu:0"]}).devices == ("gpu:0",)


def test_numbers_as_text_may_have_thousands_apart_but_not_parts() -> None:
    assert SPECS["steps_per_epoch"].parse("steps_per_epoch", "1,000") == 1000
    with pytest.raises(PlanError, match="must be a number"):
        SPECS["learning_rate"].parse("learning_rate", "0,001")
    assert SPECS["learning_rate"].parse("learning_rate", " 1e-3 ") == 1e-3
    for text in ("1.5", "x", ""):
        with pytest.raises(PlanError):
            SPECS["epochs"].parse("epochs", text)


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.optional and spec.type is not tuple])
def test_what_is_left_out_can_be_said_to_be(name: str) -> None:
    assert SPECS[name].parse(name, "auto") is None
    with pytest.raises(PlanError):
        Plan.from_mapping({name: SPECS[name].parse(name, "")})
    assert getattr(Plan.from_mapping({name: "auto"}), name) is None
    assert Plan().command(always=(name,)) == f"accel-tui train {FieldValue(name)!s} auto"


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.type is tuple and spec.optional])
def test_no_names_can_be_said_too(name: str) -> None:
    assert SPECS[name].parse(name, "auto") == ()
    assert Plan(**{name: ()}).command(always=(name,)) == f"accel-tui train {FieldValue(name)!s} auto"


def test_whole_number_is_taken_where_a_number_is_wanted() -> None:
    rate = Plan.from_mapping({"learning_rate": 1}).learning_rate
    assert isinstance(rate, float)
    assert rate == 1.0


@pytest.mark.parametrize(
    ("field", "given", "stored"),
    [
        ("patience", "never", None),
        ("global_clip_norm", "off", None),
        ("memory_limit", "all", None),
        ("class_weight", "none", ()),
        ("metrics", "none", ()),
        ("loss", "mse", "mean_squared_error"),
        ("loss", "BCE", "binary_crossentropy"),
        ("loss", "sparse_categorical_crossentropy", "categorical_crossentropy"),
        ("metrics", "acc, rmse", ("accuracy", "root_mean_squared_error")),
        ("metrics", ["mape"], ("mean_absolute_percentage_error",)),
        ("restore_best", True, "on"),
        ("shuffle", False, "off"),
        ("xla", True, "on"),
    ],
)
def test_other_words_for_a_value_are_stored_as_its_own(field: str, given: object, stored: object) -> None:
    assert getattr(Plan.from_mapping({field: given}), field) == stored
    if isinstance(given, str):
        assert SPECS[field].parse(field, given) == stored


def test_aliases_are_of_choices() -> None:
    for spec in SPECS.values():
        assert {*spec.aliases.values()} <= {*spec.choices}
        assert not {*spec.aliases} & {*spec.choices}


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("batch_size", 0, "at least 1"),
        ("batch_size", 3.5, "an integer"),
        ("batch_size", True, "an integer"),
        ("batch_size", "64", "an integer"),
        ("batch_size", None, "an integer"),
        ("epochs", -1, "at least 1"),
        ("steps_per_epoch", 0, "or auto"),
        ("patience", "soon", "an integer of at least 1, or never"),
        ("global_clip_norm", 0, "a number above 0, or off"),
        ("memory_limit", -1, "a number above 0, or all"),
        ("metrics", 5, "root_mean_squared_error, r2_score, or none"),
        ("metrics", "accuracyy", "did you mean accuracy"),
        ("metrics", "MeanSquaredError", "did you mean mean_squared_error"),
        ("augmentation", "flipp", "augmentation = 'flipp': did you mean flip? Must be one or more of"),
        ("class_weight", {"1": 3.0}, 'a list of names, or none (did you mean "1=3.0"?)'),
        ("rate_drops", 3, "must be a list of names"),
        ("time_limit", 5, 'must be text, e.g. "2h"'),
        ("loss", "sparse_categorical_crossentropi", "did you mean sparse_categorical_crossentropy"),
        ("learning_rate", 0, "above 0"),
        ("learning_rate", math.nan, "a number"),
        ("learning_rate", math.inf, "a number"),
        ("seed", 2**31, "from 0 to 2147483647"),
        ("virtual_cpus", 65, "from 1 to 64"),
        ("threads", 0, "an integer from 1 to 1024, or auto"),
        ("threads", 1025, "an integer from 1 to 1024, or auto"),
        ("precision", "float16", "one of auto, float32, mixed_bfloat16, mixed_float16"),
        ("xla", "yes", "one of auto, on, off"),
        ("optimizer", "adamm", "did you mean"),
        ("validation", "never", "one of epoch, end, off"),
        ("devices", 3, "a list of names"),
        ("devices", [1, 2], "a list of names"),
        ("image_size", "0x5", "HEIGHTxWIDTH"),
        ("image_size", "large", "HEIGHTxWIDTH"),
        ("model", "nlp", "did you mean mlp"),
        ("model", 3, "text"),
        ("model", "nowhere.py:build", "no such file"),
        ("model", "nowhere.keras", "no such file"),
        ("data", "digit", "no such dataset or file; did you mean digits"),
        ("data", "nowhere.npz", "no such file"),
        ("data", "synthetic:0x3", "synthetic[:SHAPE"),
        ("strategy", "miror", "did you mean mirrored"),
    ],
)
def test_wrong_value_is_told_by_field_value_and_what_is_allowed(field: str, value: object, told: str) -> None:
    with pytest.raises(PlanError) as caught:
        Plan.from_mapping({field: value})
    assert caught.value.field == field
    assert caught.value.value == value or value != value
    assert told in str(caught.value)
    assert str(caught.value).startswith(f"{field} = ")
    assert caught.value.exit_status == 2


def test_name_that_is_no_field_is_refused_with_the_nearest() -> None:
    with pytest.raises(PlanError, match="did you mean batch_size"):
        Plan.from_mapping({"batch-siz": 3})
    with pytest.raises(PlanError, match="--help lists all fields"):
        Plan.from_mapping({"zzz": 3})


def test_replace_checks_again() -> None:
    assert Plan().replace(epochs=2).epochs == 2
    with pytest.raises(PlanError, match="epochs"):
        Plan().replace(epochs=0)
