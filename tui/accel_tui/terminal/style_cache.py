"""Caches styles: nodes that no CSS rule can tell apart share their styles.

Textual matches all rules whenever a widget's focus or classes change, also for each component class, painted or not;
this took most of the response time to a key press. This overrides private methods of Textual's stylesheet.
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

TEXTUAL_SUPPORTED = all(
    hasattr(kind, name)
    for kind, names in {
        Stylesheet: ("replace_rules", "_parse_rules", "_process_component_classes"),
        DOMNode: ("_css_bases", "_css_type_name", "_get_component_classes", "_selector_names", "_PSEUDO_CLASSES"),
    }.items()
    for name in names
)
"""Whether this version of Textual has the private attributes that are used here."""

MAX_CONTEXTS = 5000
"""Maximum number of cached contexts, some hundred kilobytes."""

_MAX_SOURCES = 500
"""Maximum number of parsed CSS sources; Textual's 64 are fewer than there are."""

_MAX_THEMES = 4
"""Maximum number of themes whose parsed CSS is kept."""

_PREFIXES = {SelectorType.TYPE: "", SelectorType.CLASS: ".", SelectorType.ID: "#"}

_FLAGS = ("_has_hover_style", "_has_focus_within", "_has_order_style", "_has_odd_or_even")
"""Flags that Textual sets on a node for rules that may match it later."""


class _Features(NamedTuple):
    """The features of a node that rules test.

    Attributes:
        names: Types, ``.classes`` and ``#ids``.
        states: Pseudo-classes.
    """

    names: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()

    def of(self, selectors: Sequence[Selector]) -> "_Features":
        """These features and those that the selectors test."""
        names = (_PREFIXES[selector.type] + selector.name for selector in selectors if selector.type in _PREFIXES)
        return _Features(
            self.names.union(names), self.states.union(*(selector.pseudo_classes for selector in selectors))
        )


class StyleCache(Stylesheet):
    """A stylesheet that caches the rules of nodes by their features and those of their ancestors."""

    def __init__(self, *, variables: dict[str, str] | None = None) -> None:
        super().__init__(variables=variables)
        self._parse_cache.grow(_MAX_SOURCES)
        self._parsed_by_theme: dict[frozenset[tuple[str, str]], Any] = {}  # by the CSS variables of each theme
        self._cached_rules: list[RuleSet] = []
        self._features: dict[frozenset[str], tuple[_Features, _Features]] = {}
        self._context_ids: dict[Any, int] = {}
        self._rules_by_context: dict[int, tuple[RulesMap, tuple[bool, ...]]] = {}
        self._applied: WeakKeyDictionary[DOMNode, tuple[RulesMap, int]] = WeakKeyDictionary()

    def set_variables(self, variables: dict[str, str]) -> None:
        """Set the variables of another theme; parsed CSS of the last themes is kept."""
        self._parsed_by_theme[frozenset(self._variables.items())] = self._parse_cache
        while len(self._parsed_by_theme) > _MAX_THEMES:
            del self._parsed_by_theme[next(iter(self._parsed_by_theme))]
        self._parse_cache = type(self._parse_cache)(_MAX_SOURCES)  # the original is cleared by Textual
        super().set_variables(variables)
        self._parse_cache = self._parsed_by_theme.pop(frozenset(variables.items()), self._parse_cache)

    def reparse(self) -> None:
        """Apply other variables; Textual's method discards its parsed CSS."""
        self.parse()

    def store_parsed(self, ahead: Stylesheet) -> None:
        """Store CSS parsed with the variables of another theme; callable from any thread."""
        self._parsed_by_theme[frozenset(ahead._variables.items())] = ahead._parse_cache

    def parse_ahead(self, files: Sequence[Path], variables: dict[str, str] | None = None) -> Stylesheet:
        """Parse files and the default CSS of all imported widgets; callable from any thread.

        Args:
            files: CSS files, for :meth:`adopt`.
            variables: Variables of another theme, for :meth:`store_parsed`.
        """
        ahead = Stylesheet(variables=self._variables if variables is None else variables)
        ahead._parse_cache.grow(_MAX_SOURCES)
        ahead.read_all(files)
        for kind in _subclasses(Widget) if TEXTUAL_SUPPORTED else ():
            for place, base in enumerate(kind._css_bases(kind)):
                if rules := base.__dict__.get("DEFAULT_CSS"):
                    scope = base._css_type_name if base.__dict__.get("SCOPED_CSS", True) else ""
                    ahead.add_source(rules, (getfile(base), f"{base.__name__}.DEFAULT_CSS"), True, -place, scope)
        ahead.parse()
        for where, here in dict(self.source).items():  # may have another specificity here
            ahead._parse_rules(here.content, where, here.is_defaults, here.tie_breaker, here.scope)
        return ahead

    def adopt(self, ahead: Stylesheet) -> None:
        """Add rules that were parsed ahead; rules added later, with their widgets, would clear the cache."""
        if ahead._variables == self._variables:  # the theme may have changed meanwhile
            for text in ahead._parse_cache.keys():  # noqa: SIM118 (it is no mapping)
                self._parse_cache[text] = ahead._parse_cache[text]
        self.source |= {
            where: rules for where, rules in ahead.source.items() if where not in self.source
        }  # later rules win
        self.parse()

    def apply(self, node: DOMNode, *, animate: bool = False, cache: dict[Any, Any] | None = None) -> None:
        """Apply the styles of a node.

        Args:
            node: The node.
            animate: Whether changes may be animated.
            cache: Shared by nodes that are styled together.
        """
        if not TEXTUAL_SUPPORTED:
            super().apply(node, animate=animate, cache=cache)
            return
        if self.rules is not self._cached_rules or len(self._context_ids) > MAX_CONTEXTS:
            self._clear()
        seen = {} if cache is None else cache
        place = self._context_id(node, *self._features_of(node), seen)
        if look := self._rules_by_context.get(place):
            rules, flags = look
            for name, flag in zip(_FLAGS, flags, strict=True):
                setattr(node, name, flag)
            if self._applied.get(node) == (rules, node.styles.base._updates):
                node.notify_style_update()  # its ancestors may have changed
            else:
                self.replace_rules(node, rules, animate=animate)
                self._applied[node] = rules, node.styles.base._updates
            self._refresh_component_styles(node, seen)
            return
        found: dict[Any, RulesMap] = {}  # empty where rules test siblings or children
        super().apply(node, animate=animate, cache=found)
        for rules in found.values():
            self._rules_by_context[place] = rules, tuple(getattr(node, name) for name in _FLAGS)
            self._applied[node] = rules, node.styles.base._updates

    def _process_component_classes(self, node: DOMNode) -> None:
        # Textual computes the styles of all component classes at once.
        self._refresh_component_styles(node, {})

    def _refresh_component_styles(self, node: DOMNode, seen: dict[Any, Any]) -> None:
        parts = node._component_styles
        if not isinstance(parts, ComponentStyles):
            if node._get_component_classes():
                node._component_styles = ComponentStyles(self, node)
            return
        before = [styles._cache_key for styles in parts.values()]
        for styles in parts.values():
            if styles.base.node is not None:
                self.apply(styles.base.node, cache=seen)
        if before != [styles._cache_key for styles in parts.values()]:
            node.refresh()

    def _features_of(self, node: DOMNode) -> tuple[_Features, _Features]:
        """The features that rules matching a node test: of the node, and of its ancestors."""
        names = frozenset(self.rules_map.keys() & node._selector_names)
        if names not in self._features:
            own, around = _Features(names), _Features()
            for rule in {rule for name in names for rule in self.rules_map[name]}:
                for selectors in (one.selectors for one in rule.selector_set):
                    first = _first_of_node(selectors)
                    own, around = own.of(selectors[first:]), around.of(selectors[:first])
            self._features[names] = own, around
        return self._features[names]

    def _context_id(self, node: DOMNode, own: _Features, around: _Features, seen: dict[Any, Any]) -> int:
        """A number for everything that rules can tell about a node and its ancestors."""
        place: int | None = seen.get((node, own, around))
        if place is None:
            above = self._context_id(node.parent, around, around, seen) if node.parent else 0
            checks: Mapping[str, Callable[[Any], bool]] = node._PSEUDO_CLASSES
            states = frozenset(name for name in own.states if name in checks and checks[name](node))
            told = above, own.names.intersection(node._selector_names), states, own
            place = seen[node, own, around] = self._context_ids.setdefault(told, len(self._context_ids) + 1)
        return place

    def _clear(self) -> None:
        """Clear the cache after rules have changed."""
        self._cached_rules = self.rules
        for memory in (self._features, self._context_ids, self._rules_by_context, self._applied):
            memory.clear()


class ComponentStyles(dict[str, RenderStyles]):
    """Styles of a node's component classes, computed when first used."""

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


def _subclasses(kind: type[Widget]) -> Iterator[type[Widget]]:
    """A widget class and all its subclasses."""
    yield kind
    for special in kind.__subclasses__():
        yield from _subclasses(special)


def _first_of_node(selectors: Sequence[Selector]) -> int:
    """Index of the first selector that tests the node itself; those before test its ancestors."""
    first = len(selectors) - 1
    while first and not selectors[first - 1].advance:
        first -= 1
    return first
