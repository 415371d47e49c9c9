"""``accel-tui find batch-size``: measures, and prints what was found."""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from accel_engine.finders.batch_effects import recorded_noise_scale
from accel_engine.finders.batch_size_finder import find_batch_size
from accel_engine.finders.throughput import FoundSize, MeasuredSize, SizeOptions, SizeProgress
from accel_engine.plan import Plan
from accel_engine.words import numbers
from accel_tui.cli.finding import StatusLine, measure_or_explain, plot_width
from accel_tui.cli.output import print_to_stderr, readable, table, write, write_json
from accel_tui.cli.signals import INTERRUPTED
from accel_tui.formatting.finders import SIZE_HEADER, size_notes, size_problem, size_progress, size_row, size_rows
from accel_tui.settings.user_settings import load

PLOT_ROWS = 10

_UNFOUND = {"event": "batch_size_found", "batch_size": None}
"""The last line of JSON where nothing is found, without its ``problem`` and what was measured."""


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
    scale = recorded_noise_scale(run) if run else None

    def show(progress: SizeProgress) -> None:
        for size in progress.measured:
            if size.batch_size not in measured:
                status.clear()
                _print(size, as_json=as_json)
            measured[size.batch_size] = size
        if progress.size and (progress.size, progress.confirms) not in begun:
            begun.add((progress.size, progress.confirms))
            _begin(progress, status, as_json=as_json)
        if not as_json:
            status.show(size_progress(progress))

    def find(should_stop: Callable[[], bool]) -> FoundSize:
        return find_batch_size(plan, show, options=options, should_stop=should_stop, noise_scale=scale)

    found = measure_or_explain(find, status, (lambda: _unfound(measured.values())) if as_json else None)
    if found is None:
        if not as_json:
            _show_interrupted(measured.values())
        return INTERRUPTED
    if as_json:
        write_json(_result(found))
    else:
        for line in _page(found):
            write(line)
        if found.batch_size is None:
            print_to_stderr(size_problem(found))
    return 0 if found.batch_size is not None else 1


def _begin(progress: SizeProgress, status: StatusLine, *, as_json: bool) -> None:
    """Note that a size begins."""
    if as_json:
        write_json({"event": "batch_size_started", "batch_size": progress.size, "confirms": progress.confirms})
        sys.stdout.flush()
    else:
        status.begin(progress.detail)


def _unfound(measured: Iterable[MeasuredSize]) -> dict[str, Any]:
    """The last line of JSON where nothing is found, without its ``problem``."""
    return {**_UNFOUND, "measured": _rising(measured)}


def _show_interrupted(measured: Iterable[MeasuredSize]) -> None:
    """Show what was measured before Ctrl-C, as a table."""
    if rows := [size_row(each) for each in _rising(measured)]:
        write(f"\n{table(SIZE_HEADER, rows)}")
    print_to_stderr("interrupted: no batch size was chosen")


def _rising(measured: Iterable[MeasuredSize]) -> list[MeasuredSize]:
    return sorted(measured, key=lambda each: each.batch_size)


def _print(size: MeasuredSize, *, as_json: bool) -> None:
    if as_json:
        write_json({"event": "batch_size_measured", **asdict(size)})
    else:
        write(_line(size))
    sys.stdout.flush()


def _line(size: MeasuredSize) -> str:
    if size.problem:
        return f"{size.batch_size:>7,}  {size.problem}"
    memory = "" if size.memory is None else f"  {numbers.size(size.memory)}"
    return f"{size.batch_size:>7,}  {numbers.compact(size.throughput):>6} examples/s{memory}"


def _result(found: FoundSize) -> dict[str, Any]:
    chosen, effects, size = found.chosen, found.effects, found.batch_size
    return {
        **_UNFOUND,
        "batch_size": size,
        "per_replica": found.confirmed.per_replica if found.confirmed else None,
        "replicas": found.replicas,
        "examples_per_second": found.confirmed.throughput if found.confirmed else None,
        "knee": chosen.knee.batch_size if chosen else None,
        "fastest": chosen.fastest.batch_size if chosen else None,
        "largest": chosen.largest.batch_size if chosen else None,
        "memory": found.memory,
        "stopped": found.stopped,
        "problem": size_problem(found) or None,
        "measured": found.measured,
        "effects": effects,
        "command": _command(found),
    }


def _page(found: FoundSize) -> Iterator[str]:
    from accel_tui.widgets.chart.plot import draw_plot  # its imports are slow
    from accel_tui.widgets.jobs.finder_plots import throughput_plot

    if found.chosen is not None:
        frame = draw_plot(throughput_plot(found.measured, found.chosen, PLOT_ROWS), plot_width(), PLOT_ROWS)
        yield ""
        for row in range(PLOT_ROWS):
            yield readable(frame.text(row).rstrip())
        yield ""
    yield table(SIZE_HEADER, size_rows(found))
    yield ""
    for note in size_notes(found):
        yield f"{note[:1].upper()}{note[1:]}."
    if command := _command(found):
        yield f"\n{command}"


def _command(found: FoundSize) -> str | None:
    """The command that trains with the batch size, and with the learning rate that goes with it if it is known."""
    if found.batch_size is None:
        return None
    plan, effects = found.plan.replace(batch_size=found.batch_size), found.effects
    if effects is not None and effects.learning_rate is not None and effects.factor != 1:
        plan = plan.replace(learning_rate=effects.learning_rate)
    return load().command(plan)
