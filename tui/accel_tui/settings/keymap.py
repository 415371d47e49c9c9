"""What only the screens know of what settings may name: themes, and the ids of keys. Imports all of them when asked."""

import contextlib
import importlib
import pkgutil
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from textual.binding import Binding
from textual.keys import KEY_ALIASES, KEY_NAME_REPLACEMENTS, KEY_TO_UNICODE_NAME, Keys
from textual.screen import ModalScreen
from textual.theme import BUILTIN_THEMES

from accel_engine.registry import suggestion
from accel_tui import screens, widgets
from accel_tui.appearance.theme import THEMES
from accel_tui.settings.user_settings import Settings

AUTO = "auto"
"""The theme that is chosen by what the terminal can show."""

TOGETHER = (frozenset({"run", "charts", "log"}), frozenset({"plan", "picker"}))
"""Families of ids that are on one screen."""

_MODIFIERS = frozenset({"ctrl", "shift", "alt", "super", "hyper", "meta"})
_NAMES = frozenset(
    {key.value for key in Keys} | KEY_ALIASES.keys() | KEY_TO_UNICODE_NAME.keys() | set(KEY_NAME_REPLACEMENTS.values())
)


@dataclass(frozen=True, slots=True)
class KeyBinding:
    """What a key can do.

    Attributes:
        id: How it is named in settings.
        keys: The keys that do it, as Textual calls them.
        does: What it does, in a sentence.
        modal: Whether nothing else listens while it does.
    """

    id: str
    keys: tuple[str, ...]
    does: str
    modal: bool = False


def themes() -> tuple[str, ...]:
    """The names of all themes, ours first."""
    return (AUTO, *(theme.name for theme in THEMES), *BUILTIN_THEMES)


def theme_mistakes(settings: Settings) -> list[str]:
    """What is wrong with the theme that is set."""
    if settings.theme in themes():
        return []
    near = suggestion(settings.theme, themes())
    return [settings.source.at("theme", f"there is no theme {settings.theme!r}; {near}")]


def keys() -> dict[str, KeyBinding]:
    """All that keys do, by id."""
    found: dict[str, KeyBinding] = {}
    for kind in _owners():
        for binding in kind.__dict__.get("BINDINGS", ()):
            if isinstance(binding, Binding) and binding.id:
                pressed = tuple(_normal(key) for key in binding.key.split(","))
                does = binding.tooltip or binding.description or binding.action
                found[binding.id] = KeyBinding(binding.id, pressed, does, issubclass(kind, ModalScreen))
    return dict(sorted(found.items()))


def key_mistakes(settings: Settings) -> list[str]:
    """What is wrong with the keys that are set: unknown ids, keys that no terminal sends, two uses of a key."""
    if not settings.keys:
        return []
    known, at = keys(), settings.source.at
    mistakes = [
        at(f"keys.{name}", f"there is no key {name!r}; {suggestion(name, known)}")
        for name in settings.keys
        if name not in known
    ]
    mistakes += [
        at(f"keys.{name}", f"{name} = {pressed!r}: no keyboard has {key!r}; as in x, ctrl+x, f5, space, pagedown, ?")
        for name, pressed in settings.keys.items()
        for key in pressed.split(",")
        if not _is_key(key)
    ]
    return mistakes + [at(f"keys.{name}", words) for name, words in _clashes(settings.keys, known)]


def _clashes(chosen: Mapping[str, str], known: Mapping[str, KeyBinding]) -> Iterator[tuple[str, str]]:
    pressed = {name: _chosen(chosen[name]) if name in chosen else key.keys for name, key in known.items()}
    for one, other in combinations(known.values(), 2):
        shared = set(pressed[one.id]) & set(pressed[other.id])
        if not shared or not {one.id, other.id} & chosen.keys() or not _meet(one, other):
            continue
        if set(one.keys) & set(other.keys):
            continue  # they take turns
        mine, its = (one, other) if one.id in chosen else (other, one)
        yield (
            mine.id,
            f"{mine.id} = {chosen[mine.id]!r}: {min(shared)} is already {its.id} ({its.does}); "
            f"choose another key, or give {its.id} another below [keys]",
        )


def _meet(one: KeyBinding, other: KeyBinding) -> bool:
    """Whether both can be meant by one press of a key."""
    families = {one.id.partition(".")[0], other.id.partition(".")[0]}
    if len(families) == 1 or any(families <= together for together in TOGETHER):
        return True
    return "app" in families and not (one.modal or other.modal)


def _owners() -> Iterator[type]:
    from accel_tui.app import AccelApp  # which loads this module for the settings that it was given

    yield AccelApp
    for package in (screens, widgets):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, type) and value.__module__ == module.name:
                    yield value


def _chosen(keys: str) -> tuple[str, ...]:
    return tuple(_normal(key) for key in keys.split(","))


def _normal(key: str) -> str:
    """A key as Textual calls it: ``question_mark`` for ``?``."""
    key = key.strip()
    if len(key) != 1 or key.isalnum():
        return key
    name = unicodedata.name(key, key).lower().replace(" ", "_").replace("-", "_")
    return KEY_NAME_REPLACEMENTS.get(name, name)


def _is_key(key: str) -> bool:
    *modifiers, last = _normal(key).split("+")
    if not _MODIFIERS.issuperset(modifiers):
        return False
    if len(last) == 1 or last in _NAMES:
        return True
    with contextlib.suppress(KeyError):
        return bool(unicodedata.lookup(last.replace("_", " ")))
    return False
