"""Find screen for the learning rate: the loss while the rate rises, live, with suggestions to take."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from accel_engine.finders.learning_rate_finder import (
    FoundRate,
    RampOptions,
    RampProgress,
    find_learning_rate,
    find_rate_of_run,
)
from accel_engine.finders.rate_curve import Ramp
from accel_engine.plan import Plan
from accel_engine.plan.options import specs_of
from accel_engine.words import numbers
from accel_tui.formatting.finders import ramp_progress, rate_header, rate_notes, rate_rows
from accel_tui.screens.finder_screen import FinderScreen
from accel_tui.widgets.jobs.finder_plots import SMOOTHED_MEAN, FinderPlot, rate_plot
from accel_tui.widgets.jobs.option_form import OptionForm


class FindRateScreen(FinderScreen):
    """Finds the learning rate of a plan, or of a run that trains; returns the plan's, or the optimizer's of the run.

    Args:
        source: The plan, or the directory of the run.
    """

    def __init__(self, source: Plan | Path) -> None:
        super().__init__("Find learning rate", RampOptions())
        self._source = source
        self._ramps: tuple[Ramp, ...] = ()
        self._found: FoundRate | None = None

    def make_plots(self) -> Sequence[FinderPlot]:
        return (FinderPlot(),)

    @property
    def plan(self) -> Plan | None:
        """The plan that is measured; ``None`` for a run's."""
        return self._source if isinstance(self._source, Plan) else None

    def make_form(self) -> OptionForm:
        """Which ramps are measured."""
        return OptionForm(RampOptions, tuple(specs_of(RampOptions)))

    def begin(self, prepared: RampOptions) -> None:
        """Forget the ramps of before."""
        super().begin(prepared)
        self._ramps, self._found = (), None

    def find(
        self, options: RampOptions, on_progress: Callable[[RampProgress], object], should_stop: Callable[[], bool]
    ) -> FoundRate:
        """Let the rate rise, for several seeds."""
        if isinstance(self._source, Plan):
            return find_learning_rate(self._source, on_progress, options=options, should_stop=should_stop)
        return find_rate_of_run(self._source, on_progress, options=options, should_stop=should_stop)

    def take(self, part: RampProgress) -> None:
        """Take the ramps so far."""
        self._ramps = part.ramps
        self.progress.show(ramp_progress(part).strip())

    def take_result(self, result: FoundRate) -> str:
        """Take what was found."""
        self._ramps, self._found = result.ramps, result
        best = result.best
        return f"{best.rule}: {self._written(best.rate)}" if best else result.suggestions.problem

    @property
    def values(self) -> Sequence[float]:
        """The rates of the longest ramp."""
        return max((ramp.rates for ramp in self._ramps), key=len, default=())

    @property
    def suggested(self) -> Sequence[float]:
        """The suggested rates, the best first."""
        if self._found is None:
            return ()
        found, best = self._found.suggestions.found, self._found.best
        return [each.rate for each in sorted(found, key=lambda each: each is not best)]

    @property
    def row_values(self) -> Sequence[float]:
        """The rates of the table's rows, which are the suggested ones."""
        return self.suggested

    def use(self, value: float) -> None:
        """Go back with the rate."""
        self.dismiss(self._own(value))

    def _own(self, rate: float) -> float:
        """The rate of the plan, or of the optimizer of a run."""
        if self._found is not None and isinstance(self._source, Plan):
            return self._found.planned(rate)
        return float(f"{rate:.3g}")

    def _written(self, rate: float) -> str:
        return numbers.learning_rate(self._own(rate))

    def draw(self) -> None:
        """Show the ramps, what they suggest, and the value at the cursor."""
        cursor = None if self.at is None else self.chosen(self.values[self.at])
        suggestions = self._found.suggestions if self._found else None
        ends, note, ramps = (self.options.lowest, self.options.highest), self._note(cursor), self._ramps
        self.query_one(FinderPlot).show(lambda rows: rate_plot(ramps, suggestions, ends, rows, cursor, note))
        if self._found is not None:
            self.show_found(rate_header(self._found), rate_rows(self._found), list(rate_notes(self._found)))

    def _note(self, cursor: float | None) -> str:
        """The rate at the cursor and its loss in the ramps: not the one of the table, of a training with the rate."""
        if cursor is None:
            return ""
        curve = self._found.suggestions.curve if self._found else None
        if curve is None or not len(curve.rates) or cursor > curve.rates[-1]:
            return self._written(cursor)
        loss = float(np.interp(np.log(cursor), np.log(curve.rates), curve.losses))
        return f"{SMOOTHED_MEAN} {numbers.metric(loss)} at {self._written(cursor)}"
