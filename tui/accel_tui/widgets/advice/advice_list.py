"""Bases of the lists of the Advice screen, and the list of findings."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from accel_engine.advice import Category, Finding
from accel_tui.formatting.advice import evidence_text
from accel_tui.formatting.text import hanging
from accel_tui.widgets.list_keys import ItemList

_Item = TypeVar("_Item")


class AdviceList(ItemList):
    """A list whose highlighted option is the selected one; keys of the screen act on it, a click only selects."""

    BINDING_GROUP_TITLE = "Lists"
    DEFAULT_CSS = """
    AdviceList {
        height: auto;
        background: $background;
        scrollbar-size-vertical: 1;
        &:focus { background-tint: $background 0%; }
        & > .option-list--option-disabled { color: $primary; text-style: bold; }
    }
    """

    @property
    def highlighted_id(self) -> str:
        """The id of the highlighted option; empty if there is none."""
        return "" if self.highlighted is None else self.get_option_at_index(self.highlighted).id or ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave the keys of pages to the evidence beside the list."""
        del parameters
        return action != "page"

    def show(self, options: Sequence[Option], selected: str = "") -> None:
        """Show options.

        Args:
            options: The options, with ids; those that are disabled are headings.
            selected: The id of the one to highlight; by default the one that is highlighted, or else the first.
        """
        current = selected or self.highlighted_id
        with self.prevent(OptionList.OptionHighlighted):
            self.clear_options()
            self.add_options(options)
            ids = [option.id for option in options if not option.disabled]
            kept = current if current in ids else next(iter(ids), None)
            self.highlighted = None if kept is None else self.get_option_index(kept)


def keyed(names: Iterable[str], items: Iterable[_Item]) -> dict[str, _Item]:
    """Items by their names; of equal ones, the second and later ones are numbered."""
    seen: Counter[str] = Counter()
    found = {}
    for name, item in zip(names, items, strict=True):
        seen[name] += 1
        found[name if seen[name] == 1 else f"{name} {seen[name]}"] = item
    return found


HEADINGS = {Category.SPEED: "Slow", Category.MEMORY: "Memory", Category.QUALITY: "Learns badly"}
"""The headings of the groups."""

_BAR = 8  # cells of the bar of a finding's weight


class FindingList(AdviceList):
    """The findings, those that matter most first, and the categories in the order of their first ones."""

    _findings: Mapping[str, Finding] = {}

    def show_findings(self, findings: Sequence[Finding], selected: str) -> None:
        """Show findings.

        Args:
            findings: Those that matter most first.
            selected: The id of the one to select; the first one if there is none.
        """
        self._findings = keyed((each.id for each in findings), findings)
        self.show(list(self._rows()), selected)

    @property
    def selected(self) -> Finding | None:
        """The selected finding; ``None`` if there is none."""
        return self._findings.get(self.highlighted_id)

    def on_resize(self) -> None:
        """Lay the lines out for another width."""
        self.show(list(self._rows()))

    def _rows(self) -> Iterator[Option]:
        is_tall = self.screen.has_class("-tall")
        categories = list(dict.fromkeys(each.category for each in self._findings.values()))
        for category in categories:
            gap = "\n" * bool(is_tall and category is not categories[0])
            yield Option(f"{gap}{HEADINGS[category]}", disabled=True)
            for id_, each in self._findings.items():
                if each.category is category:
                    yield Option(self._row(each, has_cost=is_tall), id_)

    def _row(self, finding: Finding, *, has_cost: bool) -> Content:
        """The title on the left, and how much it matters on the right; below it what it costs."""
        width = max(self.scrollable_content_region.width or self.size.width, 1)
        filled = round(min(max(finding.weight, 1 / _BAR), 1.0) * _BAR)
        bar = ("━" * filled, "$warning"), ("─" * (_BAR - filled), "$text-disabled")
        room = max(width - _BAR - 2, 1)
        first, *more = hanging(finding.title, room, "")
        title = Content(f" {first}")
        lines = [Content.assemble(title.pad_right(max(room + 1 - title.cell_length, 0)), " ", *bar)]
        lines += [Content(f" {each}") for each in more]
        if has_cost:
            lines += [Content.styled(f" {each}", "$foreground 75%") for each in hanging(finding.cost, width - 1, "")]
        return Content("\n").join(lines)


def finding_content(finding: Finding, width: int, *, has_title: bool = True) -> Content:
    """Confidence, cost and evidence of a finding.

    Args:
        finding: The finding.
        width: Cells of a line.
        has_title: Whether the title comes first.
    """
    title = [Content.styled(finding.title, "bold $accent")] if has_title else []
    return Content("\n").join([*title, *_lines(finding, width)])


def _lines(finding: Finding, width: int) -> Iterator[Content]:
    yield Content.assemble(
        (str(finding.confidence), "$text-muted"), ("   cost: ", "$text-muted"), (finding.cost, "$text-warning")
    )
    yield Content("")
    yield Content.styled("Evidence", "bold $primary")
    for each in finding.evidence:
        lines = hanging(evidence_text(each), width - 2, "")
        yield Content("\n").join(
            [Content.assemble(("· ", "$text-muted"), lines[0]), *(Content(f"  {line}") for line in lines[1:])]
        )
