"""The summary of a plan."""

import textwrap

from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.widget import Widget

from accel_tui.plan.plan_preview import PreviewRow

_NAME = 12
_TWO_COLUMNS = 66
_ANY = 1000


class SummaryPanel(Widget):
    """The choices and what follows from them, in one column, or in two if wide enough.

    Choices are cut short where they leave no room for the rest, and left out in two columns below the form. Warnings
    come last.
    """

    DEFAULT_CSS = """
    SummaryPanel {
        height: auto;
        border-top: solid $border;
        border-title-color: $foreground;
        border-title-style: bold;
    }
    """

    choices: reactive[tuple[PreviewRow, ...]] = reactive((), layout=True)
    """The choices: model, data, strategy."""

    facts: reactive[tuple[PreviewRow, ...]] = reactive((), layout=True)
    """What follows from the plan: parameters, steps, memory and others."""

    warnings: reactive[tuple[str, ...]] = reactive((), layout=True)
    """Warnings."""

    def on_mount(self) -> None:
        """Set the panel's title."""
        self.border_title = "Summary"

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Number of lines, cut to the room if possible."""
        del viewport
        # A parent with automatic height asks without one.
        return len(self._lines(width, container.height or _ANY))

    def render(self) -> Content:
        """All lines, as wide as the widget."""
        return Content("\n").join(self._lines(self.size.width, self.size.height))

    def _lines(self, width: int, room: int) -> list[Content]:
        if width >= _TWO_COLUMNS:
            rows = [_row(fact) for fact in self.facts]
            half = (len(rows) + 1) // 2
            left = [row.truncate(width // 2 - 1, ellipsis=True, pad=True) for row in rows[:half]]
            right = [*rows[half:], Content("")][:half]
            rows = [Content.assemble(first, " ", second) for first, second in zip(left, right, strict=True)]
        else:
            rows = [line for fact in self.facts for line in _paragraph(fact, width)]
        rows += [line for text in self.warnings for line in Content.styled(text, "$text-warning").wrap(width)]
        if width < _TWO_COLUMNS or not self.screen.has_class("-narrow"):
            rows = [*self._choice_lines(width, room - len(rows) - 1), Content(""), *rows]
        return [row.truncate(width, ellipsis=True) for row in rows]

    def _choice_lines(self, width: int, room: int) -> list[Content]:
        """The choices, in as many lines as fit; the longest is cut first, to one line at least."""
        wholes = [_paragraph(fact, width, "$text-muted") for fact in self.choices]
        counts = [len(whole) for whole in wholes]
        while sum(counts) > room and max(counts, default=1) > 1:
            counts[counts.index(max(counts))] -= 1
        return [
            line
            for fact, whole, count in zip(self.choices, wholes, counts, strict=True)
            for line in (whole if count == len(whole) else _paragraph(fact, width, "$text-muted", count))
        ]


def _paragraph(fact: PreviewRow, width: int, style: str = "", most: int | None = None) -> list[Content]:
    """A text next to its name, wrapped, in at most ``most`` lines."""
    lines = textwrap.wrap(fact.text, max(width - _NAME, _NAME), max_lines=most, placeholder="…")
    names = [fact.name] + [""] * len(lines)
    return [_row(PreviewRow(name, line, fact.pending), style) for name, line in zip(names, lines, strict=False)]


def _row(fact: PreviewRow, style: str = "") -> Content:
    return Content.assemble(
        (f"{fact.name:<{_NAME}}", "$text-muted"), (fact.text, "$text-disabled" if fact.pending else style)
    )
