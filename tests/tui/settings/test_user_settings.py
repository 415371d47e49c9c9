"""Reading the settings file: what holds, and what is said of what is wrong."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from accel_engine.errors import UsageError
from accel_engine.plan import Plan
from accel_engine.plan.fields import PlanFields
from accel_tui.settings import user_settings
from accel_tui.settings.user_settings import SETTINGS, Settings, SettingsError, read_settings, save_setting

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "settings.md"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's settings file, empty as yet."""
    place = tmp_path / "settings.toml"
    place.touch()
    monkeypatch.setenv("ACCEL_TUI_SETTINGS", str(place))
    return place


def mistakes(file: Path, text: str) -> list[str]:
    file.write_text(text)
    with pytest.raises(SettingsError) as error:
        user_settings.load_settings()
    assert error.value.exit_status == 2
    assert str(error.value).splitlines()[1:] == list(error.value.errors)
    return [mistake.removeprefix(str(file)) for mistake in error.value.errors]


def test_without_a_file_all_is_as_built_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ACCEL_TUI_SETTINGS")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_settings.settings_path().name == "settings.toml"
    assert user_settings.settings_path().is_relative_to(tmp_path)
    assert user_settings.load_settings() == Settings()


def test_everything_can_be_set(file: Path) -> None:
    file.write_text("""
theme = "nord"
colours = "256"
glyphs = "ascii"

[plan]
epochs = 3
learning_rate = 1
devices = ["cpu:0"]

[rates]
frames = 10
curves = 1
devices = 5

[notify]
bell = false
desktop = false
title = false

[keys]
"run.pause" = "space"
charts.in = ["z", ","]
""")
    assert user_settings.load_settings() == Settings(
        theme="nord",
        colours="256",
        glyphs="ascii",
        frames=10,
        curves=1.0,
        devices=5.0,
        notify_bell=False,
        notify_desktop=False,
        title=False,
        plan={"epochs": 3, "learning_rate": 1.0, "devices": ["cpu:0"]},
        keys={"run.pause": "space", "charts.in": "z,comma"},
    )


def test_a_file_that_the_environment_names_must_be_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ACCEL_TUI_SETTINGS", str(tmp_path / "none.toml"))
    with pytest.raises(SettingsError, match=r"none\.toml: no such file .set by ACCEL_TUI_SETTINGS."):
        user_settings.load_settings()


def test_a_file_that_cannot_be_read_says_why(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_bytes(b"theme = '\xff'")
    with pytest.raises(SettingsError, match="is not UTF-8: invalid start byte at byte 9"):
        user_settings.load_settings()
    monkeypatch.setenv("ACCEL_TUI_SETTINGS", str(file.parent))
    with pytest.raises(SettingsError, match="cannot be read: it is a directory"):
        user_settings.load_settings()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "\ntheme = nord\n",
            [
                ':2: invalid TOML: Invalid value; quote texts, e.g. theme = "nord"; '
                "write true, false and numbers without quotes"
            ],
        ),
        ('theme = "nord\n', [":1: invalid TOML: Illegal character '\\n'; a quote is not closed"]),
        ("a = 1\na = 2\n", [":2: invalid TOML: Cannot overwrite a value; the name is already set"]),
        (
            "[keys]\n[keys]\n",
            [
                ":2: invalid TOML: Cannot declare ('keys',) twice; "
                "the table already exists; put all its names below one header"
            ],
        ),
        ('\nthem = "x"', [":2: unknown setting 'them'; did you mean theme?"]),
        ("theme = 3", [":1: theme = 3: must be text"]),
        ('glyphs = "asci"', [":1: glyphs = 'asci': did you mean ascii? Must be one of auto, unicode, ascii"]),
        ("epochs = 3", [":1: 'epochs' belongs in the table [plan]"]),
        ("bell = true", [":1: 'bell' belongs in the table [notify]"]),
        ("rates = 3", [":1: rates = 3: must be a table: put its settings below a [rates] header"]),
        ("plan = 3", [":1: plan = 3: must be a table: put its settings below a [plan] header"]),
        ("[rates]\n\nframe = 3", [":3: unknown setting 'frame' in [rates]; did you mean frames?"]),
        ("[rates]\nframes = 0", [":2: rates.frames = 0: must be an integer from 1 to 120"]),
        ("rates = { frames = 0 }", [":1: rates.frames = 0: must be an integer from 1 to 120"]),
        ("rates.devices = nan", [":1: rates.devices = nan: must be a number from 0.2 to 60"]),
        ("[notify]\nbell = 1", [":2: notify.bell = 1: must be true or false"]),
        ("[plan]\nepoch = 1", [":2: 'epoch' is not a plan field; did you mean epochs?"]),
        ("[plan]\nepochs = 0", [":2: epochs = 0: must be an integer of at least 1"]),
        ('[plan]\n"strategy" = "miror"', [":2: strategy = 'miror': no such strategy; did you mean mirrored?"]),
        (
            "[keys]\nrun.pause = 3",
            [':2: run.pause = 3: must be a key, e.g. "ctrl+x", or a list of keys, e.g. ["x", "f5"]'],
        ),
        (
            "[keys]\nrun.pause = []",
            [':2: run.pause = []: must be a key, e.g. "ctrl+x", or a list of keys, e.g. ["x", "f5"]'],
        ),
        (
            "[plan]\nclip_norm = 1\nclip_value = 1\nbatch_size = 0\nwarmup = 2.5",
            [
                ":3: clip_value = 1.0: gradients are clipped once: leave out --clip-norm",
                ":4: batch_size = 0: must be an integer of at least 1",
                ":5: warmup = 2.5: must be a whole number of steps, or a share of all steps below 100%",
            ],
        ),
        (
            "[rates]\nframes = 0\n[plan]\nepochs = 0",
            [
                ":2: rates.frames = 0: must be an integer from 1 to 120",
                ":4: epochs = 0: must be an integer of at least 1",
            ],
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line_and_what_would_be_right(file: Path, text: str, said: list[str]) -> None:
    assert mistakes(file, text) == said


def test_a_field_without_effect_is_a_default_for_plans_in_which_it_has_one(file: Path) -> None:
    file.write_text('[plan]\noptimizer = "adam"\nmomentum = 0.9\nmin_delta = 1\nwarmup = "5%"\ndevices = ["cpu:0"]')
    settings = user_settings.load_settings()
    values = {"optimizer": "adam", "momentum": 0.9, "min_delta": 1.0, "warmup": 0.05, "devices": ["cpu:0"]}
    assert settings.plan == values
    assert settings.plan_defaults == PlanFields(**{**values, "devices": ("cpu:0",)})


def test_the_command_of_a_plan_says_what_settings_would_say_otherwise() -> None:
    mine = Settings(plan={"epochs": 3, "batch_size": 8, "steps_per_epoch": 5})
    plan = Plan(epochs=10, batch_size=8)
    assert plan.command() == "accel-tui train --batch-size 8"
    assert mine.command(plan) == "accel-tui train --epochs 10 --batch-size 8 --steps-per-epoch auto"


def test_every_setting_is_documented_with_its_default() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for name, spec in SETTINGS.items():
        default = getattr(Settings(), user_settings.ATTRIBUTES[name])
        shown = "auto" if default in (None, ()) else str(default).lower() if isinstance(default, bool) else str(default)
        row = next((line for line in text.splitlines() if line.startswith(f"| `{name}` | `{shown}` |")), "")
        assert row, (name, shown)
        assert all(f"`{choice}`" in row for choice in spec.choices), (name, spec.choices)
    assert re.findall(r"^\| `([a-z._]+)` \|", text, re.MULTILINE) == list(SETTINGS)


def test_a_source_says_the_nearest_place() -> None:
    source = replace(user_settings.SettingSource(), path=Path("s.toml"), lines={"plan": 3})
    assert source.at("plan.epochs", "x") == "s.toml:3: x"
    assert source.at("theme", "x") == "s.toml: x"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rates.frames = " + "9" * 5000, ":1: a number has more than 4,300 digits"),
        ("x = " + "[" * 100_000, ": tables or lists are nested more than 20 deep"),
        (".".join("a" * 50_000) + " = 1", ":1: a name has more than 20 parts"),
        ("theme = '" + "x" * 300_000 + "'", ": cannot be read: it is larger than 256 KiB"),
        ("[keys]\nrun = [" + "1," * 50_000 + "]", '…: must be a key, e.g. "ctrl+x"'),
        ("rates = [" + "1," * 50_000 + "]", "…: must be a table"),
    ],
)
def test_huge_numbers_names_and_nesting_are_explained_in_a_line(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(text)
    _, errors = read_settings(path)
    assert expected in "\n".join(errors)
    assert len("\n".join(errors)) < 600


def test_settings_are_in_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "settings.toml")
    _, errors = read_settings(tmp_path / "settings.toml")
    assert errors == [f"{tmp_path / 'settings.toml'}: cannot be read: it is a pipe, not a file"]
    with pytest.raises(UsageError, match="it is a pipe, not a file; add it yourself"):
        save_setting(tmp_path / "settings.toml", "theme", "nord")
