"""``accel-tui settings``: shows, checks and creates the settings file."""

import os
from collections.abc import Iterator
from typing import Any

import click

from accel_engine.errors import UsageError
from accel_engine.files import private_directory
from accel_engine.plan import DEFAULTS as PLAN_DEFAULTS
from accel_engine.plan import SPECS as PLAN_SPECS
from accel_engine.plan.field_spec import AUTO
from accel_tui.cli.output import table, write
from accel_tui.settings import user_settings as user
from accel_tui.settings.user_settings import ATTRIBUTES, SETTINGS, Settings, SettingsError

EPILOG = """\b
Examples:
  accel-tui settings init      create a file with all defaults
  accel-tui settings check     check the file
  accel-tui settings show      show all values and where they come from

\b
Files:
  ~/.config/accel-tui/settings.toml    on Linux
  ~/Library/Application Support/accel-tui/settings.toml
                                       on macOS

\b
Environment:
  ACCEL_TUI_SETTINGS  path of another settings file
  XDG_CONFIG_HOME     directory in place of ~/.config
"""

BUILT_IN = "default"
"""The origin of a setting that the file does not change."""

HEAD = """# Settings of accel-tui. Lines with # show the defaults: remove the # to change one.
# Command-line options override a plan file, a plan file overrides these settings.
"""


@click.group(epilog=EPILOG, invoke_without_command=True)
@click.pass_context
def settings(context: click.Context) -> None:
    """Show, check or create the settings file, in TOML.

    Command-line options override a plan file, a plan file overrides settings, settings override
    the defaults.
    """
    if context.invoked_subcommand is None:
        write(context.get_help())


@settings.command("path")
def path_() -> None:
    """Print the path of the settings file."""
    write(user.settings_path())


@settings.command()
def show() -> None:
    """Show all values and where they come from."""
    loaded = _load_checked()
    write(loaded.source.path)
    write(table(("SETTING", "VALUE", "FROM"), list(_rows(loaded))))


@settings.command()
def check() -> None:
    """Check the settings file; the exit status is 2 if it has errors."""
    loaded = _load_checked()
    write(f"{loaded.source.path}: " + ("no errors" if loaded.source.lines else "no settings"))


@settings.command()
def init() -> None:
    """Create a settings file with all defaults, as comments."""
    from accel_tui.app import key_bindings  # imports all screens

    path = user.settings_path()
    try:
        private_directory(path.parent)
        path.touch(0o600, exist_ok=False)
        path.write_text(template(key_bindings()), encoding="utf-8")
    except FileExistsError:
        raise UsageError(f"{path} already exists") from None
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    write(path)


def template(keys: "dict[str, Any]") -> str:
    """The text of a settings file with all defaults, as comments.

    Args:
        keys: The key bindings, from :func:`accel_tui.app.key_bindings`.
    """
    groups: dict[str, list[str]] = {"": [], "plan": [], "rates": [], "notify": [], "queue": [], "runs": [], "keys": []}
    defaults = Settings()
    for name, spec in SETTINGS.items():
        head, _, last = name.rpartition(".")
        groups[head] += _lines(last, spec.doc, _allowed(spec.choices), getattr(defaults, ATTRIBUTES[name]))
    for name, spec in PLAN_SPECS.items():
        groups["plan"] += _lines(name, spec.doc, _allowed(spec.choices), PLAN_DEFAULTS[name])
    for key in keys.values():
        pressed = key.keys[0] if len(key.keys) == 1 else list(key.keys)
        groups["keys"] += _lines(f'"{key.id}"', key.description, "", pressed)
    parts = [HEAD, *(("\n" + f"[{name}]\n" if name else "\n") + "".join(lines) for name, lines in groups.items())]
    return "".join(parts)


def _allowed(choices: tuple[str, ...]) -> str:
    return f": {', '.join(choices)}" if choices else ""


def _lines(name: str, doc: str, allowed: str, value: Any) -> list[str]:
    return [f"# {doc}{allowed}\n", f"# {name} = {_toml(value)}\n"]


def _toml(value: Any) -> str:
    """A value as TOML, in one line; ``"auto"`` for ``None``."""
    if value is None:
        value = AUTO
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    import tomlkit  # slow to import

    return tomlkit.dumps({"x": value}).removeprefix("x = ").strip()


def _load_checked() -> Settings:
    """Load the settings and check all names in them.

    Raises:
        SettingsError: The file has errors.
    """
    from accel_tui import keymap
    from accel_tui.app import key_bindings  # imports all screens

    loaded, errors = user.read_settings(user.settings_path())
    if errors := [*errors, *keymap.theme_errors(loaded), *keymap.key_errors(loaded, key_bindings())]:
        raise SettingsError(errors)
    return loaded


def _rows(loaded: Settings) -> Iterator[tuple[str, str, str]]:
    from accel_tui.app import key_bindings  # imports all screens

    for name in SETTINGS:
        yield name, _toml(getattr(loaded, ATTRIBUTES[name])), _origin(loaded, name)
    for name in PLAN_SPECS:
        value = loaded.plan.get(name, PLAN_DEFAULTS[name])
        yield f"plan.{name}", _toml(value), _origin(loaded, f"plan.{name}")
    for key in key_bindings().values():
        yield f"keys.{key.id}", loaded.keys.get(key.id, ",".join(key.keys)), _origin(loaded, f"keys.{key.id}")


def _origin(loaded: Settings, name: str) -> str:
    table, _, below = name.partition(".")
    if name in loaded.source.lines or below in {"plan": loaded.plan, "keys": loaded.keys}.get(table, ()):
        return f"line {loaded.source.line(name)}"
    if name == "colours" and os.environ.get("NO_COLOR"):
        return "NO_COLOR"
    return BUILT_IN
