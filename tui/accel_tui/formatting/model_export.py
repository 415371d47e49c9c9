"""The tables of an export of a trained model, for the command and the screen."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from accel_engine.formats import format_named
from accel_engine.requests.export_model import Export, ExportTarget, MeasuredModel
from accel_engine.words import numbers
from accel_engine.words.numbers import percent
from accel_tui.formatting.bars import bar
from accel_tui.formatting.table_columns import DrawnColumn, ResultTable

FASTEST, FASTEST_EXPORT = "fastest", "fastest export"
"""The marks of the fastest model that was written: of all, or of what was written, if the trained model is faster."""

WRITTEN, NOT_WRITTEN = "written", "not written"
"""The marks of models that were compared with the trained one."""

SIGNATURE = ("SIGNATURE", "NAME", "TYPE")
"""The header of the table of inputs and outputs."""


def export_headline(found: Export) -> str:
    """A line on the exported model, and the examples on which it was verified."""
    examples = f"{found.examples:,} " if found.examples else ""
    return f"{found.name} at step {found.step:,}, verified on {examples}{found.split} examples, {found.device.text}"


def signature_rows(model: MeasuredModel) -> Iterator[tuple[str, str, str]]:
    """A row for each input and output."""
    for kind, tensors in (("input", model.inputs), ("output", model.outputs)):
        for name, text in tensors.items():
            yield kind, name, text


def model_header(metrics: Sequence[str]) -> tuple[str, ...]:
    """The titles of the columns of a table of models."""
    return ("MODEL", *(name.upper() for name in metrics), "DIFFERENCE", "SIZE", "LATENCY", "")


def model_row(
    model: MeasuredModel,
    metrics: Sequence[str],
    *,
    is_original: bool,
    mark: str = "",
    models: Sequence[MeasuredModel] = (),
) -> tuple[str, ...]:
    """The measurements of a model, one text per column.

    Args:
        model: The model.
        metrics: The names of the metrics that have a column.
        models: All models of the table, whose sizes and latencies have one form; the model alone by default.
        is_original: Whether it is the trained model, which others are compared with.
        mark: The text of the last column.
    """
    values = (model.metrics.get(name) for name in metrics)
    difference = "" if is_original else _number(model.largest)
    models = models or (model,)
    size = numbers.in_one_form(numbers.size, [each.size for each in models])
    time = numbers.in_one_form(numbers.latency, [each.latency or 0.0 for each in models])
    latency = "" if model.latency is None else time(model.latency)
    return (model.name, *map(_number, values), difference, size(model.size), latency, mark)


def model_rows(found: Export, metrics: Sequence[str]) -> list[tuple[str, ...]]:
    """A row for the trained model, and for each that was written; the fastest of these is marked."""
    trained, fastest = found.original.latency, found.fastest
    is_faster = trained is None or (fastest is not None and fastest.latency is not None and fastest.latency < trained)
    mark = FASTEST if is_faster else FASTEST_EXPORT
    every = (found.original, *found.written)
    return [
        model_row(each, metrics, is_original=each is found.original, mark=mark if each is fastest else "", models=every)
        for each in every
    ]


def problems(found: Export) -> Iterator[str]:
    """Why formats were not written."""
    for each in found.exported:
        if each.problem:
            yield f"{each.name}: {each.problem}"


def _written_to(found: Export) -> tuple[str, list[str]]:
    """The folder that all written models are in, as a title, and their paths in it."""
    folder = os.path.commonpath([os.path.dirname(path) for path in found.paths]) if found.paths else ""
    return f"Written to {folder}", [os.path.relpath(path, folder) for path in found.paths]


def _export_tables(found: Export) -> Iterator[ResultTable]:
    """Yield the models and why others were not written, the inputs and outputs, and the files."""
    metrics = tuple(found.original.metrics)
    reasons = list(problems(found))
    note = "\n".join(["Not written", *reasons]) if reasons else ""
    yield ResultTable(model_header(metrics), model_rows(found, metrics), note=note)
    yield ResultTable(SIGNATURE, list(signature_rows((found.written or (found.original,))[0])))
    title, paths = _written_to(found)
    if paths:
        yield ResultTable(("FILE",), [(path,) for path in paths], title)


def drawn_export_tables(found: Export, targets: Sequence[ExportTarget]) -> list[ResultTable]:
    """The same tables, with bars for size, latency and how much of its tolerance each model uses.

    Args:
        found: The export.
        targets: What was asked for.
    """
    models, *others = _export_tables(found)
    measured = (found.original, *found.written)
    limits = {target.name: target for target in targets}
    drawn = (
        DrawnColumn(
            "DIFFERENCE",
            [_tolerance_cell(each, limits.get(each.name)) for each in measured],
            "TOLERANCE USED",
            "success",
            18,
        ),
        DrawnColumn("SIZE", _bars([each.size for each in measured]), "", "note", 14),
        DrawnColumn("LATENCY", _bars([each.latency for each in measured]), "", "primary", 40),
    )
    titles = ("Inputs and outputs", others[1].title if others[1:] else "")
    return [
        replace(models, title="Models", drawn=drawn),
        *(replace(each, title=title) for each, title in zip(others, titles, strict=False)),
    ]


def _tolerance_cell(model: MeasuredModel, target: ExportTarget | None) -> Callable[[int], str]:
    """How much of what its format allows a model differs from the trained one."""
    if target is None or not target.tolerance:
        return lambda _width: ""
    by_mean = format_named(target.format).precision(target.quantize).by_mean
    differs = model.mean if by_mean else model.largest
    share = math.inf if differs is None else differs / target.tolerance
    return lambda width: f"{percent(share, 0):>4} {bar(share, width - 5)}"


def _bars(values: Sequence[float | None]) -> list[Callable[[int], str]]:
    """Bars of values, the longest for the largest."""
    largest = max((each for each in values if each is not None), default=0.0) or 1.0
    return [partial(bar, (each or 0.0) / largest) for each in values]


def _number(value: float | None) -> str:
    return "none" if value is None else numbers.metric(value) if value else "0"


@dataclass(frozen=True, slots=True)
class ExportProgress:
    """How far an export is."""

    names: tuple[str, ...]
    """The targets."""
    writing: str = ""
    """The target that is written, or was written last, for the comparison; empty before the first."""
    examples: tuple[int, int] | None = None
    """The number of examples done, and of all (0 if unknown), of what is going on."""
    models: tuple[MeasuredModel, ...] = ()
    """The models that were compared, the trained one first."""

    @property
    def phase(self) -> str:
        """The present phase, in a few words."""
        if self.models:
            left = self.names[len(self.models) - 1 :]
            return f"measuring the latency of {left[0]}" if left else "done"
        examples = f": {numbers.examples_done(*self.examples)}" if self.examples else ""
        if not self.writing:
            return f"reading the data{examples}" if examples else "starting an engine"
        return f"comparing with the trained model{examples}" if examples else f"writing {self.writing}"

    def rows(self, metrics: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """A row for each model, with what is known of it."""
        blanks = [""] * (len(metrics) + 3)
        for model in self.models:
            if model.problem:
                yield (model.name, *blanks, NOT_WRITTEN)
            else:
                is_original = model is self.models[0]
                yield model_row(model, metrics, is_original=is_original, mark="" if is_original else WRITTEN)
        for place, name in enumerate(self.names[max(0, len(self.models) - 1) :]):
            yield (name, *blanks, self._state(place, name))

    def _state(self, place: int, name: str) -> str:
        if self.models:
            return "measuring" if not place else "waiting"
        if self.examples and self.writing:
            return "comparing"
        if name == self.writing:
            return "writing"
        written = self.names.index(self.writing) if self.writing else 0
        return "to be compared" if self.names.index(name) < written else "waiting"
