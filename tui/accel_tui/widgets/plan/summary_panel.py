"""The panel that says what a plan means."""

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
    """What was chosen, and what it comes to, in one column; in two where it is wide enough.

    What was chosen is cut short where it would leave no room for the rest, and left out in two columns below
    the form. What to beware of comes last.
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
    """What was chosen."""

    facts: reactive[tuple[PreviewRow, ...]] = reactive((), layout=True)
    """What it comes to."""

    warnings: reactive[tuple[str, ...]] = reactive((), layout=True)
    """What to beware of."""

    def on_mount(self) -> None:
        """Name the panel."""
        self.border_title = "What it means"

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """A row for every line, in what room there is if that will do."""
        del viewport
        # A parent that is as high as what is in it first asks without a height of its own.
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
            rows = [*self._chosen(width, room - len(rows) - 1), Content(""), *rows]
        return [row.truncate(width, ellipsis=True) for row in rows]

    def _chosen(self, width: int, room: int) -> list[Content]:
        """What was chosen, each in as many lines as there is room for; the longest is cut first, to a line at least."""
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
    """A text beside its name, over as many lines as it needs, or as it may have."""
    lines = textwrap.wrap(fact.text, max(width - _NAME, _NAME), max_lines=most, placeholder="…")
    names = [fact.name] + [""] * len(lines)
    return [_row(PreviewRow(name, line, fact.pending), style) for name, line in zip(names, lines, strict=False)]


def _row(fact: PreviewRow, style: str = "") -> Content:
    return Content.assemble(
        (f"{fact.name:<{_NAME}}", "$text-muted"), (fact.text, "$text-disabled" if fact.pending else style)
    )
