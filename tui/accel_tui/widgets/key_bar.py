"""The lines at the top and at the bottom of a screen: program, screen and machine; and the keys."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import ActiveBinding
from textual.content import Content
from textual.events import Click, MouseMove
from textual.geometry import Size
from textual.reactive import reactive
from textual.screen import Screen
from textual.widget import Widget

from accel_engine.text import printable_line
from accel_engine.version import __version__
from accel_engine.words import numbers
from accel_tui.app_protocol import tell_why_not

DROP_ORDER = (
    "open_searches",
    "show_hosts",
    "show_queue",
    "clone",
    "stop_search",
    "take_best",
    "maximize",
    "pin",
    "prune",
    "next_tab",
    "predict",
    "bench",
    "deploy",
    "export",
    "limit",
    "measure",
    "race",
    "queue",
    "where",
    "command_palette",
    "zoom_in",
    "toggle_theme",
    "show_plan",
    "show_runs",
    "detach",
    "log",
    "details",
    "advice",
    "sort",
    "duplicate",
    "train_longer",
    "evaluate",
    "delete",
    "edit",
    "select",
    "continue",
    "back",
)
"""Actions whose keys are dropped where there is no room, in this order; help shows all."""

END_ORDER = ("panel", "back", "leave", "quit", "help", "toggle_theme", "command_palette")
"""Actions whose keys are shown last, in this order."""

SHORT_LABELS = {"learning_rate": "LR"}
"""Labels of actions whose descriptions are too long for the line."""


@dataclass(frozen=True, slots=True)
class ActiveKey:
    """A key that is active now."""

    active: ActiveBinding
    """The binding, and the node that owns it."""
    action: str
    """The action without its namespace."""
    label: Content
    """Key and description, as shown."""
    tooltip: str
    """The action in a sentence."""
    is_enabled: bool
    """Whether the key can be used; else it is dimmed. A click can be where letters are text."""

    def dimmed(self) -> "ActiveKey":
        """The same while letters are text: what is not a single letter still works."""
        return (
            replace(self, label=self.label.stylize("dim"), is_enabled=False)
            if len(self.active.binding.key) == 1
            else self
        )


class KeyBar(Widget):
    """The active keys; a click runs the action.

    A single widget: the keys change with the focus, and a widget each would take longer than the rest of the response.

    Args:
        kept: An action whose key is not dropped, such as the command palette, which finds the dropped ones.
        steady: Whether it has the keys of the screen and the app only, wherever the focus is; they are dimmed while
            letters are text.
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
    """The active keys."""

    def __init__(self, kept: str = "", *, steady: bool = False) -> None:
        super().__init__()
        self._kept = kept
        self._steady = steady

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._update_keys)

    def render(self) -> Content:
        """The labels of the shown keys."""
        return Content("").join(key.label for key in self.shown)

    @property
    def shown(self) -> tuple[ActiveKey, ...]:
        """The keys that fit."""
        keys = self.keys
        for dropped in DROP_ORDER:
            if dropped != self._kept and sum(key.label.cell_length for key in keys) > self.size.width:
                keys = tuple(key for key in keys if key.action != dropped)
        return keys

    def on_click(self, event: Click) -> None:
        """Run the key's action: the key itself would be text in a field."""
        key = self._key_at(event.x)
        if key is None:
            return
        active = key.active

        async def do() -> None:
            if not await self.app.run_action(active.binding.action, active.node) and not active.enabled:
                tell_why_not(self, active)

        self.app.call_later(do)

    def on_mouse_move(self, event: MouseMove) -> None:
        key = self._key_at(event.x)
        self.tooltip = key.tooltip if key else None

    def _key_at(self, x: int) -> ActiveKey | None:
        end = 0
        for key in self.shown:
            end += key.label.cell_length
            if x < end:
                return key
        return None

    def _update_keys(self, screen: "Screen[object]") -> None:
        if screen is self.screen:
            if self._steady and self.keys and screen.focused and screen.focused.check_consume_key("a", "a"):
                self.keys = tuple(key.dimmed() for key in self.keys)
                return
            keys = list(self._active_keys(screen))
            self.keys = tuple(
                sorted(keys, key=lambda key: END_ORDER.index(key.action) if key.action in END_ORDER else -1)
            )

    def _active_keys(self, screen: "Screen[object]") -> Iterator[ActiveKey]:
        """The first key of each action that is described differently."""
        seen = set()
        for active in screen.active_bindings.values():
            binding = active.binding
            action = binding.action.partition("(")[0].rpartition(".")[2]
            if self._steady and active.node not in (screen, self.app):
                continue
            if binding.show and (action, binding.description) not in seen:
                seen.add((action, binding.description))
                style = "" if active.enabled else " dim"
                words = SHORT_LABELS.get(action, binding.description)
                label = Content.assemble(
                    (f" {self.app.get_key_display(binding)} ", f"$footer-key-foreground bold{style}"),
                    (f"{words} ", f"$footer-description-foreground{style}"),
                )
                yield ActiveKey(active, action, label, active.tooltip, is_enabled=active.enabled)


class RunsBadge(Widget):
    """How many runs are running, and how many wait, at the right end of the first line; a click shows them."""

    ROOM: ClassVar[int] = 26
    """Cells that the line leaves for it."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    RunsBadge {
        dock: right;
        width: auto;
        height: 1;
        background: $surface;
    }
    """

    def on_mount(self) -> None:
        if hasattr(self.app, "run_counts"):
            self.watch(self.app, "run_counts", self._count, init=False)

    def _count(self) -> None:
        self.refresh(layout=True)

    def render(self) -> Content:
        """Both numbers, dim where they are 0; nothing before the runs were read."""
        counts: tuple[int, int] | None = getattr(self.app, "run_counts", None)
        if counts is None:
            return Content("")
        running, queued = counts
        return Content.assemble(
            (f"● {numbers.compact(running)} running", "bold $primary" if running else "$text-disabled"),
            (f"  ○ {numbers.compact(queued)} queued", "$text-warning" if queued else "$text-disabled"),
        )

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return self.render().cell_length

    async def on_click(self, event: Click) -> None:
        """Show the queue, or the list of runs."""
        event.stop()
        is_queue = event.x >= self.render().plain.find("○")
        await self.run_action("app.show_queue" if is_queue else "app.show_runs")

    def on_mouse_move(self, event: MouseMove) -> None:
        self.tooltip = "Q shows the queue" if event.x >= self.render().plain.find("○") else "r lists the runs"


class TopBar(Widget):
    """A header of one line.

    Args:
        place: The screen's title.
    """

    DEFAULT_CSS = """
    TopBar {
        dock: top;
        height: 1;
        padding: 0 1;
        background: $surface;
    }
    """

    def __init__(self, place: str) -> None:
        super().__init__()
        self._place = place

    def render(self) -> Content:
        """Program and title on the left, host and version before the badge."""
        left = Content.assemble(("accel-tui", "bold $accent"), ("  " + self._place, "bold"))
        right = Content.assemble(
            (printable_line(socket.gethostname()), "$text-muted"), ("  " + __version__, "$text-disabled")
        )
        width = self.size.width - RunsBadge.ROOM
        gap = width - left.cell_length - right.cell_length
        return Content.assemble(left, " " * gap, right) if gap > 1 else left.truncate(max(width, 1), ellipsis=True)

    def compose(self) -> ComposeResult:
        """Compose the badge."""
        yield RunsBadge()
