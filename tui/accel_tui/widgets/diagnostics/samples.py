"""Samples of the validation data in the form that fits them: pictures, curves, rows, or text."""

from typing import ClassVar, TypeAlias

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from accel_engine.run.diagnostics import Example, OutputReport, RegressionReport
from accel_engine.run.diagnostics.views import Curve, Image, Mask, Row, Spectrogram
from accel_engine.words import numbers
from accel_tui.formatting.text import shorten
from accel_tui.widgets.diagnostics.curve_gallery import CurveGallery
from accel_tui.widgets.diagnostics.example_list import ExampleList
from accel_tui.widgets.diagnostics.examples import RANDOM, WORST, ListedExamples, captions, is_correct, leaves
from accel_tui.widgets.diagnostics.sample_gallery import SampleGallery
from accel_tui.widgets.text_table import TextRow, TextTable

_WIDEST = 24  # cells of a value


class ExampleTable(Vertical):
    """A row per sample; the table scrolls in both directions."""

    DEFAULT_CSS = """
    ExampleTable { height: 1fr; & > Static { height: auto; color: $text; } }
    """

    examples: reactive[ListedExamples | None] = reactive(None, repaint=False)
    """The samples."""

    def compose(self) -> ComposeResult:
        """Compose the summary and the table."""
        yield Static(markup=False)
        yield TextTable()

    def on_mount(self) -> None:
        """Show the samples that were set before."""
        self._show()

    def on_resize(self) -> None:
        """Fit the summary."""
        self._summarize()

    def watch_examples(self) -> None:
        """Show other samples."""
        if self.is_mounted:
            self._show()

    def _summarize(self) -> None:
        if self.examples:
            shown = len(self.examples.shown)
            spans = self.examples.summary(0, shown, self.size.width)
            styles = {"title": "bold", "faint": "$text-muted", "right": "$text-success"}
            self.query_one(Static).update(Content.assemble(*((text, styles[name]) for text, name in spans)))

    def _show(self) -> None:
        self._summarize()
        shown = self.examples.shown if self.examples else ()
        cells = [_cells(self.examples, each) for each in shown if self.examples]
        titles = list(dict.fromkeys(name for row in cells for name in row))
        rows = [
            TextRow(example.row, tuple(row.get(name, "") for name in titles), _colour(example))
            for example, row in zip(shown, cells, strict=True)
        ]
        self.query_one(TextTable).show_texts(titles, rows, _WIDEST)


def _colour(example: Example) -> str:
    return {None: "", True: "success", False: "error"}[is_correct(example)]


def _cells(examples: ListedExamples, example: Example) -> dict[str, str]:
    """The cells of a row by the title of their column."""
    mark = {None: "", True: "✓ ", False: "✗ "}[is_correct(example)]
    cells = {"example": f"{mark}{example.row:,}", "loss": numbers.metric(example.loss)}
    if isinstance(example.target, Row) and isinstance(example.output, Row):
        names = example.target.names if len(example.target.names) > 1 else ("",)
        for name, true, predicted in zip(names, example.target.values, example.output.values, strict=True):
            cells[f"true {name}".strip()] = true
            cells[f"predicted {name}".strip()] = predicted
    else:
        for name, caption in zip(("true", "predicted"), captions(examples.report, example), strict=True):
            cells[name] = shorten(caption.text, _WIDEST - len(caption.suffix)) + caption.suffix
    for leaf in leaves(example.input):
        if isinstance(leaf, Row):
            cells |= {
                name if name not in cells else f"{name} ": value
                for name, value in zip(leaf.names, leaf.values, strict=True)
            }
    return cells


SampleView: TypeAlias = SampleGallery | CurveGallery | ExampleTable | ExampleList


class Samples(Vertical):
    """Samples with the highest loss, or random ones."""

    BINDING_GROUP_TITLE = "Samples"
    DEFAULT_CSS = "Samples { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ampersand", "filter", "Only errors", id="gallery.filter", tooltip="Show only errors, or all samples"),
        Binding(
            "r", "random", "Random", id="gallery.random", tooltip="Show random samples, or those with the highest loss"
        ),
    ]

    report: reactive[OutputReport | None] = reactive(None, repaint=False)
    """Report of the last validation."""

    step: reactive[int] = reactive(0, repaint=False)
    """The step of the validation."""

    only_wrong: reactive[bool] = reactive(default=False, repaint=False)
    """Whether only errors are shown."""

    is_random: reactive[bool] = reactive(default=False, repaint=False)
    """Whether random samples are shown."""

    async def on_mount(self) -> None:
        """Show the report that was set before."""
        await self._show()

    async def watch_report(self) -> None:
        """Show other samples."""
        if self.is_mounted:
            await self._show()

    watch_only_wrong = watch_is_random = watch_report

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only what there is."""
        del parameters
        report = self.report
        if action == "filter":
            return report is not None and any(is_correct(each) is not None for each in report.worst)
        return action != "random" or (report is not None and bool(report.random))

    def action_filter(self) -> None:
        """Toggle errors and all samples."""
        self.only_wrong = not self.only_wrong

    def action_random(self) -> None:
        """Toggle random samples and the worst."""
        self.is_random = not self.is_random

    async def _show(self) -> None:
        kind = sample_view(self.report)
        shown = next((child for child in self.children if isinstance(child, SampleView)), None)
        if type(shown) is not kind:
            had_focus = shown is not None and shown.has_focus_within
            if shown is not None:
                await shown.remove()
            shown = kind()
            await self.mount(shown)
            if had_focus:
                self.screen.set_focus(next(each for each in (shown, *shown.query("*")) if each.focusable))
        order = RANDOM if self.is_random and self.report and self.report.random else WORST
        shown.examples = ListedExamples(self.report, self.step, order, self.only_wrong) if self.report else None
        self.refresh_bindings()


def sample_view(report: OutputReport | None) -> type[SampleView]:
    """The widget that shows the samples of a report."""
    examples = (*report.worst, *report.random) if report else ()
    found = {
        type(leaf) for each in examples for view in (each.input, each.target, each.output) for leaf in leaves(view)
    }
    if found & {Image, Mask, Spectrogram}:
        return SampleGallery
    if Curve in found:
        return CurveGallery
    inputs = {type(leaf) for each in examples for leaf in leaves(each.input)}
    if inputs == {Row} or (isinstance(report, RegressionReport) and inputs <= {Row}):
        return ExampleTable
    return ExampleList
