"""``accel-tui find learning-rate``: measures, and prints what was found."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from accel_engine.finders.learning_rate_finder import (
    FoundRate,
    RampOptions,
    RampProgress,
    find_learning_rate,
    find_rate_of_run,
)
from accel_engine.plan import Plan
from accel_engine.process.run_change import read_run
from accel_tui.cli.finding import PLOT_ROWS, StatusLine, measure_or_explain, plot_width
from accel_tui.cli.output import print_to_stderr, readable, table, write, write_json
from accel_tui.cli.signals import INTERRUPTED
from accel_tui.formatting.finders import ramp_progress, rate_header, rate_notes, rate_rows
from accel_tui.settings.user_settings import load

Find = Callable[[Callable[[RampProgress], object], Callable[[], bool]], FoundRate]

_UNFOUND = {"event": "learning_rate_found", "learning_rate": None}
"""The last line of JSON where nothing is found, without its ``problem``."""


def find_of_plan(plan: Plan, options: RampOptions, *, as_json: bool) -> int:
    """Find the learning rate of a plan, and print it with the command that trains with it.

    Returns:
        The exit status.
    """

    def find(on_progress: Callable[[RampProgress], object], should_stop: Callable[[], bool]) -> FoundRate:
        return find_learning_rate(plan, on_progress, options=options, should_stop=should_stop)

    def command(found: FoundRate) -> str:
        return load().command(plan.replace(learning_rate=found.learning_rate))

    return _find(find, options, command, as_json=as_json)


def find_of_run(directory: Path, options: RampOptions, *, as_json: bool) -> int:
    """Find a learning rate to continue a run with, and print it with the command that sets it.

    Returns:
        The exit status.
    """

    def find(on_progress: Callable[[RampProgress], object], should_stop: Callable[[], bool]) -> FoundRate:
        return find_rate_of_run(directory, on_progress, options=options, should_stop=should_stop)

    def command(found: FoundRate) -> str:
        if read_run(directory).status.live and not found.has_schedule:
            return f"accel-tui set {directory.name} --learning-rate {found.optimizer_rate:g}"
        return f"accel-tui continue {directory.name} --learning-rate {found.learning_rate:g}"

    return _find(find, options, command, as_json=as_json)


def _find(find: Find, options: RampOptions, command: Callable[[FoundRate], str], *, as_json: bool) -> int:
    status, printer, begun = StatusLine(sys.stderr), _JsonRamps(), set[int]()

    def show(progress: RampProgress) -> None:
        if as_json:
            printer.print(progress)
        else:
            if progress.seed not in begun:
                begun.add(progress.seed)
                status.begin(f"ramp {progress.seed} of {progress.seeds}" if progress.seed else progress.detail)
            status.show(ramp_progress(progress))

    found = measure_or_explain(
        lambda should_stop: find(show, should_stop), status, (lambda: _UNFOUND) if as_json else None
    )
    if found is None:
        return INTERRUPTED
    if as_json:
        write_json(_result(found, command))
    else:
        for line in _page(found, options, command):
            write(line)
        if found.learning_rate is None:
            print_to_stderr(found.suggestions.problem)
    return 0 if found.learning_rate is not None else 1


class _JsonRamps:
    """Prints the steps of ramps as JSON lines."""

    def __init__(self) -> None:
        self._printed: dict[int, int] = {}

    def print(self, progress: RampProgress) -> None:
        """Print the steps that are new."""
        for ramp in progress.ramps[-1:]:
            first = self._printed.get(ramp.seed, 0)
            if len(ramp.rates) > first:
                steps = {"rates": ramp.rates[first:], "losses": ramp.losses[first:]}
                write_json({"event": "ramp_steps", "seed": ramp.seed, "first": first, **steps})
                sys.stdout.flush()
                self._printed[ramp.seed] = len(ramp.rates)


def _result(found: FoundRate, command: Callable[[FoundRate], str]) -> dict[str, Any]:
    return {
        **_UNFOUND,
        "learning_rate": found.learning_rate,
        "optimizer_rate": found.optimizer_rate,
        "suggestions": [
            {
                "rule": str(each.rule),
                "learning_rate": found.planned(each.rate),
                "low": found.planned(each.low),
                "high": found.planned(each.high),
                "loss": found.compared.get(each.rule),
            }
            for each in found.suggestions.found
        ],
        "seeds": [ramp.seed for ramp in found.ramps],
        "step": found.step,
        "rate_before": found.rate,
        "problem": found.suggestions.problem or None,
        "notes": list(rate_notes(found)),
        "command": None if found.best is None else command(found),
    }


def _page(found: FoundRate, options: RampOptions, command: Callable[[FoundRate], str]) -> Iterator[str]:
    from accel_tui.widgets.chart.plot import draw_plot  # its imports are slow
    from accel_tui.widgets.jobs.finder_plots import rate_plot

    ends = options.lowest, options.highest
    plot = rate_plot(found.ramps, found.suggestions, ends, PLOT_ROWS)
    frame = draw_plot(plot, plot_width(), PLOT_ROWS)
    for row in range(PLOT_ROWS):
        yield readable(frame.text(row).rstrip())
    if found.best is not None:
        yield ""
        yield table(rate_header(found), rate_rows(found))
    yield ""
    for note in rate_notes(found):
        yield f"{note[:1].upper()}{note[1:]}."
    if found.best is not None:
        yield f"\n{command(found)}"
