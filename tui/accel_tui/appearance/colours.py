"""How many colours a terminal shows, and how Textual is told."""

from collections.abc import Mapping, MutableMapping
from dataclasses import replace

from accel_tui.settings.user_settings import Settings

ALL = 1 << 24
"""The number of colours of a terminal that mixes them."""

FEW = 16
"""The number of colours of a terminal whose colours are its own."""

OWN_THEME = "accel-ansi"
"""The theme that needs no colours but the terminal's own."""

_SYSTEMS = {"16": "standard", "256": "256", "all": "truecolor"}  # what Textual calls them


def count(environment: Mapping[str, str]) -> int:
    """How many colours the terminal says that it shows."""
    if environment.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit"):
        return ALL
    kind = environment.get("TERM", "")
    return 256 if kind.endswith(("-256color", "-256colors", "-direct")) or kind == "xterm-kitty" else FEW


def obey(settings: Settings, environment: MutableMapping[str, str]) -> Settings:
    """Have Textual, which reads the environment as it is imported, show what is settled.

    What is settled for this program goes before NO_COLOR, which speaks of programs in general.

    Returns:
        The settings, with a theme that the terminal can show where none was chosen.
    """
    environment["TEXTUAL_FPS"] = str(settings.frames)
    if not environment.get("NO_COLOR"):
        environment.pop("NO_COLOR", None)  # empty, it says nothing; Textual takes it for a word
    if settings.colours == "none":
        environment["NO_COLOR"] = "1"
    elif settings.colours != "auto":
        environment.pop("NO_COLOR", None)
        environment["TEXTUAL_COLOR_SYSTEM"] = _SYSTEMS[settings.colours]
    if settings.theme != "auto":
        return settings
    few = settings.colours == "16" or (settings.colours == "auto" and count(environment) == FEW)
    return replace(settings, theme=OWN_THEME) if few or "NO_COLOR" in environment else settings
