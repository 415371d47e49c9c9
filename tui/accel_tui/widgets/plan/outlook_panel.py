"""The panel that says what a plan means."""

import textwrap

from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.widget import Widget

from accel_tui.plan.outlook import Fact

_NAME = 12
_TWO_COLUMNS = 66


class OutlookPanel(Widget):
    """What was chosen, and what it comes to, in one column; in two and without the former where rows are few.

    What to beware of comes last.
    """

    DEFAULT_CSS = """
    OutlookPanel {
        height: auto;
        border-top: solid $border;
        border-title-color: $foreground;
        border-title-style: bold;
    }
    """

    choices: reactive[tuple[Fact, ...]] = reactive((), layout=True)
    """What was chosen."""

    facts: reactive[tuple[Fact, ...]] = reactive((), layout=True)
    """What it comes to."""

    warnings: reactive[tuple[str, ...]] = reactive((), layout=True)
    """What to beware of."""

    def on_mount(self) -> None:
        """Name the panel."""
        self.border_title = "What it means"

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """A row for every line."""
        del container, viewport
        return len(self._lines(width))

    def render(self) -> Content:
        """All lines, as wide as the widget."""
        return Content("\n").join(self._lines(self.size.width))

    def _lines(self, width: int) -> list[Content]:
        if width >= _TWO_COLUMNS:
            rows = [_row(fact) for fact in self.facts]
            half = (len(rows) + 1) // 2
            left = [row.truncate(width // 2 - 1, ellipsis=True, pad=True) for row in rows[:half]]
            right = [*rows[half:], Content("")][:half]
            rows = [Content.assemble(first, " ", second) for first, second in zip(left, right, strict=True)]
        else:
            chosen = [line for fact in self.choices for line in _paragraph(fact, width, "$text-muted")]
            rows = [*chosen, Content(""), *(line for fact in self.facts for line in _paragraph(fact, width))]
        rows = [row.truncate(width, ellipsis=True) for row in rows]
        return rows + [line for text in self.warnings for line in Content.styled(text, "$text-warning").wrap(width)]


def _paragraph(fact: Fact, width: int, style: str = "") -> list[Content]:
    """A text beside its name, over as many lines as it needs."""
    lines = textwrap.wrap(fact.text, max(width - _NAME, _NAME))
    names = [fact.name] + [""] * len(lines)
    return [_row(Fact(name, line, fact.pending), style) for name, line in zip(names, lines, strict=False)]


def _row(fact: Fact, style: str = "") -> Content:
    return Content.assemble(
        (f"{fact.name:<{_NAME}}", "$text-muted"), (fact.text, "$text-disabled" if fact.pending else style)
    )
