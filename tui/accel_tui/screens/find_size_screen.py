"""Find screen for the batch size: throughput and memory of rising sizes, live, with suggestions to take."""

from collections.abc import Callable, Sequence

from accel_engine.finders.batch_size_finder import find_batch_size
from accel_engine.finders.throughput import FoundSize, MeasuredSize, SizeOptions, SizeProgress
from accel_engine.plan import Plan
from accel_engine.plan.options import specs_of
from accel_engine.words import numbers
from accel_tui.formatting import finders
from accel_tui.screens.asking import CANCEL, Answer, QuestionScreen, ask_user, awaiting
from accel_tui.screens.finder_screen import FinderScreen
from accel_tui.widgets.jobs.finder_plots import FinderPlot, memory_plot, throughput_plot
from accel_tui.widgets.jobs.option_form import OptionForm

ALONE = Answer("alone", "Batch size only", "b")


class FindSizeScreen(FinderScreen):
    """Finds the batch size of a plan; returns it, and the learning rate that goes with it, or ``None`` to keep the old.

    Args:
        plan: The plan.
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__("Find batch size", SizeOptions())
        self._plan = plan
        self._measured: tuple[MeasuredSize, ...] = ()
        self._found: FoundSize | None = None

    def make_plots(self) -> Sequence[FinderPlot]:
        """Throughput and memory."""
        return FinderPlot(id="throughput"), FinderPlot(id="memory")

    @property
    def plan(self) -> Plan:
        """The plan that is measured."""
        return self._plan

    def make_form(self) -> OptionForm:
        """Which sizes are measured."""
        return OptionForm(SizeOptions, tuple(specs_of(SizeOptions)))

    def begin(self, prepared: SizeOptions) -> None:
        """Forget the sizes of before."""
        super().begin(prepared)
        self._measured, self._found = (), None
        self.draw()

    def find(
        self, options: SizeOptions, on_progress: Callable[[SizeProgress], object], should_stop: Callable[[], bool]
    ) -> FoundSize:
        """Measure rising sizes."""
        return find_batch_size(self._plan, on_progress, options=options, should_stop=should_stop)

    def take(self, part: SizeProgress) -> None:
        """Take the sizes so far."""
        self._measured = tuple(sorted(part.measured, key=lambda each: each.batch_size))
        self.progress.show(part.detail, part.seconds_left)

    def take_result(self, result: FoundSize) -> str:
        """Take what was found."""
        self._measured, self._found = result.measured, result
        confirmed = result.confirmed
        if confirmed is None:
            return finders.size_problem(result)
        return f"knee: batch size {confirmed.batch_size:,}, {numbers.compact(confirmed.throughput)} examples/s"

    @property
    def values(self) -> Sequence[float]:
        """The sizes that train."""
        return [float(each.batch_size) for each in self._measured if each.fits]

    @property
    def suggested(self) -> Sequence[float]:
        """The sizes that matter, the answer first."""
        chosen = self._found.chosen if self._found else None
        if chosen is None:
            return ()
        sizes = (chosen.knee, chosen.fastest, chosen.largest)
        return list(dict.fromkeys(float(each.batch_size) for each in sizes))

    @property
    def row_values(self) -> Sequence[float]:
        """All sizes that were tried."""
        return [float(each.batch_size) for each in self._measured]

    @awaiting
    async def use(self, value: float) -> None:
        """Ask about the learning rate that goes with the size, and go back with both."""
        size = round(value)
        effects = self._found.effects_of(size) if self._found else None
        if effects is None or effects.learning_rate is None or effects.factor == 1:
            self.dismiss((size, None))
            return
        rate = effects.learning_rate
        both = Answer("both", f"With learning rate {rate:g}", "l")
        detail = f"The plan's learning rate times {effects.rate_factor:.3g}, by the {effects.rule} rule."
        chosen = await ask_user(self, QuestionScreen(f"Batch size {size:,}", detail, (both, ALONE, CANCEL)))
        if chosen in (both.id, ALONE.id):
            self.dismiss((size, rate if chosen == both.id else None))

    def draw(self) -> None:
        """Show the sizes, and what the one at the cursor means; before there are any, how they are measured."""
        if not self._measured:
            self.show_found(finders.SIZE_HEADER, (), self._notes(None))
            return
        cursor = None if self.at is None else self.values[self.at]
        found, measured = self._found, self._measured
        chosen, memory = (found.chosen, found.memory) if found else (None, None)
        self.query_one("#throughput", FinderPlot).show(lambda rows: throughput_plot(measured, chosen, rows, cursor))
        self.query_one("#memory", FinderPlot).show(lambda rows: memory_plot(measured, memory, rows, cursor))
        self.show_found(finders.SIZE_HEADER, finders.size_rows(measured, chosen), self._notes(cursor))

    def _notes(self, cursor: float | None) -> list[str]:
        found = self._found
        if found is None:
            return list(finders.size_plan(self.options or SizeOptions()))
        if cursor is None or found.batch_size == cursor:
            return list(finders.size_notes(found))
        effects = found.effects_of(round(cursor))
        return [f"batch size {cursor:,.0f}: {note}" for note in finders.effect_notes(effects)] if effects else []
