"""Every key that is declared anywhere has an action that exists."""

import importlib
import pkgutil
from collections.abc import Iterator

import pytest
from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import Screen

import accel_tui
from accel_tui.app import AccelApp


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
