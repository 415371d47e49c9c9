"""Samples of the validation data in the form that fits them: pictures, curves, or rows."""

from typing import ClassVar, TypeAlias

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.reactive import reactive

from accel_engine.run.diagnostics import OutputReport
from accel_engine.run.diagnostics.views import Curve, Image, Mask, Spectrogram
from accel_tui.widgets.diagnostics.curve_gallery import CurveGallery
from accel_tui.widgets.diagnostics.example_table import ExampleTable
from accel_tui.widgets.diagnostics.examples import RANDOM, WORST, ListedExamples, is_correct, leaves
from accel_tui.widgets.diagnostics.sample_gallery import SampleGallery

SampleView: TypeAlias = SampleGallery | CurveGallery | ExampleTable


class Samples(Vertical):
    """Samples with the highest loss, or random ones."""

    BINDING_GROUP_TITLE = "Samples"
    DEFAULT_CSS = "Samples { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ampersand", "filter", "Only errors", id="gallery.filter", tooltip="Show only errors, or all samples"),
        Binding(
            "z", "random", "Random", id="gallery.random", tooltip="Show random samples, or those with the highest loss"
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
        if self.is_mounted:
            await self._show()

    watch_only_wrong = watch_is_random = watch_report

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only what there is."""
        report = self.report
        if action == "filter":
            return report is not None and any(is_correct(each) is not None for each in report.worst)
        return action != "random" or (report is not None and bool(report.random))

    def action_filter(self) -> None:
        self.only_wrong = not self.only_wrong

    def action_random(self) -> None:
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
    return CurveGallery if Curve in found else ExampleTable
