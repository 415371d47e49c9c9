"""User settings: a TOML file of plan defaults, theme, keys, rates and notifications."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

import platformdirs

from accel_engine.errors import PlanError, UsageError, first_errors, show_value
from accel_engine.files import private_directory, replacing
from accel_engine.plan import SPECS as PLAN_SPECS
from accel_engine.plan import Plan
from accel_engine.plan.field_spec import FieldSpec
from accel_engine.plan.fields import PlanFields
from accel_engine.plan.plan_checks import NoEffectError, valid_fields
from accel_engine.plan.plan_file import valid_part
from accel_engine.plan.source_text import SourceError, parse_toml, read_source, toml_lines
from accel_engine.text import suggestion
from accel_engine.user_paths import user_path

SETTINGS_VARIABLE = "ACCEL_TUI_SETTINGS"
"""The environment variable with the path of another settings file."""


def settings_path() -> Path:
    """The path of the settings file: ``ACCEL_TUI_SETTINGS``, or the platform's directory for user settings."""
    chosen = os.environ.get(SETTINGS_VARIABLE)
    return user_path(chosen) if chosen else platformdirs.user_config_path("accel-tui") / "settings.toml"


COLOURS = ("auto", "none", "16", "256", "all")
"""Settings for the number of colours."""

IMAGES = ("auto", "blocks")
"""Settings for how pictures are shown."""

GLYPHS = ("auto", "unicode", "ascii")
"""Settings for the characters of curves and frames."""

SEQUENCES = ("auto", "osc9", "osc777")
"""Settings for the escape sequence of desktop notifications."""


RUN_GROUPS = ("data", "model", "tag", "host", "none")
"""Settings for the groups of the list of runs."""

RUN_COLUMNS = (
    *("status", "run", "name", "model", "result", "bar", "val loss", "curve", "data", "strategy", "tags", "batch"),
    *("loss", "accuracy", "val acc", "val mae", "val rmse", "val r²", "examples/s", "best", "monitor", "baseline"),
    *("steps", "duration", "created"),
)
"""Settings for the columns of the list of runs, in their order in the list."""


@dataclass(frozen=True, slots=True)
class SettingSource:
    """The origin of settings."""

    path: Path | None = None
    """The file."""
    lines: Mapping[str, int] = field(default_factory=dict)
    """The line number of each setting in it, from 1; names are dotted, e.g. ``rates.frames``."""

    def line(self, name: str) -> int | None:
        """The line of a setting or of its table; ``None`` if unknown."""
        while name and name not in self.lines:
            name = name.rpartition(".")[0]
        return self.lines.get(name)

    def at(self, name: str, error: str) -> str:
        """Prefix an error with the file and the line of a setting."""
        line = self.line(name)
        return f"{self.path}:{line}: {error}" if line else f"{self.path}: {error}"


class SettingsError(UsageError):
    """Errors in the settings file.

    Attributes:
        errors: The messages, each with file and line.
    """

    def __init__(self, errors: Sequence[str]) -> None:
        self.errors = tuple(sorted(errors, key=_line))
        super().__init__("\n".join(["the settings have errors", *first_errors(self.errors)]))


def _setting(name: str, default: Any, doc: str, kind: type, **spec: Any) -> Any:
    return field(default=default, metadata={"name": name, "spec": FieldSpec(doc, kind, **spec)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The user settings; the fields are documented in :data:`SETTINGS`."""

    theme: str = _setting("theme", "auto", "Theme; auto is accel-dark, or accel-ansi with 16 colours", str)
    colours: str = _setting(
        "colours",
        "auto",
        "Colours of the terminal; auto detects them from NO_COLOR, COLORTERM and TERM",
        str,
        choices=COLOURS,
    )
    glyphs: str = _setting(
        "glyphs",
        "auto",
        "Characters of curves and frames; auto is unicode if the locale supports it",
        str,
        choices=GLYPHS,
    )
    images: str = _setting(
        "images",
        "auto",
        "Pictures: auto is real pixels where the terminal answers that it has them, else half blocks",
        str,
        choices=IMAGES,
    )
    frames: int = _setting("rates.frames", 60, "Maximum frames per second", int, minimum=1, maximum=120)
    curves: float = _setting(
        "rates.curves", 4.0, "Updates per second of a growing curve", float, minimum=0.1, maximum=30
    )
    devices: float = _setting(
        "rates.devices", 1.0, "Seconds between two samples of device metrics", float, minimum=0.2, maximum=60
    )
    notify_bell: bool = _setting("notify.bell", True, "Ring the bell when a run ends", bool)
    notify_desktop: bool = _setting("notify.desktop", True, "Show a desktop notification when a run ends", bool)
    notify_sequence: str = _setting(
        "notify.sequence",
        "auto",
        "Escape sequence of notifications; auto detects the terminal from the environment, seldom over SSH",
        str,
        choices=SEQUENCES,
    )
    title: bool = _setting("notify.title", True, "Show progress in the terminal's title", bool)
    queue_at_once: int | None = _setting(
        "queue.at_once",
        None,
        "Most runs that the queue trains at once; auto is one per accelerator, or one on the CPU",
        int,
        minimum=1,
        maximum=1000,
        optional=True,
    )
    runs_group: str = _setting("runs.group", "data", "Groups of the list of runs", str, choices=RUN_GROUPS)
    runs_columns: tuple[str, ...] = _setting(
        "runs.columns",
        (),
        "Columns of the list of runs; auto are those that fit",
        tuple,
        choices=RUN_COLUMNS,
        optional=True,
    )
    runs_folds: tuple[str, ...] = _setting(
        "runs.folds",
        (),
        "Groups of the list of runs that were folded or unfolded; auto folds searches and benches",
        tuple,
        optional=True,
    )
    plan: Mapping[str, Any] = field(default_factory=dict)
    """Defaults of plan fields."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Keys, separated by commas, by the id of their binding."""
    source: SettingSource = field(default=SettingSource(), compare=False)
    """The file they were read from."""

    @property
    def plan_defaults(self) -> PlanFields | None:
        """Initial values of the New run form, of fields without effect too; ``None`` for the defaults."""
        return valid_fields(self.plan) if self.plan else None

    def command(self, plan: Plan) -> str:
        """The shell command that trains a plan, independent of the defaults in these settings."""
        return plan.command(always=self.plan)


SETTINGS: Mapping[str, FieldSpec] = MappingProxyType(
    {item.metadata["name"]: item.metadata["spec"] for item in fields(Settings) if item.metadata}
)
"""The specification of every setting, except the tables ``plan`` and ``keys``, by its dotted name."""

ATTRIBUTES: Mapping[str, str] = MappingProxyType(
    {item.metadata["name"]: item.name for item in fields(Settings) if item.metadata}
)
"""The field of :class:`Settings` of each setting."""

_NESTED = ("rates", "notify", "queue", "runs")

_TABLES = ("plan", "keys", *_NESTED)


def load_settings() -> Settings:
    """Load the user settings, or the defaults if there is no file.

    Themes and key bindings are validated by :mod:`accel_tui.keymap`.

    Raises:
        SettingsError: The file cannot be read or has errors; it lists all of them.
    """
    settings, errors = read_settings(settings_path())
    if errors:
        raise SettingsError(errors)
    return settings


def read_settings(file: Path) -> tuple[Settings, list[str]]:
    """Read a settings file; return its valid settings and its errors."""
    source = SettingSource(file)
    try:
        text = read_source(file)
        values = parse_toml(text, 'theme = "nord"')
    except FileNotFoundError:
        if os.environ.get(SETTINGS_VARIABLE):
            return Settings(source=source), [f"{file}: no such file (set by {SETTINGS_VARIABLE})"]
        return Settings(source=source), []
    except OSError as error:
        return Settings(source=source), [f"{file}: cannot be read: {error.strerror}"]
    except SourceError as error:
        return Settings(source=source), [error.at(file)]
    source = SettingSource(file, toml_lines(text))
    errors: list[str] = []
    plan = _table(values, "plan", source, errors)
    keys = _keys(_table(values, "keys", source, errors), source, errors)
    plain = dict(_flat(values, source, errors))
    values_by_field: dict[str, Any] = {}
    for name, value in plain.items():
        try:
            values_by_field[ATTRIBUTES[name]] = validate(name, value)
        except PlanError as error:
            errors.append(source.at(name, str(error)))
    plan_values = dict(_plan(plan, source, errors))
    return Settings(**values_by_field, plan=plan_values, keys=keys, source=source), errors


def validate(name: str, value: Any) -> Any:
    """Validate the value of a setting and convert it to its type.

    Raises:
        PlanError: The value is not allowed.
    """
    spec = SETTINGS[name]
    if spec.type is not bool:
        return spec.check(name, value)
    if not isinstance(value, bool):
        raise PlanError(name, value, "must be true or false")
    return value


def _line(error: str) -> int:
    found = re.search(r":(\d+): ", error)
    return int(found[1]) if found else 0


def _table(values: dict[str, Any], name: str, source: SettingSource, errors: list[str]) -> dict[str, Any]:
    table = values.pop(name, {})
    if isinstance(table, dict):
        return table
    reason = f"must be a table: put its settings below a [{name}] header"
    errors.append(source.at(name, f"{name} = {show_value(table)}: {reason}"))
    return {}


def _flat(values: Mapping[str, Any], source: SettingSource, errors: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield the settings by their dotted names; add errors for unknown names."""
    for name, value in values.items():
        if name in _NESTED and isinstance(value, dict):
            for below, inner in value.items():
                if f"{name}.{below}" in SETTINGS:
                    yield f"{name}.{below}", inner
                else:
                    near = suggestion(below, _below(name))
                    errors.append(source.at(f"{name}.{below}", f"unknown setting {below!r} in [{name}]; {near}"))
        elif name in _NESTED:
            _table({name: value}, name, source, errors)
        elif name in SETTINGS:
            yield name, value
        elif table := next((table for table in ("plan", *_NESTED) if name in _below(table)), ""):
            errors.append(source.at(name, f"{name!r} belongs in the table [{table}]"))
        else:
            known = [*(name for name in SETTINGS if "." not in name), *_TABLES]
            errors.append(source.at(name, f"unknown setting {name!r}; {suggestion(name, known)}"))


def _below(table: str) -> tuple[str, ...]:
    if table == "plan":
        return tuple(PLAN_SPECS)
    return tuple(name.partition(".")[2] for name in SETTINGS if name.startswith(f"{table}."))


def _plan(values: Mapping[str, Any], source: SettingSource, errors: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield the valid plan fields; add errors for the others."""
    _, wrong = valid_part(values)
    # A field without effect is a default for the plans in which it has one.
    wrong = {name: error for name, error in wrong.items() if not isinstance(error, NoEffectError)}
    for name, error in wrong.items():
        if name in PLAN_SPECS:
            errors.append(source.at(f"plan.{name}", str(error)))
        else:
            near = suggestion(name.replace("-", "_"), PLAN_SPECS)
            errors.append(source.at(f"plan.{name}", f"{name!r} is not a plan field; {near}"))
    valid = valid_fields(values)
    for name in values:
        if name in PLAN_SPECS and name not in wrong:
            value = getattr(valid, name)
            yield name, list(value) if isinstance(value, tuple) else value


def _keys(values: Mapping[str, Any], source: SettingSource, errors: list[str], above: str = "") -> dict[str, str]:
    """Collect keys by binding id; ``run.pause = "x"`` and ``"run.pause" = "x"`` are equal."""
    keys: dict[str, str] = {}
    for name, value in values.items():
        whole = above + name
        if isinstance(value, dict):
            keys |= _keys(value, source, errors, f"{whole}.")
            continue
        listed = [value] if isinstance(value, str) else value
        if isinstance(listed, list) and listed and all(isinstance(key, str) and key.strip() for key in listed):
            keys[whole] = ",".join("comma" if key.strip() == "," else key.strip() for key in listed)
        else:
            allowed = 'must be a key, e.g. "ctrl+x", or a list of keys, e.g. ["x", "f5"]'
            errors.append(source.at(f"keys.{whole}", f"{whole} = {show_value(value)}: {allowed}"))
    return keys


def save_setting(file: Path, name: str, value: str | list[str]) -> None:
    """Save a setting; create the file if it does not exist.

    Args:
        file: The settings file.
        name: The setting; a dot is after the name of its table.
        value: A valid value.

    Raises:
        UsageError: The file has errors, is not a regular file, or cannot be written; it is not changed.
    """
    import tomlkit  # late, as reading the settings does not need it

    advice = f"add it yourself: {tomlkit.dumps(_nested(name, value)).strip()}"
    file = file.resolve()
    try:
        if file.exists() and (errors := read_settings(file)[1]):
            raise UsageError(f"{errors[0]}; {advice}")
        if file.exists() and not file.is_file():  # such as /dev/null, which a file must not replace
            raise UsageError(f"{file}: {name} cannot be saved, as this is not a regular file; {advice}")
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        expected = _with_value(tomllib.loads(text), name, value)
        changed = next((each for each in _edits(text, name, value) if _has_values(each, expected)), None)
        if changed is None:
            raise UsageError(f"{file}: {name} cannot be changed automatically here; {advice}")
        private_directory(file.parent)
        with replacing(file) as temporary:
            temporary.touch(file.stat().st_mode & 0o777 if file.exists() else 0o600)
            temporary.write_text(changed, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}; {advice}") from error


def _nested(name: str, value: object) -> dict[str, Any]:
    """A setting within its table."""
    table, _, last = name.rpartition(".")
    return {table: {last: value}} if table else {last: value}


def _with_value(values: dict[str, Any], name: str, value: object) -> dict[str, Any]:
    """All settings with one set."""
    added = _nested(name, value)
    return values | {key: values.get(key, {}) | each if isinstance(each, dict) else each for key, each in added.items()}


def _edits(text: str, name: str, value: str | list[str]) -> Iterator[str]:
    """The text with the name set: in place of its commented default, or else where tomlkit puts it."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    table, _, last = name.rpartition(".")
    values = tomllib.loads(text)
    if last not in (values.get(table, {}) if table else values):
        line = tomlkit.dumps({last: value}).strip()
        yield re.sub(rf"(?m)^#\s*{re.escape(last)}\s*=.*", lambda _: line, text, count=1)
    with suppress(TOMLKitError):
        document = tomlkit.parse(text)
        if table:
            document.setdefault(table, tomlkit.table())[last] = value
        else:
            document[name] = value
        yield document.as_string()


def _has_values(text: str, values: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == values
    except tomllib.TOMLDecodeError:
        return False
