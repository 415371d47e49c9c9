"""The names of themes and keys that settings may have."""

from pathlib import Path

import pytest
from textual.theme import BUILTIN_THEMES

from accel_tui.settings import keymap
from accel_tui.settings.user_settings import Settings, SettingSource

SOURCE = SettingSource(Path("s.toml"), {"theme": 1, "keys.run.pause": 2, "keys.run.stop": 3})


def said(**keys: str) -> list[str]:
    chosen = {name.replace("_", ".", 1): value for name, value in keys.items()}
    return keymap.key_errors(Settings(keys=chosen, source=SOURCE))


@pytest.mark.parametrize("theme", ["auto", "accel-ansi", *BUILTIN_THEMES])
def test_every_theme_can_be_named(theme: str) -> None:
    assert keymap.theme_errors(Settings(theme=theme)) == []


def test_an_unknown_theme_is_told() -> None:
    (mistake,) = keymap.theme_errors(Settings(theme="drakula", source=SOURCE))
    assert mistake == "s.toml:1: unknown theme 'drakula'; did you mean dracula?"


def test_every_key_is_known_with_what_it_does() -> None:
    keys = keymap.keys()
    assert {"app.help", "plan.start", "picker.close", "run.pause", "charts.in", "runs.open", "help.close"} <= set(keys)
    assert keys["app.help"].keys == ("question_mark", "f1")
    assert keys["app.help"].description == "Show the keys of this screen"
    assert keys["help.close"].modal
    assert not keys["app.help"].modal


@pytest.mark.parametrize(
    "key", ["x", "X", "?", "ctrl+x", "ctrl+shift+left", "f5", "space", "comma", "pagedown", "+", "é"]
)
def test_keys_of_every_kind_can_be_set(key: str) -> None:
    assert [mistake for mistake in said(run_pause=key) if "no keyboard" in mistake] == []


@pytest.mark.parametrize("key", ["foo", "control+x", "ctrl+foo", ""])
def test_what_no_keyboard_has_is_refused(key: str) -> None:
    (mistake,) = said(run_pause=f"f9,{key}")
    assert mistake.startswith(f"s.toml:2: run.pause = 'f9,{key}': unknown key '{key}'; use e.g. x, ctrl+x")


def test_an_unknown_id_is_told_with_the_nearest() -> None:
    (mistake,) = said(run_puase="f9")
    assert mistake.startswith("s.toml: unknown key binding 'run.puase'; did you mean run.pause")


def test_two_uses_of_a_key_are_told() -> None:
    assert [mistake for mistake in said(run_pause="question_mark") if "app.help" in mistake] == [
        "s.toml:2: run.pause = 'question_mark': question_mark is already bound to app.help "
        "(Show the keys of this screen); "
        "use another key, or set another key for app.help in [keys]"
    ]
    assert any("run.pause" in mistake and "run.stop" in mistake for mistake in said(run_pause="f9", run_stop="f9"))
    assert any("charts.in" in mistake for mistake in said(run_pause="+"))


def test_a_key_that_was_given_another_is_free() -> None:
    assert said(run_pause="question_mark", app_help="f9") == []


def test_screens_that_are_never_together_may_share_a_key() -> None:
    assert said(plan_start="p", help_close="q") == []


def test_those_that_take_turns_may_be_moved_together() -> None:
    assert said(app_quit="f9", run_quit="f9") == []
