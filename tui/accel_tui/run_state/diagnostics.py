"""Reads a run's diagnostics for the screen: in a thread, with all text made printable."""

from bisect import bisect_right
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from accel_engine.errors import RunError
from accel_engine.run import RunReader
from accel_engine.run.diagnostics import Diagnostics, Example, OutputReport, SequenceReport, modification_times, read
from accel_engine.run.diagnostics.views import Tokens, View
from accel_engine.run.directory.run_paths import latest_checkpoint
from accel_engine.run.media import MediaItem, MediaSeries
from accel_engine.text import printable, printable_fields

NEWLINE = "↵"
"""Sign of a token that ends a line."""

Shown = TypeVar("Shown", bound=Example)


@dataclass(frozen=True, slots=True)
class LoggedMedia:
    """The images, texts and histograms that a run has logged."""

    directory: Path
    """The run's directory."""
    series: tuple[MediaSeries, ...]
    """The images, texts and histograms by name; at least one."""


@dataclass(frozen=True, slots=True)
class DiagnosticsReading:
    """The diagnostics of a run, and what can be done for more."""

    live: bool = False
    """Whether it has a live engine that can validate."""
    has_engine: bool = True
    """Whether an engine trains it, and not a script or another tool."""
    has_checkpoint: bool = False
    """Whether it has a checkpoint to validate after its end."""
    stamp: tuple[float, ...] | None = None
    """Modification times of the files of its diagnostics; ``None`` before they are read."""
    diagnostics: Diagnostics | None = None
    """Its diagnostics; ``None`` before they are read."""
    media: LoggedMedia | None = None
    """The images, texts and histograms that were logged; ``None`` if there are none."""
    problem: str = ""
    """Why it cannot be read, or what its engine waits for; empty for neither."""


def read_diagnostics(directory: Path, before: DiagnosticsReading) -> DiagnosticsReading:
    """Read a run's diagnostics if they have changed since ``before``."""
    try:
        with closing(RunReader(directory)) as reader:
            info = reader.info()
            series = tuple(reader.media_list())
        media = LoggedMedia(directory, series) if series else None
        if media == before.media:
            media = before.media
        stamp, diagnostics = modification_times(directory), before.diagnostics
        if stamp != before.stamp:
            diagnostics = printable_diagnostics(read(directory))
        live = info.status.live and info.has_engine
        problem = info.waiting.waiting if info.waiting else ""
        has_checkpoint = latest_checkpoint(directory) > 0
        return DiagnosticsReading(live, info.has_engine, has_checkpoint, stamp, diagnostics, media, problem)
    except RunError as error:
        return replace(before, live=False, has_checkpoint=False, problem=str(error))


def printable_diagnostics(diagnostics: Diagnostics) -> Diagnostics:
    """Make all text printable, each in one line, but keep the lines of generated text."""
    validation = diagnostics.validation
    if validation is None:
        return printable_fields(diagnostics)
    outputs = tuple(map(_with_signs, validation.outputs))
    cleaned = printable_fields(replace(diagnostics, validation=replace(validation, outputs=outputs)))
    assert cleaned.validation  # noqa: S101 (as above)
    outputs = tuple(map(_with_lines, cleaned.validation.outputs, validation.outputs))
    return replace(cleaned, validation=replace(cleaned.validation, outputs=outputs))


def _with_lines(report: OutputReport, stored: OutputReport) -> OutputReport:
    if isinstance(report, SequenceReport) and isinstance(stored, SequenceReport):
        return replace(report, prompt=printable(stored.prompt), generated=printable(stored.generated))
    return report


def _with_signs(report: OutputReport) -> OutputReport:
    """Show tokens that end a line as a sign; they would become blanks."""
    if not isinstance(report, SequenceReport):
        return report
    worst, random = tuple(map(_signed, report.worst)), tuple(map(_signed, report.random))
    return replace(report, worst=worst, random=random)


def _signed(example: Shown) -> Shown:
    return replace(
        example,
        input=_signed_view(example.input),
        target=_signed_view(example.target),
        output=_signed_view(example.output),
    )


def _signed_view(view: View | None) -> View | None:
    if isinstance(view, Tokens):
        return replace(view, tokens=tuple(token.replace("\n", NEWLINE) for token in view.tokens))
    return view


@dataclass(frozen=True, slots=True)
class ChosenItem:
    """An item of a series."""

    series: MediaSeries
    """The series."""
    steps: tuple[int, ...] = ()
    """All of its steps; empty if it has just been deleted."""
    index: int = 0
    """Index of the item's step in :attr:`steps`."""
    item: MediaItem | None = None
    """The item; ``None`` if it cannot be read."""
    problem: str = ""
    """Why it cannot be read."""


def read_item(directory: Path, series: MediaSeries, step: int | None) -> ChosenItem:
    """Read the item of a step, or the last one before it, or the first one; the newest one if ``step`` is ``None``."""
    steps: tuple[int, ...] = ()
    index = 0
    try:
        with closing(RunReader(directory)) as reader:
            steps = tuple(reader.media_steps(series))
            if not steps:
                return ChosenItem(series)
            index = len(steps) - 1 if step is None else max(bisect_right(steps, step) - 1, 0)
            found = reader.media(series, steps[index])
    except RunError as error:
        return ChosenItem(series, steps, index, problem=str(error))
    return ChosenItem(series, steps, index, found and found[1])
