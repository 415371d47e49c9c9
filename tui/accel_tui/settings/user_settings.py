"""What a user has settled for good: a TOML file of defaults, theme, keys, rates and notifications."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from accel_engine.errors import PlanError, UsageError
from accel_engine.field_spec import FieldSpec
from accel_engine.plan import SPECS as PLAN_SPECS
from accel_engine.plan import Plan
from accel_engine.registry import suggestion
from accel_tui.settings.paths import SETTINGS as SETTINGS_VARIABLE
from accel_tui.settings.paths import settings_path

COLOURS = ("auto", "none", "16", "256", "all")
"""How many colours a terminal may be taken to show."""

GLYPHS = ("auto", "unicode", "ascii")
"""The characters that pictures are made of."""

SEQUENCES = ("auto", "osc9", "osc777")
"""The ways to ask a terminal to notify its user."""

_HEADER = re.compile(r"\s*\[\[?\s*(?P<name>[^]]+?)\s*\]")
_KEY = re.compile(r"\s*(?P<name>(?:\"[^\"]*\"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:\"[^\"]*\"|'[^']*'|[\w-]+))*)\s*=")
_PART = re.compile(r"\"([^\"]*)\"|'([^']*)'|([\w-]+)")
_MEANT = {
    "Invalid value": 'text stands in quotes, as in theme = "nord", and what is true or false does not',
    "Illegal character '\\n'": "a quote is not closed",
    "Cannot overwrite": "the name is set before",
    "Cannot declare": "the table is there already, and all its names belong below one such line",
}
"""What is most often wrong where the reader of TOML says these words."""

_AT = re.compile(r" \(at line (\d+), column \d+\)$")


@dataclass(frozen=True, slots=True)
class SettingSource:
    """Where settings were read.

    Attributes:
        path: The file.
        lines: The line of each name that is set in it, counted from 1; names are dotted, as in ``rates.frames``.
    """

    path: Path | None = None
    lines: Mapping[str, int] = field(default_factory=dict)

    def line(self, name: str) -> int | None:
        """The line of a setting, or of the table that it is in, where that is known."""
        while name and name not in self.lines:
            name = name.rpartition(".")[0]
        return self.lines.get(name)

    def at(self, name: str, words: str) -> str:
        """Say what is wrong with a setting, and where."""
        line = self.line(name)
        return f"{self.path}:{line}: {words}" if line else f"{self.path}: {words}"


class SettingsError(UsageError):
    """A settings file that is wrong.

    Attributes:
        mistakes: What is wrong, each with its place.
    """

    def __init__(self, mistakes: Sequence[str]) -> None:
        self.mistakes = tuple(sorted(mistakes, key=_line))
        super().__init__("\n".join(["the settings are wrong", *self.mistakes]))


def _setting(name: str, default: Any, doc: str, kind: type, **spec: Any) -> Any:
    return field(default=default, metadata={"name": name, "spec": FieldSpec(doc, kind, **spec)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is settled; the fields' documentation is in :data:`SETTINGS`.

    Attributes:
        plan: Values of the plan's fields that stand in place of the program's own.
        keys: Keys, separated by commas, by the id of what they do.
        source: Where this was read.
    """

    theme: str = _setting("theme", "auto", "Theme; auto is accel-dark, or accel-ansi where there are 16 colours", str)
    colours: str = _setting(
        "colours",
        "auto",
        "Colours of the terminal; auto is what NO_COLOR, COLORTERM and TERM say",
        str,
        choices=COLOURS,
    )
    glyphs: str = _setting(
        "glyphs",
        "auto",
        "Characters of curves and frames; auto is unicode where the locale has it",
        str,
        choices=GLYPHS,
    )
    frames: int = _setting("rates.frames", 60, "Pictures a second at most", int, minimum=1, maximum=120)
    curves: float = _setting(
        "rates.curves", 4.0, "Times a second that a growing curve is drawn", float, minimum=0.1, maximum=30
    )
    devices: float = _setting(
        "rates.devices", 1.0, "Seconds between two readings of the devices", float, minimum=0.2, maximum=60
    )
    notify_bell: bool = _setting("notify.bell", True, "Ring the bell when a run ends", bool)
    notify_desktop: bool = _setting("notify.desktop", True, "Ask the terminal to notify you when a run ends", bool)
    notify_sequence: str = _setting(
        "notify.sequence",
        "auto",
        "How that is asked; auto is what the environment says that the terminal takes, which ssh seldom passes on",
        str,
        choices=SEQUENCES,
    )
    title: bool = _setting("notify.title", True, "Show progress in the terminal's title", bool)
    plan: Mapping[str, Any] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    source: SettingSource = field(default=SettingSource(), compare=False)

    def command(self, plan: Plan) -> str:
        """The shell command that trains a plan, whatever these settings say of its fields."""
        return plan.command(always=self.plan)


SETTINGS: Mapping[str, FieldSpec] = MappingProxyType(
    {item.metadata["name"]: item.metadata["spec"] for item in fields(Settings) if item.metadata}
)
"""The meaning of every setting but those of the tables ``plan`` and ``keys``, by its dotted name."""

ATTRIBUTES: Mapping[str, str] = MappingProxyType(
    {item.metadata["name"]: item.name for item in fields(Settings) if item.metadata}
)
"""The field of :class:`Settings` that has each of them."""

_TABLES = ("plan", "keys", "rates", "notify")


def load() -> Settings:
    """Read the user's settings; the program's own where there is no file.

    The names of themes and of keys are not looked up: only :mod:`accel_tui.settings.keymap` knows all of them.

    Raises:
        SettingsError: The file cannot be read, or something in it is wrong; all of it is told.
    """
    settings, mistakes = read(settings_path())
    if mistakes:
        raise SettingsError(mistakes)
    return settings


def read(file: Path) -> tuple[Settings, list[str]]:
    """Read a settings file: what is right in it, and what is wrong."""
    source = SettingSource(file)
    try:
        text = file.read_text(encoding="utf-8")
        values = tomllib.loads(text)
    except FileNotFoundError:
        if os.environ.get(SETTINGS_VARIABLE):
            return Settings(source=source), [f"{file}: there is no such file, although {SETTINGS_VARIABLE} names it"]
        return Settings(source=source), []
    except OSError as error:
        return Settings(source=source), [f"{file}: cannot be read: {error.strerror}"]
    except UnicodeDecodeError as error:
        return Settings(source=source), [f"{file}: is not UTF-8: {error.reason} at byte {error.start}"]
    except tomllib.TOMLDecodeError as error:
        at = _AT.search(str(error))
        line = f":{at[1]}" if at else ""
        words = _AT.sub("", str(error))
        meant = next((f"; {meant}" for said, meant in _MEANT.items() if words.startswith(said)), "")
        return Settings(source=source), [f"{file}{line}: is not TOML: {words}{meant}"]
    source = SettingSource(file, lines_of(text))
    mistakes: list[str] = []
    plan = _table(values, "plan", source, mistakes)
    keys = _keys(_table(values, "keys", source, mistakes), source, mistakes)
    plain = dict(_flat(values, source, mistakes))
    taken: dict[str, Any] = {}
    for name, value in plain.items():
        try:
            taken[ATTRIBUTES[name]] = check(name, value)
        except PlanError as error:
            mistakes.append(source.at(name, str(error)))
    right = dict(_plan(plan, source, mistakes))
    return Settings(**taken, plan=right, keys=keys, source=source), mistakes


def check(name: str, value: Any) -> Any:
    """Return a setting's value in its exact type.

    Raises:
        PlanError: It may not have this value.
    """
    spec = SETTINGS[name]
    if spec.type is not bool:
        return spec.check(name, value)
    if not isinstance(value, bool):
        raise PlanError(name, value, "must be true or false")
    return value


def lines_of(text: str) -> dict[str, int]:
    """Find the line, counted from 1, that each name of a TOML file is first set in."""
    lines: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = _dotted(header["name"])
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            name = _dotted(key["name"])
            lines.setdefault(f"{table}.{name}" if table else name, number)
    return lines


def _dotted(name: str) -> str:
    return ".".join("".join(part.groups("")) for part in _PART.finditer(name))


def _line(mistake: str) -> int:
    found = re.search(r":(\d+): ", mistake)
    return int(found[1]) if found else 0


def _table(values: dict[str, Any], name: str, source: SettingSource, mistakes: list[str]) -> dict[str, Any]:
    table = values.pop(name, {})
    if isinstance(table, dict):
        return table
    mistakes.append(source.at(name, f"{name} = {table!r}: must be a table: put its names below a line [{name}]"))
    return {}


def _flat(values: Mapping[str, Any], source: SettingSource, mistakes: list[str]) -> Iterator[tuple[str, Any]]:
    """The settings by their dotted names; what is none is told."""
    for name, value in values.items():
        if name in ("rates", "notify") and isinstance(value, dict):
            for below, inner in value.items():
                if f"{name}.{below}" in SETTINGS:
                    yield f"{name}.{below}", inner
                else:
                    near = suggestion(below, _below(name))
                    mistakes.append(source.at(f"{name}.{below}", f"[{name}] has no {below!r}; {near}"))
        elif name in ("rates", "notify"):
            _table({name: value}, name, source, mistakes)
        elif name in SETTINGS:
            yield name, value
        elif home := next((table for table in ("plan", "rates", "notify") if name in _below(table)), ""):
            mistakes.append(source.at(name, f"{name!r} belongs below a line [{home}]"))
        else:
            known = [*(name for name in SETTINGS if "." not in name), *_TABLES]
            mistakes.append(source.at(name, f"there is no setting {name!r}; {suggestion(name, known)}"))


def _below(table: str) -> tuple[str, ...]:
    if table == "plan":
        return tuple(PLAN_SPECS)
    return tuple(name.partition(".")[2] for name in SETTINGS if name.startswith(f"{table}."))


def _plan(values: Mapping[str, Any], source: SettingSource, mistakes: list[str]) -> Iterator[tuple[str, Any]]:
    """The plan's fields that are right by themselves."""
    for name, value in values.items():
        if name not in PLAN_SPECS:
            near = suggestion(name.replace("-", "_"), PLAN_SPECS)
            mistakes.append(source.at(f"plan.{name}", f"{name!r} is not a field of a plan; {near}"))
            continue
        try:
            yield name, Plan.from_mapping({name: value}).to_mapping()[name]
        except UsageError as error:
            mistakes.append(source.at(f"plan.{name}", str(error)))


def _keys(values: Mapping[str, Any], source: SettingSource, mistakes: list[str], above: str = "") -> dict[str, str]:
    """Keys by id; ``run.pause = "x"`` and ``"run.pause" = "x"`` are the same."""
    keys: dict[str, str] = {}
    for name, value in values.items():
        whole = above + name
        if isinstance(value, dict):
            keys |= _keys(value, source, mistakes, f"{whole}.")
            continue
        listed = [value] if isinstance(value, str) else value
        if isinstance(listed, list) and listed and all(isinstance(key, str) and key.strip() for key in listed):
            keys[whole] = ",".join("comma" if key.strip() == "," else key.strip() for key in listed)
        else:
            words = 'must be a key, as in "ctrl+x", or several, as in ["x", "f5"]'
            mistakes.append(source.at(f"keys.{whole}", f"{whole} = {value!r}: {words}"))
    return keys
