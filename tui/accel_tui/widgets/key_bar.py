"""The line at the bottom of a screen that says its keys."""

from collections.abc import Iterator
from dataclasses import dataclass

from textual.content import Content
from textual.events import Click, MouseMove
from textual.reactive import reactive
from textual.screen import Screen
from textual.widget import Widget

SPARE = (
    "command_palette",
    "zoom_in",
    "toggle_theme",
    "detach",
    "log",
    "details",
    "order",
    "show_plan",
    "delete",
    "label",
    "back",
    "mark",
)
"""The actions whose keys are left out where there is no room, the first first; help tells them too."""

LAST = ("back", "leave", "pop_screen", "quit", "help", "toggle_theme", "command_palette")
"""The actions whose keys stand at the end, in this order, whoever owns them."""


@dataclass(frozen=True, slots=True)
class ActiveKey:
    """A key that works now.

    Attributes:
        key: What Textual calls it.
        action: What it does, without the owner.
        label: Key and description as they are shown.
        tooltip: What it does, in a sentence.
        possible: Whether it can be used; else it is shown, but faint.
    """

    key: str
    action: str
    label: Content
    tooltip: str
    possible: bool


class KeyBar(Widget):
    """The keys that work now; a click is as good as a key.

    All are one widget: they change whenever another field is gone to, and one for each would take
    longer to make than all the rest of the answer to such a key.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    KeyBar {
        dock: bottom;
        height: 1;
        background: $footer-background;
        text-wrap: nowrap;
        text-overflow: ellipsis;
    }
    """

    keys: reactive[tuple[ActiveKey, ...]] = reactive(())
    """The keys that work now."""

    def on_mount(self) -> None:
        """Follow what can be done."""
        self.screen.bindings_updated_signal.subscribe(self, self._look)

    def render(self) -> Content:
        """Those that there is room for."""
        return Content("").join(key.label for key in self.shown)

    @property
    def shown(self) -> tuple[ActiveKey, ...]:
        """Those that there is room for."""
        keys = self.keys
        for spare in SPARE:
            if sum(key.label.cell_length for key in keys) > self.size.width:
                keys = tuple(key for key in keys if key.action != spare)
        return keys

    def on_click(self, event: Click) -> None:
        """Do what the key does."""
        if (key := self._at(event.x)) and key.possible:
            self.app.simulate_key(key.key)

    def on_mouse_move(self, event: MouseMove) -> None:
        """Say in the tooltip what the key does."""
        key = self._at(event.x)
        self.tooltip = key.tooltip if key else None

    def _at(self, x: int) -> ActiveKey | None:
        end = 0
        for key in self.shown:
            end += key.label.cell_length
            if x < end:
                return key
        return None

    def _look(self, screen: "Screen[object]") -> None:
        if screen is self.screen:
            keys = list(self._active(screen))
            self.keys = tuple(sorted(keys, key=lambda key: LAST.index(key.action) if key.action in LAST else -1))

    def _active(self, screen: "Screen[object]") -> Iterator[ActiveKey]:
        """One key for each action, the first."""
        seen = set()
        for active in screen.active_bindings.values():
            binding = active.binding
            if binding.show and binding.action not in seen:
                seen.add(binding.action)
                style = "" if active.enabled else " dim"
                label = Content.assemble(
                    (f" {self.app.get_key_display(binding)} ", f"$footer-key-foreground bold{style}"),
                    (f"{binding.description} ", f"$footer-description-foreground{style}"),
                )
                action = binding.action.partition("(")[0].rpartition(".")[2]
                yield ActiveKey(binding.key, action, label, active.tooltip, possible=active.enabled)
