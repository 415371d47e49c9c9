"""Number of colours of the terminal, and how Textual is configured for it."""

from collections.abc import Mapping, MutableMapping
from dataclasses import replace

from accel_tui.settings.user_settings import Settings

ALL = 1 << 24
"""Colours of a terminal with a 256-colour palette or more."""

FEW = 16
"""Colours of a terminal with 16 colours of its own."""

OWN_THEME = "accel-ansi"
"""The theme that uses only the terminal's own colours."""

_SYSTEMS = {"16": "standard", "256": "256", "all": "truecolor"}  # Textual's names


def count(environment: Mapping[str, str]) -> int:
    """Number of colours that the environment declares."""
    if environment.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit"):
        return ALL
    kind = environment.get("TERM", "")
    return 256 if kind.endswith(("-256color", "-256colors", "-direct")) or kind == "xterm-kitty" else FEW


def obey(settings: Settings, environment: MutableMapping[str, str]) -> Settings:
    """Configure Textual, which reads the environment on import, by the settings.

    The program's settings take precedence over NO_COLOR, which is about programs in general.

    Returns:
        The settings, with a theme that the terminal can show if none was set.
    """
    environment["TEXTUAL_FPS"] = str(settings.frames)
    if not environment.get("NO_COLOR"):
        environment.pop("NO_COLOR", None)  # an empty value would count as set
    if settings.colours == "none":
        environment["NO_COLOR"] = "1"
    elif settings.colours != "auto":
        environment.pop("NO_COLOR", None)
        environment["TEXTUAL_COLOR_SYSTEM"] = _SYSTEMS[settings.colours]
    if settings.theme != "auto":
        return settings
    few = settings.colours == "16" or (settings.colours == "auto" and count(environment) == FEW)
    return replace(settings, theme=OWN_THEME) if few or "NO_COLOR" in environment else settings
