"""Commands of the command palette: the screen's keys, the runs, and the form's choices."""

from collections.abc import Callable, Iterator
from functools import partial

from textual.binding import ActiveBinding
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.markup import escape

from accel_engine.plan import SPECS, WORDS
from accel_engine.text import printable_line
from accel_tui.plan import field_labels
from accel_tui.widgets.plan.plan_form import PlanForm

Command = tuple[str, str, Callable[[], object]]
"""A title, a description, and the function to call."""

_BY_WORDS = 0.01  # below the score of any match by title


class ListedCommands(Provider):
    """Commands that are listed at once, and found by any part of their title."""

    def commands(self) -> Iterator[Command]:
        """The commands that are available now."""
        raise NotImplementedError

    async def discover(self) -> Hits:
        """List all commands."""
        for title, about, call in self.commands():
            yield DiscoveryHit(_literal(title), call, help=_literal(about))

    async def search(self, query: str) -> Hits:
        """Find commands by title, then by the words of their description."""
        matcher, wanted = self.matcher(query), query.lower().split()
        for title, about, call in self.commands():
            if (score := matcher.match(title)) > 0:
                yield Hit(score, matcher.highlight(_literal(title)), call, help=_literal(about))
            elif all(word in about.lower() for word in wanted):
                yield Hit(_BY_WORDS, _literal(title), call, help=_literal(about))


def _literal(text: str) -> str:
    """Text with markup escaped: a run may be called ``[@click=app.quit]``."""
    return escape(printable_line(text))


class KeyCommands(ListedCommands):
    """A command per key of the screen, and those without a key."""

    def commands(self) -> Iterator[Command]:
        """A command per action that is enabled now."""
        yield from self._keys()
        for command in self.app.get_system_commands(self.screen):
            yield command.title, command.help, command.callback

    def _rank(self, active: ActiveBinding) -> tuple[bool, bool, bool]:
        """What has a short name comes first, before all of the screen itself; what leaves it or is everywhere last."""
        is_everywhere = active.node is self.app or active.binding.id == "screen.back"
        return not active.binding.description, is_everywhere, active.node is not self.screen

    def _keys(self) -> Iterator[Command]:
        seen = set()
        for active in sorted(self.screen.active_bindings.values(), key=self._rank):
            binding = active.binding
            # Textual's own bindings have no id.
            if active.enabled and binding.id and active.tooltip and (binding.action, active.node) not in seen:
                seen.add((binding.action, active.node))
                key = f"({self.app.get_key_display(binding)})"
                call = partial(self.app.run_action, binding.action, active.node)
                if binding.description:
                    yield binding.description, f"{active.tooltip} {key}", call
                else:
                    yield active.tooltip, key, call


class SearchedCommands(ListedCommands):
    """Commands that are too many to list: only found by searching."""

    async def discover(self) -> Hits:
        """List nothing."""
        return
        yield  # makes this a generator


class PlanCommands(SearchedCommands):
    """Fills a field of the New run form: ``model: resnet20``."""

    async def startup(self) -> None:
        """List the commands once: the form does not change while the palette is open."""
        self._listed = tuple(self._list())

    def commands(self) -> Iterator[Command]:
        """A command per choice of each field, and one per field to focus it."""
        yield from self._listed

    def _list(self) -> Iterator[Command]:
        plan_form = self.screen.query_one(PlanForm)
        for name, choices in plan_form.choices.items():
            doc, label = SPECS[name].doc, field_labels.label(name)
            about = " ".join((doc, *(f"({word})" for word in WORDS[name].synonyms)))
            yield f"go to {label}", about, partial(plan_form.go_to, name)
            for choice in choices:
                if choice.possible and choice.value:
                    yield f"{label}: {choice.value}", choice.note or doc, partial(plan_form.set, name, choice.value)
