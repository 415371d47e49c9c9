"""Widgets of the Advice screen: the lists of findings and cures, and the chart of the evidence."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from accel_engine.advice import Category, Cure, Finding
from accel_engine.plan.changed_plan import options_text
from accel_engine.run.store.steps import THROUGHPUT
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_engine.words.numbers import percent
from accel_tui.formatting.advice import capitalized, cure_text, evidence_text
from accel_tui.formatting.bars import bar
from accel_tui.formatting.race import TITLE, bars, cure_verdict, heading
from accel_tui.formatting.text import paragraph_lines
from accel_tui.run_state.advice import Advice, chart_name
from accel_tui.run_state.advice_state import AdviceState, AppliedCureState, CureTrialState
from accel_tui.run_state.marks import with_advice
from accel_tui.widgets.chart.chart import PointedChart
from accel_tui.widgets.chart.chart_view import ChartSeries
from accel_tui.widgets.chart_panels.run_panels import limits_of, measure_colour, points_of, validation_colour
from accel_tui.widgets.list_keys import ItemList

if TYPE_CHECKING:  # its imports are slow
    from accel_engine.race.cure_race import CureProgress, CureRace


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
        weight = bar(max(finding.weight, 1 / _BAR), _BAR), "$warning"
        room = max(width - _BAR - 2, 1)
        first, *more = paragraph_lines(finding.title, room)
        title = Content(f" {first}")
        lines = [Content.assemble(title.pad_right(max(room + 1 - title.cell_length, 0)), " ", weight)]
        lines += [Content(f" {each}") for each in more]
        if has_cost:
            lines += [
                Content.styled(f" {each}", "$foreground 75%") for each in paragraph_lines(finding.cost, width - 1)
            ]
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
        lines = paragraph_lines(evidence_text(each), width - 2)
        yield Content("\n").join(
            [Content.assemble(("· ", "$text-muted"), lines[0]), *(Content(f"  {line}") for line in lines[1:])]
        )


class EvidenceChart(PointedChart):
    """The whole run, with a mark where the evidence begins; hidden if no series shows it."""

    def show_finding(self, finding: Finding | None, advice: Advice | None) -> None:
        """Show the first series that a finding is seen in."""
        series, steps = "", None
        if finding and advice:
            names = [(each.series, each.steps) for each in finding.evidence if each.series]
            shown = [(chart_name(name), steps) for name, steps in names]
            series, steps = next(((name, steps) for name, steps in shown if _has_values(advice, name)), ("", None))
        self.set_class(bool(series), "-shown")
        if not (series and advice):
            return
        is_rate = series == THROUGHPUT
        self.title = series.replace("_", " ")
        self.format = numbers.compact if is_rate else numbers.metric
        self.y_limits = limits_of(series)
        self.end = advice.coverage.steps
        found = advice.curves[series]
        self.marks = with_advice({}, [steps[0]] if steps else [])
        colour = measure_colour(series)
        validation = ChartSeries("validation", points=points_of(found.validation), style=validation_colour(colour))
        training = ChartSeries("step", found.curve, style=colour)
        self.mark_stale()  # the curve may be the same, with another mark
        self.refresh()
        self.series = tuple(each for each in (training, validation) if each.points or each.curve.end_step)


def _has_values(advice: Advice, series: str) -> bool:
    found = advice.curves.get(series)
    return found is not None and bool(found.curve.end_step or found.validation)


_COLOURS = {"success": "$text-success", "primary": "$primary", "note": "$text-muted", "error": "$text-error"}

_TRIAL_BAR = 20  # cells of the bar of a trial's progress

Line = tuple[str, str] | Content
"""A text to wrap, with its style; or a line that is not wrapped."""


class CureList(AdviceList):
    """The cures of the selected finding, the best first."""

    _cures: Mapping[str, Cure] = {}
    _advice: Advice | None = None
    _state = AdviceState()

    def show_cures(self, finding: Finding | None, advice: Advice | None, state: AdviceState) -> None:
        """Show the cures of a finding, with their trials; the selected one stays selected."""
        self._cures = keyed(map(_name, finding.cures), finding.cures) if finding and advice else {}
        self._advice, self._state = advice, state
        self.display = bool(self._cures)
        self.on_resize()

    @property
    def selected(self) -> Cure | None:
        """The selected cure; ``None`` if there is none."""
        return self._cures.get(self.highlighted_id)

    def on_resize(self) -> None:
        width = self.size.width or self.app.size.width
        self.show([Option(_content(each, self._advice, self._state, width), id_) for id_, each in self._cures.items()])


def _name(cure: Cure) -> str:
    return f"{cure.text} {options_text(cure.changes)}"


def _content(cure: Cure, advice: Advice | None, state: AdviceState, width: int) -> Content:
    if advice is None:
        return Content("")
    lines = [each for line in _cure_lines(cure, advice, state, width - 2) for each in _wrapped(line, width - 2)]
    return Content("\n").join(Content("  " if index else "▸ ") + line for index, line in enumerate(lines))


def _wrapped(line: Line, width: int) -> list[Content]:
    if isinstance(line, Content):
        return [line]
    words, style = line
    return [Content.styled(text, style) for text in paragraph_lines(words, width)]


def _cure_lines(cure: Cure, advice: Advice, state: AdviceState, width: int) -> Iterator[Line]:
    """Lines of a cure: the instruction, its options, its trial or gain, why it cannot be tried, and its application."""
    info = advice.info
    yield cure_text(cure, info), ""
    options = ""
    if cure.changes and info.has_engine:
        options = options_text(cure.changes)
        if options not in cure.text:
            yield options, "bold"
    if trial := state.trials.get(options):
        yield from _trial(trial, width)
    elif cure.gain:
        yield f"expected: {cure.gain.text}, by {cure.gain.basis}", "$foreground 75%"
    if options and (reason := advice.not_tried.get(options)):
        yield f"cannot be tried: {reason}", "$foreground 75%"
    if options and (applied := state.applied.get(options)):
        yield _application(applied)


def _application(applied: AppliedCureState) -> Line:
    if applied.problem:
        return f"✗ not applied: {printable_line(applied.problem)}", "$text-error"
    if applied.is_running:
        return "applying…", "$text-accent"
    return f"✓ applied: {printable_line(applied.text)}", "$text-success"


def _trial(trial: CureTrialState, width: int) -> Iterator[Line]:
    if trial.problem:
        yield f"✗ not tried: {printable_line(trial.problem)}", "$text-error"
    elif trial.result:
        yield from _measured(trial.result, width)
    else:
        yield _progress(trial.progress), "$text-accent"


def _progress(progress: "CureProgress | None") -> str:
    if progress is None:
        return "trying: starting"
    share = min(max(progress.done / progress.of, 0.0), 1.0) if progress.of > 0 else 0.0
    return f"trying {bar(share, _TRIAL_BAR, rest='─')} {percent(share, 0)}  {printable_line(progress.detail)}"


def _measured(raced: "CureRace", width: int) -> Iterator[Line]:
    """Both plans as a race shows them, its verdict, and how it was measured."""
    if titles := heading(raced.results, width):
        yield Content.styled("".join(text for text, _ in titles), "bold $text-muted")
    for line in bars(raced.results, width, TITLE):
        yield Content.assemble(*((text, _COLOURS.get(colour, "")) for text, colour in line))
    mark, style = ("✓", "$text-success") if raced.is_better else ("✗", "$text-warning")
    yield f"{mark} {printable_line(cure_verdict(raced))}", style
    yield f"{capitalized(printable_line(raced.how))}.", ""
