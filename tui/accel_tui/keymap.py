"""The meaning of keys on all screens, and checks of the theme and the keys in the settings."""

import contextlib
import importlib
import pkgutil
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import combinations
from types import ModuleType

from textual.binding import Binding
from textual.keys import KEY_ALIASES, KEY_NAME_REPLACEMENTS, KEY_TO_UNICODE_NAME, Keys
from textual.screen import ModalScreen
from textual.theme import BUILTIN_THEMES

from accel_engine.errors import show_value
from accel_engine.text import suggestion
from accel_tui.appearance.theme import THEMES
from accel_tui.settings.user_settings import Settings

AUTO = "auto"
"""Selects a theme by the colours of the terminal."""

SHARED_SCREENS = (
    frozenset({"run", "charts", "log", "table", "list"}),
    frozenset({"new-run", "picker", "field", "finder", "data", "preview", "list"}),
    frozenset({"search", "searches", "table", "list"}),
    *(
        frozenset({each, "table", "list"})
        for each in ("runs", "queue", "hosts", "deployments", "diagnostics", "gallery", "compare", "logged")
    ),
    *(
        frozenset({"job", each, "table", "list"})
        for each in ("predict", "race", "evaluate", "find", "profile", "export", "deploy")
    ),
    *(frozenset({family, "list"}) for family in ("advice", "lines")),
)
"""First parts of the ids of bindings that are active on the same screen, besides ``screen``, which is on each."""

MEANINGS: tuple[tuple[str, str, str], ...] = (
    (
        "a",
        "add: charts to the view, columns to the list, the run to the queue, a cure to the plan, a host",
        "charts.select runs.columns select-charts.done *.queue *.apply hosts.add",
    ),
    ("A", "advice", "*.advice advice.back"),
    ("b", "measure speed: bench a model, race a plan", "*.bench new-run.race"),
    ("B", "take the best: plan, threshold", "search.take-best scores.best"),
    ("c", "compare", "*.compare"),
    ("C", "checkpoint", "run.checkpoint"),
    ("d", "detach", "run.detach"),
    ("D", "deploy; what is deployed", "*.deploy deploy.deployments"),
    (
        "e",
        "edit: notes and tags, options, the learning rate, numbers",
        "*.edit *.options *.learning-rate *.trials *.limit",
    ),
    ("E", "export", "*.export"),
    ("f", "full screen", "*.full-screen"),
    ("F", "find by measuring: rate, batch size, operations", "new-run.measure run.find-rate advice.profile"),
    ("g", "groups of runs", "runs.group"),
    ("G", "all groups: fold, unfold", "runs.fold-all"),
    ("h", "hold in the queue, or release", "queue.hold"),
    ("H", "report as HTML", "*.report"),
    ("i", "information: details", "run.details"),
    ("I", "information on all machines: hosts", "app.hosts hosts.back"),
    ("j", "down in lists and texts", "list.down"),
    ("J", "move down in the queue", "queue.move-down"),
    ("k", "up in lists and texts", "list.up"),
    ("K", "move up in the queue", "queue.move-up"),
    ("l", "log", "run.log"),
    ("L", "level of the log", "log.level"),
    ("m", "smooth curves", "charts.smooth"),
    ("M", "masks over images", "gallery.blend"),
    ("n", "new run from this one: its plan into the form", "*.duplicate search.take advice.new-run"),
    ("N", "new run: the form as it was left", "app.new-run"),
    ("o", "outliers", "charts.clip"),
    ("O", "output of the model", "diagnostics.output"),
    ("p", "pause, resume", "run.pause"),
    ("P", "predict", "*.predict"),
    ("q", "quit; in help and in lists of choices, close", "*.quit help.close select-charts.done"),
    ("Q", "queue", "app.queue queue.back"),
    ("r", "runs", "app.runs"),
    ("R", "train further: continue, more epochs", "*.continue search.prolong search.resume"),
    ("s", "start, or stop what is running", "new-run.start job.start run.stop search.stop deployments.stop"),
    ("S", "searches; on New run, search", "app.searches new-run.search search.list"),
    ("t", "theme: light or dark", "app.theme"),
    ("T", "try a cure", "advice.try"),
    ("u", "undo: a cure, the new version of a deployment", "advice.undo deployments.undo"),
    ("U", "update: another model takes over a deployment", "deployments.update"),
    ("v", "values at a cursor", "charts.cursor"),
    ("V", "evaluate, validate, check a host", "*.evaluate diagnostics.validate hosts.check"),
    ("w", "diagnostics", "*.diagnostics diagnostics.back"),
    ("W", "write to a file: predictions, charts", "predict.save charts.save app.save-charts"),
    ("x", "x axis", "charts.x"),
    ("X", "stop all of a search", "search.stop-all"),
    ("y", "y axis", "charts.log"),
    ("Y", "copy a command", "*.copy"),
    ("z", "random samples", "gallery.random"),
)
"""What each letter means on all screens: the letter, its meaning, and patterns of the ids that have it."""

PURPOSES: tuple[tuple[str, str], ...] = (
    (
        "Train",
        "*.start *.pause *.stop *.stop-all *.prune *.prolong *.resume *.learning-rate *.find-rate *.checkpoint"
        " *.continue *.trials new-run.queue new-run.search new-run.race new-run.measure job.* advice.try advice.apply"
        " advice.undo",
    ),
    (
        "Use the model",
        "*.predict *.evaluate *.export *.bench *.deploy *.update *.compare *.duplicate search.take search.take-best",
    ),
    ("Look closer", "*.diagnostics *.advice *.profile *.report run.log run.search run.details *.validate *.chart"),
    (
        "Go",
        "app.new-run app.runs app.queue app.hosts app.searches *.deployments screen.back *.back *.quit run.detach"
        " *.list",
    ),
    ("Always", "app.*"),
)
"""What keys are for, in the order of help, with patterns of their ids; others stand under the name of their place."""


def purpose_of(name: str, otherwise: str) -> str:
    """The purpose of a key.

    Args:
        name: Its id.
        otherwise: The name of its place.
    """
    found = (purpose for purpose, patterns in PURPOSES if any(fnmatch(name, each) for each in patterns.split()))
    return next(found, otherwise)


_MODIFIERS = frozenset({"ctrl", "shift", "alt", "super", "hyper", "meta"})
_NAMES = frozenset(
    {key.value for key in Keys} | KEY_ALIASES.keys() | KEY_TO_UNICODE_NAME.keys() | set(KEY_NAME_REPLACEMENTS.values())
)


@dataclass(frozen=True, slots=True)
class KeyBinding:
    """A key binding."""

    id: str
    """Its name in settings."""
    keys: tuple[str, ...]
    """Its keys, by their Textual names."""
    description: str
    """What it does; its tooltip, its label or the name of its action."""
    modal: bool = False
    """Whether it belongs to a modal screen, which disables other bindings."""
    priority: bool = False
    """Whether it comes before all others, on modal screens too."""


def themes() -> tuple[str, ...]:
    """The names of all themes: ``auto``, accel-tui's and Textual's."""
    return (AUTO, *(theme.name for theme in THEMES), *BUILTIN_THEMES)


def theme_errors(settings: Settings) -> list[str]:
    """Return the errors in the theme setting."""
    if settings.theme in themes():
        return []
    near = suggestion(settings.theme, themes())
    return [settings.source.at("theme", f"unknown theme {show_value(settings.theme)}; {near}")]


def keys(owners: Iterable[type]) -> dict[str, KeyBinding]:
    """The key bindings of some classes, by id."""
    found: dict[str, KeyBinding] = {}
    for owner in owners:
        for binding in owner.__dict__.get("BINDINGS", ()):
            if isinstance(binding, Binding) and binding.id:
                pressed = _split(binding.key)
                description = binding.tooltip or binding.description or binding.action
                # Of bindings that share an id, the first describes it.
                modal = issubclass(owner, ModalScreen)
                found.setdefault(binding.id, KeyBinding(binding.id, pressed, description, modal, binding.priority))
    return dict(sorted(found.items()))


def classes_in(package: ModuleType) -> Iterator[type]:
    """The classes of a package's modules, all of which this imports."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and value.__module__ == module.name:
                yield value


def key_errors(settings: Settings, known: Mapping[str, KeyBinding]) -> list[str]:
    """Return the errors in the key settings: unknown ids, unknown keys, conflicting bindings."""
    at = settings.source.at
    errors = [
        at(f"keys.{name}", f"unknown key binding {name!r}; {suggestion(name, known)}")
        for name in settings.keys
        if name not in known
    ]
    errors += [
        at(
            f"keys.{name}",
            f"{name} = {show_value(pressed)}: unknown key {show_value(key)}; "
            "use e.g. x, ctrl+x, f5, space, pagedown, ?",
        )
        for name, pressed in settings.keys.items()
        for key in pressed.split(",")
        if not _is_key(key)
    ]
    return errors + [at(f"keys.{name}", text) for name, text in _conflicts(settings.keys, known)]


def _conflicts(chosen: Mapping[str, str], known: Mapping[str, KeyBinding]) -> Iterator[tuple[str, str]]:
    pressed = {name: _split(chosen[name]) if name in chosen else key.keys for name, key in known.items()}
    for first, second in combinations(known.values(), 2):
        shared = set(pressed[first.id]) & set(pressed[second.id])
        if not shared or not {first.id, second.id} & chosen.keys() or not _can_conflict(first, second):
            continue
        if set(first.keys) & set(second.keys):
            continue  # they share a key by default and are never active together
        changed, existing = (first, second) if first.id in chosen else (second, first)
        yield (
            changed.id,
            f"{changed.id} = {show_value(chosen[changed.id])}: {min(shared)} is already bound to {existing.id} "
            f"({existing.description}); use another key, or set another key for {existing.id} in [keys]",
        )


def _can_conflict(first: KeyBinding, second: KeyBinding) -> bool:
    """Whether two bindings can be active at the same time."""
    families = {first.id.partition(".")[0], second.id.partition(".")[0]}
    if "screen" in families and not (first.modal or second.modal):
        return True
    if len(families) == 1 or any(families <= together for together in SHARED_SCREENS):
        return True
    return "app" in families and (first.priority or second.priority or not (first.modal or second.modal))


def _split(keys: str) -> tuple[str, ...]:
    return tuple(_textual_name(key) for key in keys.split(","))


def _textual_name(key: str) -> str:
    """The Textual name of a key: ``question_mark`` for ``?``."""
    key = key.strip()
    if len(key) != 1 or key.isalnum():
        return key
    name = unicodedata.name(key, key).lower().replace(" ", "_").replace("-", "_")
    return KEY_NAME_REPLACEMENTS.get(name, name)


def _is_key(key: str) -> bool:
    *modifiers, last = _textual_name(key).split("+")
    if not _MODIFIERS.issuperset(modifiers):
        return False
    if len(last) == 1 or last in _NAMES:
        return True
    with contextlib.suppress(KeyError):
        return bool(unicodedata.lookup(last.replace("_", " ")))
    return False
