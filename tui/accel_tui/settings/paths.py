"""Where the program finds what its user has settled, and keeps what it needs again, without importing much."""

import os
from pathlib import Path

import platformdirs

SETTINGS = "ACCEL_TUI_SETTINGS"
"""The variable of the environment that names another settings file."""


def settings_path() -> Path:
    """The settings file, which need not be there: ``ACCEL_TUI_SETTINGS``, or the platform's place for settings."""
    chosen = os.environ.get(SETTINGS)
    return Path(chosen).expanduser() if chosen else platformdirs.user_config_path("accel-tui") / "settings.toml"


def first_frame_path() -> Path:
    """The first frame of the dashboard: with the runs where a place for those is named, else in the cache."""
    home = os.environ.get("ACCEL_TUI_HOME")
    return (Path(home).expanduser() if home else platformdirs.user_cache_path("accel-tui")) / "first-frame"
