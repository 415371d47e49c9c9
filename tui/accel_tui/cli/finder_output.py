"""The output of ``accel-tui find``: progress, plots in characters, tables, lines of JSON, the command that trains."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from accel_engine.errors import AccelError
from accel_engine.finders.batch_effects import recorded_noise_scale
from accel_engine.finders.batch_size_finder import find_batch_size
from accel_engine.finders.learning_rate_finder import (
    FoundRate,
    RampOptions,
    RampProgress,
    find_learning_rate,
    find_rate_of_run,
)
from accel_engine.finders.throughput import FoundSize, MeasuredSize, SizeOptions, SizeProgress
from accel_engine.measure.trial_process import TrialCancelledError
from accel_engine.plan import Plan
from accel_engine.run import read_run
from accel_engine.words import numbers
from accel_tui.cli.live import StatusLine
from accel_tui.cli.output import print_to_stderr, readable, table, terminal_columns, write, write_json
from accel_tui.cli.signals import INTERRUPTED, interruptible
from accel_tui.formatting import finders
from accel_tui.formatting.advice import capitalized, continue_command
from accel_tui.settings.user_settings import load_settings

if TYPE_CHECKING:
    from accel_tui.widgets.chart.plot import Plot

MAX_COLUMNS = 100
"""The maximum width of a plot."""

RATE_PLOT_ROWS, SIZE_PLOT_ROWS = 14, 10

_NO_RATE = {"event": "learning_rate_found", "learning_rate": None}
"""The last line of JSON where no learning rate is found, without its ``problem``."""

_NO_SIZE = {"event": "batch_size_found", "batch_size": None}
"""The last line of JSON where no batch size is found, without its ``problem`` and what was measured."""

Found = TypeVar("Found")


def find_of_plan(plan: Plan, options: RampOptions, *, as_json: bool) -> int:
    """Find the learning rate of a plan, and print it with the command that trains with it.

    Returns:
        The exit status.
    """

    def command(found: FoundRate) -> str:
        return load_settings().command(plan.replace(learning_rate=found.learning_rate))

    return _find_rate(partial(find_learning_rate, plan), options, command, as_json=as_json)


def find_of_run(directory: Path, options: RampOptions, *, as_json: bool) -> int:
    """Find a learning rate to continue a run with, and print it with the command that sets it.

    Returns:
        The exit status.
    """

    def command(found: FoundRate) -> str:
        info = read_run(directory)
        if info.status.live and not found.has_schedule:
            return f"accel-tui set {directory.name} --learning-rate {found.optimizer_rate:g}"
        stop = f"accel-tui stop {directory.name} && " if info.status.live else ""
        return f"{stop}{continue_command(info)} --learning-rate {found.learning_rate:g}"

    return _find_rate(partial(find_rate_of_run, directory), options, command, as_json=as_json)


def _find_rate(
    find: Callable[..., FoundRate], options: RampOptions, command: Callable[[FoundRate], str], *, as_json: bool
) -> int:
    status, printed, begun = StatusLine(sys.stderr), dict[int, int](), set[int]()

    def show(progress: RampProgress) -> None:
        if as_json:
            _print_new_steps(progress, printed)
            return
        if progress.seed not in begun:
            begun.add(progress.seed)
            status.begin(f"ramp {progress.seed} of {progress.seeds}" if progress.seed else progress.detail)
        status.show(finders.ramp_progress(progress))

    found = _measure(partial(find, show, options=options), status, (lambda: _NO_RATE) if as_json else None)
    if found is None:
        return INTERRUPTED
    if as_json:
        write_json(_rate_values(found, command))
    else:
        write("\n".join(_rate_page(found, options, command)))
        if found.learning_rate is None:
            print_to_stderr(found.suggestions.problem)
    return int(found.learning_rate is None)


def find_size(plan: Plan, options: SizeOptions, run: Path | None, *, as_json: bool) -> int:
    """Find the batch size of a plan, and print it with the command that trains with it.

    Args:
        plan: The plan, checked.
        options: Which sizes are measured.
        run: A run of this plan, whose gradients may tell which batch pays; ``None`` for none.
        as_json: Whether to print JSON lines.

    Returns:
        The exit status.
    """
    status, begun, measured = StatusLine(sys.stderr), set[tuple[int, bool]](), dict[int, MeasuredSize]()

    def show(progress: SizeProgress) -> None:
        for size in progress.measured:
            if size.batch_size not in measured:
                status.clear()
                _print_size(size, as_json=as_json)
            measured[size.batch_size] = size
        if progress.size and (progress.size, progress.confirms) not in begun:
            begun.add((progress.size, progress.confirms))
            _begin_size(progress, status, as_json=as_json)
        if not as_json:
            status.show(finders.size_progress(progress))

    scale = recorded_noise_scale(run) if run else None
    find = partial(find_batch_size, plan, show, options=options, noise_scale=scale)
    unfound = (lambda: {**_NO_SIZE, "measured": _rising(measured.values())}) if as_json else None
    found = _measure(find, status, unfound)
    if found is None:
        if not as_json:
            _show_interrupted(measured.values())
        return INTERRUPTED
    if as_json:
        write_json(_size_values(found))
    else:
        write("\n".join(_size_page(found)))
        if found.batch_size is None:
            print_to_stderr(finders.size_problem(found))
    return int(found.batch_size is None)


def _measure(
    find: Callable[..., Found], status: StatusLine, unfound: Callable[[], Mapping[str, Any]] | None
) -> Found | None:
    """Measure until Ctrl-C, and print why nothing was found as the last line of JSON.

    Args:
        find: Measures; asks its argument ``should_stop`` whether to end.
        status: The line that is removed at the end.
        unfound: Makes that last line, without its ``problem``; ``None`` without JSON.

    Returns:
        The result; ``None`` after Ctrl-C.

    Raises:
        AccelError: Nothing can be measured.
    """
    with interruptible() as interrupted:
        try:
            return find(should_stop=interrupted.is_set)
        except AccelError as error:
            was_interrupted = isinstance(error, TrialCancelledError)
            if unfound is not None:
                write_json({**unfound(), "problem": "interrupted" if was_interrupted else str(error)})
            if was_interrupted:
                return None
            raise
        finally:
            status.clear()


def _print_new_steps(progress: RampProgress, printed: dict[int, int]) -> None:
    """Print the steps of the last ramp that are new; ``printed`` counts them by seed."""
    for ramp in progress.ramps[-1:]:
        first = printed.get(ramp.seed, 0)
        if len(ramp.rates) > first:
            steps = {"rates": ramp.rates[first:], "losses": ramp.losses[first:]}
            write_json({"event": "ramp_steps", "seed": ramp.seed, "first": first, **steps})
            sys.stdout.flush()
            printed[ramp.seed] = len(ramp.rates)


def _rate_values(found: FoundRate, command: Callable[[FoundRate], str]) -> dict[str, Any]:
    return {
        **_NO_RATE,
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
        "notes": list(finders.rate_notes(found)),
        "command": None if found.best is None else command(found),
    }


def _rate_page(found: FoundRate, options: RampOptions, command: Callable[[FoundRate], str]) -> Iterator[str]:
    from accel_tui.widgets.jobs.finder_plots import rate_plot  # its imports are slow

    ends = options.lowest, options.highest
    yield from _plot_lines(rate_plot(found.ramps, found.suggestions, ends, RATE_PLOT_ROWS), RATE_PLOT_ROWS)
    if found.best is not None:
        yield ""
        yield table(finders.rate_header(found), finders.rate_rows(found))
    yield ""
    yield from (f"{capitalized(note)}." for note in finders.rate_notes(found))
    if found.best is not None:
        yield f"\n{command(found)}"


def _plot_lines(plot: "Plot", rows: int) -> Iterator[str]:
    from accel_tui.widgets.chart.plot import draw_plot  # its imports are slow

    frame = draw_plot(plot, min(terminal_columns(), MAX_COLUMNS), rows)
    yield from (readable(frame.text(row).rstrip()) for row in range(rows))


def _begin_size(progress: SizeProgress, status: StatusLine, *, as_json: bool) -> None:
    if as_json:
        write_json({"event": "batch_size_started", "batch_size": progress.size, "confirms": progress.confirms})
        sys.stdout.flush()
    else:
        status.begin(progress.detail)


def _show_interrupted(measured: Iterable[MeasuredSize]) -> None:
    """Show what was measured before Ctrl-C, as a table."""
    if rows := finders.size_rows(_rising(measured)):
        write(f"\n{table(finders.SIZE_HEADER, rows)}")
    print_to_stderr("interrupted: no batch size was chosen")


def _rising(measured: Iterable[MeasuredSize]) -> list[MeasuredSize]:
    return sorted(measured, key=lambda each: each.batch_size)


def _print_size(size: MeasuredSize, *, as_json: bool) -> None:
    if as_json:
        write_json({"event": "batch_size_measured", **asdict(size)})
    elif size.problem:
        write(f"{size.batch_size:>7,}  {size.problem}")
    else:
        memory = "" if size.memory is None else f"  {numbers.size(size.memory)}"
        write(f"{size.batch_size:>7,}  {numbers.compact(size.throughput):>6} examples/s{memory}")
    sys.stdout.flush()


def _size_values(found: FoundSize) -> dict[str, Any]:
    chosen = found.chosen
    return {
        **_NO_SIZE,
        "batch_size": found.batch_size,
        "per_replica": found.confirmed.per_replica if found.confirmed else None,
        "replicas": found.replicas,
        "examples_per_second": found.confirmed.throughput if found.confirmed else None,
        "knee": chosen.knee.batch_size if chosen else None,
        "fastest": chosen.fastest.batch_size if chosen else None,
        "largest": chosen.largest.batch_size if chosen else None,
        "memory": found.memory,
        "stopped": found.stopped,
        "problem": finders.size_problem(found) or None,
        "measured": found.measured,
        "effects": found.effects,
        "command": _size_command(found),
    }


def _size_page(found: FoundSize) -> Iterator[str]:
    from accel_tui.widgets.jobs.finder_plots import throughput_plot  # its imports are slow

    if found.chosen is not None:
        yield ""
        yield from _plot_lines(throughput_plot(found.measured, found.chosen, SIZE_PLOT_ROWS), SIZE_PLOT_ROWS)
        yield ""
    yield table(finders.SIZE_HEADER, finders.size_rows(found.measured, found.chosen))
    yield ""
    yield from (f"{capitalized(note)}." for note in finders.size_notes(found))
    if command := _size_command(found):
        yield f"\n{command}"


def _size_command(found: FoundSize) -> str | None:
    """The command that trains with the batch size, and with the learning rate that goes with it if it is known."""
    if found.batch_size is None:
        return None
    plan, effects = found.plan.replace(batch_size=found.batch_size), found.effects
    if effects is not None and effects.learning_rate is not None and effects.factor != 1:
        plan = plan.replace(learning_rate=effects.learning_rate)
    return load_settings().command(plan)
