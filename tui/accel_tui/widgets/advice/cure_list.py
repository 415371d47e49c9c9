"""The cures of a finding, with the gain that is expected or was measured."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from textual.content import Content
from textual.widgets.option_list import Option

from accel_engine.advice import Cure, Finding
from accel_engine.text import printable_line
from accel_engine.words.numbers import percent
from accel_tui.formatting.advice import capitalized, cure_text, options_text
from accel_tui.formatting.race import TITLE, bars, cure_verdict, heading
from accel_tui.formatting.text import hanging
from accel_tui.run_state.advice import Advice
from accel_tui.run_state.cure_trials import AdviceNotes, Application, CureTrial
from accel_tui.widgets.advice.advice_list import AdviceList, keyed

if TYPE_CHECKING:  # its imports are slow
    from accel_engine.race.cure_race import CureProgress, CureRace

_COLOURS = {"success": "$text-success", "primary": "$primary", "note": "$text-muted", "error": "$text-error"}

_BAR = 20  # cells of the bar of a trial's progress

Line = tuple[str, str] | Content
"""A text and its style, which is wrapped; or what is not."""


class CureList(AdviceList):
    """The cures of the selected finding, the best first."""

    _cures: Mapping[str, Cure] = {}
    _advice: Advice | None = None
    _notes = AdviceNotes()

    def show_cures(self, finding: Finding | None, advice: Advice | None, notes: AdviceNotes) -> None:
        """Show the cures of a finding, with their trials; the selected one stays selected."""
        self._cures = keyed(map(_name, finding.cures), finding.cures) if finding and advice else {}
        self._advice, self._notes = advice, notes
        self.display = bool(self._cures)
        self.on_resize()

    @property
    def selected(self) -> Cure | None:
        """The selected cure; ``None`` if there is none."""
        return self._cures.get(self.highlighted_id)

    def on_resize(self) -> None:
        """Lay the lines out for another width."""
        width = self.size.width or self.app.size.width
        self.show([Option(_content(each, self._advice, self._notes, width), id_) for id_, each in self._cures.items()])


def _name(cure: Cure) -> str:
    return f"{cure.text} {options_text(cure.changes)}"


def _content(cure: Cure, advice: Advice | None, notes: AdviceNotes, width: int) -> Content:
    if advice is None:
        return Content("")
    lines = [each for line in _lines(cure, advice, notes, width - 2) for each in _wrapped(line, width - 2)]
    return Content("\n").join(Content("  " if index else "▸ ") + line for index, line in enumerate(lines))


def _wrapped(line: Line, width: int) -> list[Content]:
    if isinstance(line, Content):
        return [line]
    words, style = line
    return [Content.styled(text, style) for text in hanging(words, width, "")]


def _lines(cure: Cure, advice: Advice, notes: AdviceNotes, width: int) -> Iterator[Line]:
    """What to do, the options that do it, what that gains, and why it cannot be tried."""
    info = advice.info
    yield cure_text(cure, info), ""
    options = ""
    if cure.changes and info.has_engine:
        options = options_text(cure.changes)
        if options not in cure.text:
            yield options, "bold"
    if trial := notes.trials.get(options):
        yield from _trial(trial, width)
    elif cure.gain:
        yield f"expected: {cure.gain.text}, by {cure.gain.basis}", "$foreground 75%"
    if options and (reason := advice.not_tried.get(options)):
        yield f"cannot be tried: {reason}", "$foreground 75%"
    if options and (applied := notes.applied.get(options)):
        yield _application(applied)


def _application(applied: Application) -> Line:
    if applied.problem:
        return f"✗ not applied: {printable_line(applied.problem)}", "$text-error"
    if applied.is_running:
        return "applying…", "$text-accent"
    return f"✓ applied: {printable_line(applied.text)}", "$text-success"


def _trial(trial: CureTrial, width: int) -> Iterator[Line]:
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
    filled = round(share * _BAR)
    bar = "━" * filled + "─" * (_BAR - filled)
    return f"trying {bar} {percent(share, 0)}  {printable_line(progress.detail)}"


def _measured(raced: "CureRace", width: int) -> Iterator[Line]:
    """Both plans as a race shows them, its verdict, and how it was measured."""
    if titles := heading(raced.results, width):
        yield Content.styled("".join(text for text, _ in titles), "bold $text-muted")
    for line in bars(raced.results, width, TITLE):
        yield Content.assemble(*((text, _COLOURS.get(colour, "")) for text, colour in line))
    mark, style = ("✓", "$text-success") if raced.is_better else ("✗", "$text-warning")
    yield f"{mark} {printable_line(cure_verdict(raced))}", style
    yield f"{capitalized(printable_line(raced.how))}.", ""
