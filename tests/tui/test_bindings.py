"""Every key that is declared anywhere has an action that exists, and each letter one meaning.

``docs/keys.md`` has all keys. Where a change is meant, write it anew:

    ACCEL_TUI_SNAPSHOTS=write .venv/bin/pytest tests/tui/test_bindings.py
"""

import importlib
import os
import pkgutil
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest
from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import Screen

import accel_tui
from accel_tui.app import AccelApp
from accel_tui.keymap import MEANINGS


def declared() -> Iterator[tuple[type[DOMNode], Binding]]:
    """Each binding of each class of ours that declares some."""
    for module in pkgutil.walk_packages(accel_tui.__path__, "accel_tui."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    unseen: list[type[DOMNode]] = [DOMNode]
    while unseen:
        kind = unseen.pop()
        unseen += kind.__subclasses__()
        if kind.__module__.startswith("accel_tui."):
            for binding in kind.__dict__.get("BINDINGS", ()):
                assert isinstance(binding, Binding), (kind, binding)
                yield kind, binding


@pytest.mark.parametrize(("kind", "binding"), [pytest.param(*each, id=each[1].id) for each in declared()])
def test_every_binding_has_an_id_an_action_and_a_tooltip(kind: type[DOMNode], binding: Binding) -> None:
    place, _, action = binding.action.partition("(")[0].rpartition(".")
    owner = {"": kind, "app": AccelApp, "screen": Screen}[place]
    assert binding.id
    assert binding.tooltip
    assert hasattr(owner, f"action_{action}")


BINDINGS = [(kind, binding) for kind, binding in declared() if binding.id]

KEYS = Path(__file__).parents[2] / "docs" / "keys.md"

GENERATED = "<!-- The rest is written by tests/tui/test_bindings.py. -->\n"


def shown(binding: Binding) -> str:
    """The keys of a binding as help shows them."""
    return " ".join(f"`{AccelApp().get_key_display(each)}`" for each in Binding.make_bindings([binding]))


def is_meant(name: str, patterns: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns.split())


def test_every_letter_has_one_meaning() -> None:
    unknown = [
        f"{key} = {binding.id} ({binding.tooltip}): give it the key of its meaning in keymap.MEANINGS, or a row there"
        for _, binding in BINDINGS
        for key in binding.key.split(",")
        if key.isalpha()
        and len(key) == 1
        and not any(key == letter and is_meant(str(binding.id), ids) for letter, _, ids in MEANINGS)
    ]
    assert unknown == []
    assert max(Counter(letter for letter, _, _ in MEANINGS).values()) == 1
    for letter, meaning, patterns in MEANINGS:
        for pattern in patterns.split():
            assert any(
                fnmatch(str(binding.id), pattern) and letter in binding.key.split(",") for _, binding in BINDINGS
            ), f"no binding of {letter} ({meaning}) is {pattern}"


def written() -> str:
    """The generated part of the document: letters by their meaning, then the keys of each place."""
    lines = ["## Letters", "", "| Key | Meaning | Ids in the settings |", "|---|---|---|"]
    for letter, meaning, patterns in MEANINGS:
        ids = sorted({str(b.id) for _, b in BINDINGS if letter in b.key.split(",") and is_meant(str(b.id), patterns)})
        lines.append(f"| `{letter}` | {meaning} | {' '.join(f'`{each}`' for each in ids)} |")
    places: dict[str, dict[str, str]] = {}
    for kind, binding in BINDINGS:
        place = kind.BINDING_GROUP_TITLE or str(binding.id).partition(".")[0].capitalize()
        rows = places.setdefault(str(place), {})
        rows.setdefault(str(binding.id), f"| {shown(binding)} | {binding.tooltip} | `{binding.id}` |")
    for place, rows in sorted(places.items()):
        lines += [
            "",
            f"## {place}",
            "",
            "| Key | What it does | Id |",
            "|---|---|---|",
            *(rows[key] for key in sorted(rows)),
        ]
    return "\n".join(lines) + "\n"


def test_the_document_has_all_keys() -> None:
    words, _, rest = KEYS.read_text(encoding="utf-8").partition(GENERATED)
    if os.environ.get("ACCEL_TUI_SNAPSHOTS") == "write":
        KEYS.write_text(words + GENERATED + written(), encoding="utf-8")
        return
    assert rest == written()
