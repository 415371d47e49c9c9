"""``accel-tui find learning-rate``: measures, and prints what was found."""

import json
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
from accel_engine.launch.trial_process import TrialCancelledError
from accel_engine.plan import Plan
from accel_tui.cli.finding import INTERRUPTED, PLOT_ROWS, Status, interruptible, number, plot_width, readable
from accel_tui.cli.output import print_to_stderr, write, write_json
from accel_tui.cli.table import table
from accel_tui.formatting.finders import RATE_HEADER, rate_notes, rate_rows
from accel_tui.settings.user_settings import load

Find = Callable[[Callable[[RampProgress], object], Callable[[], bool]], FoundRate]


def find_of_plan(plan: Plan, options: RampOptions, *, as_json: bool) -> int:
    """Find the learning rate of a plan, and print it with the command that trains with it.

    Returns:
        The exit status.
    """

    def find(on_progress: Callable[[RampProgress], object], should_stop: Callable[[], bool]) -> FoundRate:
        return find_learning_rate(plan, on_progress, options=options, should_stop=should_stop)

    def command(rate: float) -> str:
        return load().command(plan.replace(learning_rate=rate))

    return _find(find, options, command, as_json=as_json)


def find_of_run(directory: Path, options: RampOptions, *, as_json: bool) -> int:
    """Find a learning rate to continue a run with, and print it with the command that sets it.

    Returns:
        The exit status.
    """

    def find(on_progress: Callable[[RampProgress], object], should_stop: Callable[[], bool]) -> FoundRate:
        return find_rate_of_run(directory, on_progress, options=options, should_stop=should_stop)

    from accel_engine.launch.paused_run import read_run

    def command(rate: float) -> str:
        live = read_run(directory).status.live
        words = f"set {directory.name} learning-rate" if live else f"continue {directory.name} --learning-rate"
        return f"accel-tui {words} {rate:g}"

    return _find(find, options, command, as_json=as_json)


def _find(find: Find, options: RampOptions, command: Callable[[float], str], *, as_json: bool) -> int:
    shown = _JsonRamps() if as_json else _Ramps(Status(sys.stderr))
    with interruptible() as interrupted:
        try:
            found = find(shown.show, interrupted.is_set)
        except TrialCancelledError:
            return _interrupted(shown)
        finally:
            shown.clear()
    rate = found.learning_rate
    if as_json:
        write_json(_result(found, command))
    else:
        for line in _page(found, options, command):
            write(line)
    if rate is None and not as_json:
        print_to_stderr(found.suggestions.problem)
    return 0 if rate is not None else 1


def _interrupted(shown: "_Ramps | _JsonRamps") -> int:
    shown.clear()
    return INTERRUPTED


class _Ramps:
    """Shows the present ramp in a line."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def show(self, progress: RampProgress) -> None:
        """Show how far the ramps are."""
        if not progress.ramps:
            self._status.show(progress.detail)
            return
        ramp = progress.ramps[-1]
        parts = [f"{progress.share:4.0%}  ramp {progress.seed} of {progress.seeds}"]
        if ramp.rates:
            parts.append(f"learning rate {ramp.rates[-1]:.2g}  loss {ramp.losses[-1]:.4g}")
        self._status.show("  ".join(filter(None, (*parts, progress.detail))))

    def clear(self) -> None:
        """Remove the line."""
        self._status.clear()


class _JsonRamps:
    """Prints the steps of ramps as JSON lines."""

    def __init__(self) -> None:
        self._printed: dict[int, int] = {}

    def show(self, progress: RampProgress) -> None:
        """Print the steps that are new."""
        for ramp in progress.ramps[-1:]:
            first = self._printed.get(ramp.seed, 0)
            if len(ramp.rates) > first:
                steps = {"rates": ramp.rates[first:], "losses": ramp.losses[first:]}
                sys.stdout.write(json.dumps({"event": "ramp_steps", "seed": ramp.seed, "first": first, **steps}) + "\n")
                sys.stdout.flush()
                self._printed[ramp.seed] = len(ramp.rates)

    def clear(self) -> None:
        """Do nothing."""


def _result(found: FoundRate, command: Callable[[float], str]) -> dict[str, Any]:
    best, rate = found.best, found.learning_rate
    return {
        "event": "learning_rate_found",
        "learning_rate": rate,
        "optimizer_rate": None if best is None else best.rate,
        "suggestions": [
            {
                "rule": str(each.rule),
                "learning_rate": found.planned(each.rate),
                "low": found.planned(each.low),
                "high": found.planned(each.high),
                "loss": number(found.compared.get(each.rule)),
            }
            for each in found.suggestions.found
        ],
        "seeds": [ramp.seed for ramp in found.ramps],
        "step": found.step,
        "rate_before": number(found.rate),
        "problem": found.suggestions.problem,
        "notes": list(rate_notes(found)),
        "command": None if rate is None else command(rate),
    }


def _page(found: FoundRate, options: RampOptions, command: Callable[[float], str]) -> Iterator[str]:
    from accel_tui.widgets.chart.plot import draw_plot  # its imports are slow
    from accel_tui.widgets.finders.finder_plots import rate_plot

    ends = options.lowest, options.highest
    plot = rate_plot(found.ramps, found.suggestions, ends, PLOT_ROWS)
    frame = draw_plot(plot, plot_width(), PLOT_ROWS)
    for row in range(PLOT_ROWS):
        yield readable(frame.text(row).rstrip())
    rate = found.learning_rate
    if rate is not None:
        yield ""
        yield table(RATE_HEADER, rate_rows(found))
    yield ""
    for note in rate_notes(found):
        yield f"{note[:1].upper()}{note[1:]}."
    if rate is not None:
        yield f"\n{command(rate)}"
