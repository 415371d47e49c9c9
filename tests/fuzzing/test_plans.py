"""Plans and settings in any text: each is read, or refused in a few lines."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from accel_engine.errors import PlanError, UsageError
from accel_engine.plan import SPECS, Plan
from accel_engine.plan.plan_file import InvalidPlanError, read_plan_file, valid_part
from accel_engine.text import printable
from accel_tui.settings.user_settings import SETTINGS, SettingsError, read_settings
from fuzzing.texts import edited

LONGEST = 20_000

TEXTS = st.text(max_size=30) | st.sampled_from(
    ["auto", "off", "mlp", "digits", "9" * 5000, "x" * 50_000, "1e999", "nan"]
)
NUMBERS = st.integers() | st.floats() | st.sampled_from([10**400, -(10**20), 2**63])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
NAMES = st.sampled_from(list(SPECS)) | st.text(max_size=12)
LINES = st.sampled_from(
    [
        "epochs = 3",
        'model = "mlp"',
        "[plan]",
        "[keys]",
        "rates.frames = 30",
        '"a b" = {c = [1, {d = 2}]}',
        "x = '''",
        "y = [",
        "[[z]]",
        "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a = 1",
        "n = " + "9" * 4400,
        "d = 9999-12-31T25:00:00Z",
        't = "\\u0000\\ud800\\x1b[2J"',
        "[" * 2000,
    ]
)


def check(said: str) -> None:
    assert len(said) <= LONGEST
    assert printable(said) == said


@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_values_of_any_kind(values: dict[str, Any]) -> None:
    plan, errors = valid_part(values)
    if errors:
        check(str(InvalidPlanError(list(errors.values()))))
    assert Plan.from_mapping(json.loads(plan.to_json())) == plan
    plan.command()


@given(st.lists(LINES, max_size=8).map("\n".join).flatmap(edited))
def test_toml(tmp_path: Path, text: bytes) -> None:
    _read(tmp_path / "plan.toml", text)


@given(VALUES.map(lambda value: json.dumps(value, default=str)).flatmap(edited))
def test_json(tmp_path: Path, text: bytes) -> None:
    _read(tmp_path / "plan.json", text)


def _read(path: Path, text: bytes) -> None:
    path.write_bytes(text)
    try:
        file = read_plan_file(path)
        _, errors = valid_part(file.values)
        if errors:
            check(str(InvalidPlanError(list(errors.values()), file.describe)))
    except UsageError as error:
        check(str(error))


@given(st.sampled_from(list(SPECS)), TEXTS)
def test_options(name: str, text: str) -> None:
    try:
        SPECS[name].parse(name, text)
    except PlanError as error:
        check(str(error))


@given(
    st.lists(LINES | st.sampled_from([f"{name} = 1" for name in SETTINGS]), max_size=8).map("\n".join).flatmap(edited)
)
def test_settings(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(text)
    _, errors = read_settings(path)
    if errors:
        check(str(SettingsError(errors)))
