"""How many colours are painted with: what the user, the environment and the terminal say, in this order."""

import pytest

from accel_tui.appearance import colours
from accel_tui.appearance.theme import ANSI
from accel_tui.settings.user_settings import Settings

FULL = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


@pytest.mark.parametrize(
    ("environment", "number"),
    [
        (FULL, colours.TRUE_COLOUR),
        ({"TERM": "xterm", "COLORTERM": "24bit"}, colours.TRUE_COLOUR),
        ({"TERM": "tmux-256color"}, 256),
        ({"TERM": "xterm-kitty"}, 256),
        ({"TERM": "xterm"}, 16),
        ({"TERM": "linux"}, 16),
        ({}, 16),
    ],
)
def test_a_terminal_says_how_many_it_has(environment: dict[str, str], number: int) -> None:
    assert colours.terminal_colour_count(environment) == number


@pytest.mark.parametrize(
    ("chosen", "environment", "theme", "told"),
    [
        ("auto", FULL, "auto", {}),
        ("auto", {"TERM": "xterm-256color"}, "auto", {}),
        ("auto", {"TERM": "xterm"}, ANSI.name, {}),
        ("auto", FULL | {"NO_COLOR": "0"}, ANSI.name, {"NO_COLOR": "0"}),
        ("auto", FULL | {"NO_COLOR": ""}, "auto", {}),
        ("none", FULL, ANSI.name, {"NO_COLOR": "1"}),
        ("16", FULL, ANSI.name, {"TEXTUAL_COLOR_SYSTEM": "standard"}),
        ("256", {"TERM": "xterm"}, "auto", {"TEXTUAL_COLOR_SYSTEM": "256"}),
        ("all", {"TERM": "xterm", "NO_COLOR": "1"}, "auto", {"TEXTUAL_COLOR_SYSTEM": "truecolor"}),
    ],
)
def test_what_is_settled_goes_before_the_environment(
    chosen: str, environment: dict[str, str], theme: str, told: dict[str, str]
) -> None:
    environment = dict(environment)
    assert colours.configure_textual(Settings(colours=chosen), environment).theme == theme
    relevant = ("NO_COLOR", "TEXTUAL_COLOR_SYSTEM")
    assert {name: value for name, value in environment.items() if name in relevant} == told


def test_a_theme_that_was_chosen_stays() -> None:
    assert colours.configure_textual(Settings(theme="nord"), {"TERM": "xterm"}).theme == "nord"


def test_textual_is_told_how_many_pictures_to_show() -> None:
    environment: dict[str, str] = {}
    colours.configure_textual(Settings(frames=12), environment)
    assert environment["TEXTUAL_FPS"] == "12"
