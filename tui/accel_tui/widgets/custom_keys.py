"""Custom keys of the user settings, for widgets that show keys next to their actions."""

from collections.abc import Mapping
from dataclasses import replace

from textual.widget import Widget

from accel_tui.host import settings_of


def custom_keys(owner: Widget) -> Mapping[str, str]:
    """Keys, as shown, of those actions of a widget for which the user has set custom keys."""
    chosen = settings_of(owner).keys
    found: dict[str, str] = {}
    for kind in type(owner).__mro__:
        for binding in kind.__dict__.get("BINDINGS", ()):
            if binding.id and (keys := chosen.get(binding.id)):
                key = replace(binding, key=keys.partition(",")[0])
                found.setdefault(binding.action, owner.app.get_key_display(key))
    return found
