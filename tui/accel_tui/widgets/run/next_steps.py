"""Buttons of the actions on an ended run."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Button


class NextStep(NamedTuple):
    """A button."""

    action: str
    """The screen's action."""
    label: str
    key: str
    """The key that does the same, as shown."""


_MARGIN, _AROUND = 1, 4
"""Cells after a button; and all of its cells besides the words."""


class NextSteps(Horizontal):
    """A button per action that an ended run allows; hidden while there is none. Arrows move between them."""

    BINDING_GROUP_TITLE = "Next steps"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "app.focus_previous", id="steps.previous", tooltip="Previous button"),
        Binding("right", "app.focus_next", id="steps.next", tooltip="Next button"),
    ]
    DEFAULT_CSS = """
    NextSteps {
        display: none;
        height: 1;
        padding: 0 1;
        overflow: hidden;
        &.-shown { display: block; }
        Button {
            width: auto;
            min-width: 0;
            margin-right: 1;
            background: $foreground 10%;
            color: $foreground;
            text-style: none;
            &:hover { background: $foreground 20%; }
            &:focus { background: $primary; color: $background; text-style: bold; }
        }
    }
    """

    steps: reactive[Sequence[NextStep]] = reactive((), recompose=True)
    """What is offered."""

    def watch_steps(self) -> None:
        self.set_class(bool(self.steps), "-shown")

    def compose(self) -> ComposeResult:
        """Compose a button per step."""
        for step in self.steps:
            yield Button(Content.assemble(step.label, (f" {step.key}", "$text-muted")), name=step.action, compact=True)

    def on_resize(self) -> None:
        """Leave out the last buttons where there is no room for all."""
        room = self.size.width
        for step, button in zip(self.steps, self.query(Button), strict=False):
            room -= len(step.label) + len(step.key) + _AROUND
            button.display = room >= -_MARGIN

    def on_mount(self) -> None:
        self.watch(self, "steps", self._fit, init=False)

    def _fit(self) -> None:
        """Leave out buttons once they are made."""
        self.call_after_refresh(self.on_resize)

    @on(Button.Pressed)
    async def _do(self, event: Button.Pressed) -> None:
        event.stop()
        await self.run_action(f"screen.{event.button.name}")
