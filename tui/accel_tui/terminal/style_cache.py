"""Working out each style once: widgets that look alike to the sheet share what it says of them.

Textual tries all rules on a widget whenever it gains or loses the focus or a class, and on each of its parts that has
a style of its own, be it ever painted or not. Most of the answer to a key went there, and of the time until a
screen was there. How Textual does it is private to it, as what ``painting`` and ``spots`` need is.
"""

# ruff: noqa: SLF001 (for that reason)

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import getfile
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from textual.css.model import RuleSet, Selector, SelectorType
from textual.css.styles import RenderStyles, RulesMap
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.widget import Widget

UNDERSTOOD = all(
    hasattr(kind, name)
    for kind, names in {
        Stylesheet: ("replace_rules", "_parse_rules", "_process_component_classes"),
        DOMNode: ("_css_bases", "_css_type_name", "_get_component_classes", "_selector_names", "_PSEUDO_CLASSES"),
    }.items()
    for name in names
)
"""Whether this version of Textual works out styles as it is known here."""

MOST = 5000
"""How many places are remembered: as many as some hundred kilobytes hold."""

_MOST_SOURCES = 500
"""How many pieces of CSS are kept parsed; Textual's 64 are fewer than there are."""

_MOST_THEMES = 4
"""Of how many themes what was parsed is kept."""

_SIGNS = {SelectorType.TYPE: "", SelectorType.CLASS: ".", SelectorType.ID: "#"}

_FLAGS = ("_has_hover_style", "_has_focus_within", "_has_order_style", "_has_odd_or_even")
"""What Textual notes at a node of rules that may come to mean it."""


class _Sight(NamedTuple):
    """What rules look at in a node to tell whether they mean it, or what is in it.

    Attributes:
        names: Types, ``.classes`` and ``#ids``.
        states: Pseudo-classes.
    """

    names: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()

    def of(self, selectors: Sequence[Selector]) -> "_Sight":
        """This, and what these selectors look at."""
        names = (_SIGNS[selector.type] + selector.name for selector in selectors if selector.type in _SIGNS)
        return _Sight(self.names.union(names), self.states.union(*(selector.pseudo_classes for selector in selectors)))


class StyleCache(Stylesheet):
    """A sheet that remembers what it said of a node of such a kind, in such a state, at such a place."""

    def __init__(self, *, variables: dict[str, str] | None = None) -> None:
        super().__init__(variables=variables)
        self._parse_cache.grow(_MOST_SOURCES)
        self._parsed: dict[frozenset[tuple[str, str]], Any] = {}  # by the variables of each theme
        self._known: list[RuleSet] = []
        self._sights: dict[frozenset[str], tuple[_Sight, _Sight]] = {}
        self._places: dict[Any, int] = {}
        self._looks: dict[int, tuple[RulesMap, tuple[bool, ...]]] = {}
        self._given: WeakKeyDictionary[DOMNode, tuple[RulesMap, int]] = WeakKeyDictionary()

    def set_variables(self, variables: dict[str, str]) -> None:
        """Take the variables of another theme; what was parsed with those of a few themes is kept."""
        self._parsed[frozenset(self._variables.items())] = self._parse_cache
        while len(self._parsed) > _MOST_THEMES:
            del self._parsed[next(iter(self._parsed))]
        self._parse_cache = type(self._parse_cache)(_MOST_SOURCES)  # which Textual empties
        super().set_variables(variables)
        self._parse_cache = self._parsed.pop(frozenset(variables.items()), self._parse_cache)

    def reparse(self) -> None:
        """Apply other variables; Textual's own keeps nothing of what it parses."""
        self.parse()

    def know(self, ahead: Stylesheet) -> None:
        """Keep what was parsed ahead with the variables of another theme; from any thread."""
        self._parsed[frozenset(ahead._variables.items())] = ahead._parse_cache

    def parse_ahead(self, files: Sequence[Path], variables: dict[str, str] | None = None) -> Stylesheet:
        """Parse files, and the rules of all kinds of widgets that are imported; from any thread.

        Args:
            files: For :meth:`take`.
            variables: Those of another theme, for :meth:`know`.
        """
        ahead = Stylesheet(variables=self._variables if variables is None else variables)
        ahead._parse_cache.grow(_MOST_SOURCES)
        ahead.read_all(files)
        for kind in _kinds(Widget) if UNDERSTOOD else ():
            for place, base in enumerate(kind._css_bases(kind)):
                if rules := base.__dict__.get("DEFAULT_CSS"):
                    scope = base._css_type_name if base.__dict__.get("SCOPED_CSS", True) else ""
                    ahead.add_source(rules, (getfile(base), f"{base.__name__}.DEFAULT_CSS"), True, -place, scope)
        ahead.parse()
        for where, here in dict(self.source).items():  # perhaps of another rank than where more of it is known
            ahead._parse_rules(here.content, where, here.is_defaults, here.tie_breaker, here.scope)
        return ahead

    def take(self, ahead: Stylesheet) -> None:
        """Have rules that were parsed ahead. Those that come with their widgets make the sheet forget what it said."""
        if ahead._variables == self._variables:  # the theme may be another by now
            for text in ahead._parse_cache.keys():  # noqa: SIM118 (it is no mapping)
                self._parse_cache[text] = ahead._parse_cache[text]
        self.source |= {where: rules for where, rules in ahead.source.items() if where not in self.source}  # later wins
        self.parse()

    def apply(self, node: DOMNode, *, animate: bool = False, cache: dict[Any, Any] | None = None) -> None:
        """Give a node its styles.

        Args:
            node: The node.
            animate: Whether they may change little by little.
            cache: What is known of the nodes around it, when several are given theirs at a time.
        """
        if not UNDERSTOOD:
            super().apply(node, animate=animate, cache=cache)
            return
        if self.rules is not self._known or len(self._places) > MOST:
            self._forget()
        seen = {} if cache is None else cache
        place = self._place(node, *self._sights_of(node), seen)
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

    def _sights_of(self, node: DOMNode) -> tuple[_Sight, _Sight]:
        """What rules look at that may mean a node: in the node itself, and in those that it is in."""
        names = frozenset(self.rules_map.keys() & node._selector_names)
        if names not in self._sights:
            own, around = _Sight(names), _Sight()
            for rule in {rule for name in names for rule in self.rules_map[name]}:
                for selectors in (one.selectors for one in rule.selector_set):
                    first = _first_of_node(selectors)
                    own, around = own.of(selectors[first:]), around.of(selectors[:first])
            self._sights[names] = own, around
        return self._sights[names]

    def _place(self, node: DOMNode, own: _Sight, around: _Sight, seen: dict[Any, Any]) -> int:
        """A number for all that rules can tell of a node, and of what it is in."""
        place: int | None = seen.get((node, own, around))
        if place is None:
            above = self._place(node.parent, around, around, seen) if node.parent else 0
            checks: Mapping[str, Callable[[Any], bool]] = node._PSEUDO_CLASSES
            states = frozenset(name for name in own.states if name in checks and checks[name](node))
            told = above, own.names.intersection(node._selector_names), states, own
            place = seen[node, own, around] = self._places.setdefault(told, len(self._places) + 1)
        return place

    def _forget(self) -> None:
        """Forget what other rules said."""
        self._known = self.rules
        for memory in (self._sights, self._places, self._looks, self._given):
            memory.clear()


class Parts(dict[str, RenderStyles]):
    """The styles of a node's parts, its "component classes", worked out when they are first asked for."""

    def __init__(self, sheet: StyleCache, node: DOMNode) -> None:
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


def _kinds(kind: type[Widget]) -> Iterator[type[Widget]]:
    """A kind of widget and all that there are of it."""
    yield kind
    for special in kind.__subclasses__():
        yield from _kinds(special)


def _first_of_node(selectors: Sequence[Selector]) -> int:
    """The first of the selectors at the end that mean the node itself; those before mean what it is in."""
    first = len(selectors) - 1
    while first and not selectors[first - 1].advance:
        first -= 1
    return first
