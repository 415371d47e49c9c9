"""Working out each style once: widgets that look alike to the sheet share what it says of them.

Textual tries all rules on a widget whenever it gains or loses the focus or a class, and on each of its parts that has
a style of its own, be it ever painted or not. Most of the answer to a key went there, and of the time until a
screen was there. How Textual does it is private to it, as what ``painting`` and ``spots`` need is.
"""

# ruff: noqa: SLF001 (for that reason)

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from textual.css.model import RuleSet, Selector, SelectorType
from textual.css.styles import RenderStyles, RulesMap
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode

UNDERSTOOD = all(hasattr(Stylesheet, name) for name in ("replace_rules", "_process_component_classes")) and all(
    hasattr(DOMNode, name) for name in ("_get_component_classes", "_selector_names", "_PSEUDO_CLASSES")
)
"""Whether this version of Textual works out styles as it is known here."""

MOST = 5000
"""How many places are remembered: as many as some hundred kilobytes hold."""

_FLAGS = ("_has_hover_style", "_has_focus_within", "_has_order_style", "_has_odd_or_even")
"""What Textual notes at a node of rules that may come to mean it."""

_Kind = tuple[type[DOMNode], str | None, frozenset[str]]


class _States(NamedTuple):
    """The pseudo-classes that decide which rules mean a node."""

    own: frozenset[str]
    around: frozenset[str]


class Sheet(Stylesheet):
    """A sheet that remembers what it said of a node of such a kind, in such a state, at such a place."""

    def __init__(self, *, variables: dict[str, str] | None = None) -> None:
        super().__init__(variables=variables)
        self._known: list[RuleSet] = []
        self._named: frozenset[str] = frozenset()
        self._states: dict[_Kind, _States] = {}
        self._places: dict[Any, int] = {}
        self._looks: dict[int, tuple[RulesMap, tuple[bool, ...]]] = {}
        self._given: WeakKeyDictionary[DOMNode, tuple[RulesMap, int]] = WeakKeyDictionary()

    def apply(self, node: DOMNode, *, animate: bool = False, cache: dict[Any, Any] | None = None) -> None:
        """Give a node its styles.

        Args:
            node: The node.
            animate: Whether they may change little by little.
            cache: What is known of the nodes around it, when several are given theirs at a time.
        """
        if self.rules is not self._known or len(self._places) > MOST:
            self._forget()
        seen = {} if cache is None else cache
        place = self._place(node, *self._states_of(node), seen)
        if look := self._looks.get(place):
            rules, flags = look
            for name, flag in zip(_FLAGS, flags, strict=True):
                setattr(node, name, flag)
            if self._given.get(node) == (rules, node.styles.base._updates):
                node.notify_style_update()  # what is around it may look differently
            else:
                self.replace_rules(node, rules, animate=animate)
                self._given[node] = rules, node.styles.base._updates
            self._renew_parts(node, seen)
            return
        found: dict[Any, RulesMap] = {}  # nothing where rules look at the nodes beside this one, or in it
        super().apply(node, animate=animate, cache=found)
        for rules in found.values():
            self._looks[place] = rules, tuple(getattr(node, name) for name in _FLAGS)
            self._given[node] = rules, node.styles.base._updates

    def _process_component_classes(self, node: DOMNode) -> None:
        # Textual's own works out the styles of all parts at once.
        self._renew_parts(node, {})

    def _renew_parts(self, node: DOMNode, seen: dict[Any, Any]) -> None:
        parts = node._component_styles
        if not isinstance(parts, Parts):
            if node._get_component_classes():
                node._component_styles = Parts(self, node)
            return
        before = [styles._cache_key for styles in parts.values()]
        for styles in parts.values():
            if styles.base.node is not None:
                self.apply(styles.base.node, cache=seen)
        if before != [styles._cache_key for styles in parts.values()]:
            node.refresh()

    def _states_of(self, node: DOMNode) -> _States:
        kind = self._kind(node)
        if kind not in self._states:
            own: set[str] = set()
            around: set[str] = set()
            for name in self.rules_map.keys() & node._selector_names:
                for selectors in (selectors for rule in self.rules_map[name] for selectors in rule.selector_set):
                    of_node = _of_node(selectors.selectors)
                    for number, selector in enumerate(selectors.selectors):
                        (own if number >= of_node else around).update(selector.pseudo_classes)
            self._states[kind] = _States(frozenset(own), frozenset(around))
        return self._states[kind]

    def _place(self, node: DOMNode, own: frozenset[str], around: frozenset[str], seen: dict[Any, Any]) -> int:
        """A number for all that rules can tell of a node, and of what it is in."""
        place: int | None = seen.get((node, own, around))
        if place is None:
            above_it = self._place(node.parent, around, around, seen) if node.parent else 0
            checks: Mapping[str, Callable[[Any], bool]] = node._PSEUDO_CLASSES
            state = tuple(name in checks and checks[name](node) for name in own)
            place = self._places.setdefault((above_it, self._kind(node), own, state), len(self._places) + 1)
            seen[node, own, around] = place
        return place

    def _kind(self, node: DOMNode) -> _Kind:
        """All that rules can tell of a node whatever its state and its place are."""
        return type(node), node.id if node.id in self._named else None, self._named.intersection(node._classes)

    def _forget(self) -> None:
        """Forget what other rules said, and learn by what names these tell nodes apart."""
        self._known = self.rules
        self._named = frozenset(
            selector.name
            for rule in self.rules
            for selectors in rule.selector_set
            for selector in selectors.selectors
            if selector.type in (SelectorType.ID, SelectorType.CLASS)
        )
        self._states.clear()
        self._places.clear()
        self._looks.clear()
        self._given.clear()


class Parts(dict[str, RenderStyles]):
    """The styles of a node's parts, its "component classes", worked out when they are first asked for."""

    def __init__(self, sheet: Sheet, node: DOMNode) -> None:
        super().__init__()
        self._sheet = sheet
        self._node = node

    def __contains__(self, part: object) -> bool:
        return part in self._node._get_component_classes()

    def __missing__(self, part: str) -> RenderStyles:
        node = DOMNode(classes=part)
        node._attach(self._node)
        self._sheet.apply(node)
        self[part] = node.styles
        return node.styles


def _of_node(selectors: list[Selector]) -> int:
    """The first of the selectors at the end that mean the node itself; those before mean what it is in."""
    first = len(selectors) - 1
    while first and not selectors[first - 1].advance:
        first -= 1
    return first
