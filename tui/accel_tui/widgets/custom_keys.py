"""Custom keys of the user settings, for widgets that show keys next to their actions."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from textual.widget import Widget

if TYPE_CHECKING:
    from accel_tui.app import AccelApp


def custom_keys(owner: Widget) -> Mapping[str, str]:
    """Keys, as shown, of those actions of a widget for which the user has set custom keys."""
    app = cast("AccelApp", owner.app)
    found: dict[str, str] = {}
    if not hasattr(app, "settings"):  # a widget without the app, in a test
        return found
    for kind in type(owner).__mro__:
        for binding in kind.__dict__.get("BINDINGS", ()):
            if binding.id and (keys := app.settings.keys.get(binding.id)):
                found.setdefault(binding.action, app.get_key_display(replace(binding, key=keys.partition(",")[0])))
    return found
