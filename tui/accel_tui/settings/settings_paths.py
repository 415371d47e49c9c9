"""The path of the settings file; imports little."""

import os
from pathlib import Path

import platformdirs

from accel_engine.user_paths import user_path

SETTINGS = "ACCEL_TUI_SETTINGS"
"""The environment variable with the path of another settings file."""


def settings_path() -> Path:
    """The path of the settings file: ``ACCEL_TUI_SETTINGS``, or the platform's directory for user settings."""
    chosen = os.environ.get(SETTINGS)
    return user_path(chosen) if chosen else platformdirs.user_config_path("accel-tui") / "settings.toml"
