"""``accel-tui settings``: where settings are, what they come to, and whether they are right."""

import os
from collections.abc import Iterator
from typing import Any

import click
import tomli_w

from accel_engine.errors import UsageError
from accel_engine.field_spec import AUTO
from accel_engine.plan import DEFAULTS as PLAN_DEFAULTS
from accel_engine.plan import SPECS as PLAN_SPECS
from accel_tui.cli.output import write
from accel_tui.cli.table import table
from accel_tui.settings import paths
from accel_tui.settings import user_settings as user
from accel_tui.settings.user_settings import ATTRIBUTES, SETTINGS, Settings, SettingsError

EPILOG = """\b
Examples:
  accel-tui settings init      write a file with all defaults
  accel-tui settings check     look whether the file is right
  accel-tui settings show      what holds, and where each of it comes from

\b
Files:
  ~/.config/accel-tui/settings.toml    on Linux
  ~/Library/Application Support/accel-tui/settings.toml
                                       on macOS

\b
Environment:
  ACCEL_TUI_SETTINGS  another file
  XDG_CONFIG_HOME     another place than ~/.config
"""

BUILT_IN = "built in"
"""Where a setting comes from that no file changes."""

HEAD = """# Settings of accel-tui. What begins with # is the default: take the # away to change it.
# The command line goes before a plan file, a plan file before these settings.
"""


@click.group(epilog=EPILOG)
def settings() -> None:
    """Look at the settings file, or begin one.

    It is TOML. The command line goes before a plan file, a plan file before settings, settings
    before what is built in.
    """


@settings.command("path")
def path_() -> None:
    """Print where the file is, or would be."""
    write(paths.settings_path())


@settings.command()
def show() -> None:
    """Show what holds, and where each of it comes from."""
    chosen = _checked()
    write(chosen.source.path)
    write(table(("SETTING", "VALUE", "FROM"), list(_rows(chosen))))


@settings.command()
def check() -> None:
    """Look whether the file is right; the status is 2 when it is not."""
    chosen = _checked()
    write(f"{chosen.source.path}: " + ("no mistakes" if chosen.source.lines else "nothing is set"))


@settings.command()
def init() -> None:
    """Write a file with all defaults, as comments, where there is none."""
    from accel_tui.settings import keymap

    place = paths.settings_path()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("x", encoding="utf-8") as file:
            file.write(template(keymap.keys()))
    except FileExistsError:
        raise UsageError(f"{place} is there already, and stays as it is") from None
    except OSError as error:
        raise UsageError(f"cannot write {place}: {error.strerror}") from error
    write(place)


def template(keys: "dict[str, Any]") -> str:
    """A settings file with all defaults, as comments.

    Args:
        keys: What keys do, as :func:`accel_tui.settings.keymap.keys` gives it.
    """
    groups: dict[str, list[str]] = {"": [], "plan": [], "rates": [], "notify": [], "keys": []}
    defaults = Settings()
    for name, spec in SETTINGS.items():
        head, _, last = name.rpartition(".")
        groups[head] += _lines(last, spec.doc, _allowed(spec.choices), getattr(defaults, ATTRIBUTES[name]))
    for name, spec in PLAN_SPECS.items():
        groups["plan"] += _lines(name, spec.doc, _allowed(spec.choices), PLAN_DEFAULTS[name])
    for key in keys.values():
        pressed = key.keys[0] if len(key.keys) == 1 else list(key.keys)
        groups["keys"] += _lines(f'"{key.id}"', key.does, "", pressed)
    parts = [HEAD, *(("\n" + f"[{name}]\n" if name else "\n") + "".join(lines) for name, lines in groups.items())]
    return "".join(parts)


def _allowed(choices: tuple[str, ...]) -> str:
    return f": {', '.join(choices)}" if choices else ""


def _lines(name: str, doc: str, allowed: str, value: Any) -> list[str]:
    return [f"# {doc}{allowed}\n", f"# {name} = {_toml(value)}\n"]


def _toml(value: Any) -> str:
    """A value as TOML has it, in a line; of one that is left out, what says so."""
    if value is None:
        value = AUTO
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return tomli_w.dumps({"x": value}).removeprefix("x = ").strip()


def _checked() -> Settings:
    """The settings, every name in them looked up.

    Raises:
        SettingsError: Something in the file is wrong.
    """
    from accel_tui.settings import keymap  # imports all screens

    chosen, mistakes = user.read(paths.settings_path())
    if mistakes := [*mistakes, *keymap.theme_mistakes(chosen), *keymap.key_mistakes(chosen)]:
        raise SettingsError(mistakes)
    return chosen


def _rows(chosen: Settings) -> Iterator[tuple[str, str, str]]:
    from accel_tui.settings import keymap

    for name in SETTINGS:
        yield name, _toml(getattr(chosen, ATTRIBUTES[name])), _origin(chosen, name)
    for name in PLAN_SPECS:
        value = chosen.plan.get(name, PLAN_DEFAULTS[name])
        yield f"plan.{name}", _toml(value), _origin(chosen, f"plan.{name}")
    for key in keymap.keys().values():
        yield f"keys.{key.id}", chosen.keys.get(key.id, ",".join(key.keys)), _origin(chosen, f"keys.{key.id}")


def _origin(chosen: Settings, name: str) -> str:
    table, _, below = name.partition(".")
    if name in chosen.source.lines or below in {"plan": chosen.plan, "keys": chosen.keys}.get(table, ()):
        return f"line {chosen.source.line(name)}"
    if name == "colours" and os.environ.get("NO_COLOR"):
        return f"{BUILT_IN}, and NO_COLOR"
    return BUILT_IN
