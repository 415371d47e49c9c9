"""The layers of a model with their shapes, parameters and FLOPs."""

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual.content import Content
from textual.widgets import Static

from accel_engine.run.diagnostics import Layer, LayerTable
from accel_engine.words import numbers
from accel_engine.words.numbers import percent
from accel_tui.formatting.bars import bar
from accel_tui.formatting.table_columns import Column, SortKey, column_width
from accel_tui.formatting.text import fit
from accel_tui.widgets.diagnostics.table_page import TablePage
from accel_tui.widgets.styled_text import TextSpan
from accel_tui.widgets.table import Table

NAME_WIDTH = 60
"""Maximum width of a layer's name and class."""

_LEAST_NAME = 12
_BAR = 20
_STYLES = {"": "", "faint": "$text-muted", "wrong": "$text-error"}


@dataclass(frozen=True, slots=True)
class LayerRow:
    """A layer in its model."""

    number: int
    """Its place."""
    layer: Layer
    share: float
    """Share of all FLOPs, 0 to 1; 0 if unknown."""

    @property
    def name(self) -> str:
        """Its name, indented in nested models, and its class where the name, as Keras gives it, does not tell it."""
        name, kind = self.layer.name, self.layer.kind
        tells = re.sub(r"_\d+$|_", "", name) == kind.lower()
        return f"{'  ' * self.layer.depth}{name}{'' if tells else f'  {kind}'}"

    @property
    def shape(self) -> str:
        """Its output shape."""
        shape = self.layer.shape
        return "?" if shape is None else "x".join("?" if side is None else str(side) for side in shape) or "scalar"

    @property
    def trained(self) -> tuple[str, str]:
        """Which share of its weights is trained, and in which colour that is shown."""
        parameters, trainable = self.layer.parameters, self.layer.trainable
        if not parameters or trainable == parameters:
            return ("yes", "success") if parameters else ("", "")
        return (percent(trainable / parameters, 0), "") if trainable else ("no", "error")


class LayersTable(Table[LayerRow]):
    """The layers, in the order of the model unless a column is sorted by."""

    BINDING_GROUP_TITLE = "Layers"
    opens = False

    def key_of(self, row: LayerRow) -> Hashable:
        return row.number


class LayerList(TablePage):
    """A line per layer, nested models indented, and totals above."""

    def make_table(self) -> LayersTable:
        return LayersTable()

    def show_report(self) -> None:
        """Show the layers of a :class:`LayerTable`."""
        layers, flops = (self.report.layers, self.report.flops) if self.report else ((), None)
        rows = [
            LayerRow(number, layer, layer.flops / flops if flops and layer.flops else 0.0)
            for number, layer in enumerate(layers)
        ]
        self.query_one(LayersTable).show_rows(rows, _columns(rows))
        spans = _sums(self.report) if self.report else ()
        spans = [*spans, *(_stages(self.report) if self.report and self.report.stages else ())]
        self.query_one(Static).update(Content.assemble(*((text, _STYLES[style]) for text, style in spans)))


def _columns(rows: Sequence[LayerRow]) -> list[Column[LayerRow]]:
    longest = column_width("layer ", (row.name for row in rows), NAME_WIDTH)
    return [
        Column(
            "layer",
            min(longest, _LEAST_NAME),
            lambda row, _: row.name,
            lambda row: (float(row.number), ""),
            colour=lambda row: "primary" if row.layer.inner else "",
            widest=longest,
        ),
        Column(
            "output shape",
            column_width("output shape", (row.shape for row in rows), 14),
            lambda row, _: row.shape,
            lambda row: (0.0, row.shape),
            right=True,
            colour=lambda _: "note",
        ),
        Column(
            "parameters",
            column_width("parameters", (f"{row.layer.parameters:,}" for row in rows), 13),
            lambda row, _: f"{row.layer.parameters:,}" if row.layer.parameters else "",
            lambda row: _positive(row.layer.parameters),
            right=True,
            descending=True,
        ),
        Column(
            "trainable",
            9,
            lambda row, _: row.trained[0],
            lambda row: _positive(row.layer.trainable),
            right=True,
            descending=True,
            colour=lambda row: row.trained[1],
        ),
        Column(
            "FLOPs",
            6,
            lambda row, _: numbers.compact(row.layer.flops) if row.layer.flops else "",
            lambda row: _positive(row.layer.flops),
            right=True,
            descending=True,
        ),
        Column("share", 5, lambda row, _: percent(row.share) if row.share else "", right=True),
        Column(
            "",
            _BAR,
            lambda _, __: "",
            colour=lambda _: "primary",
            drop_priority=1,
            widest=2 * _BAR,
            draw=lambda row, width: bar(row.share, width) if not row.layer.inner else "",
        ),
    ]


def _positive(value: float | None) -> SortKey | None:
    return (float(value), "") if value else None


def _stages(table: LayerTable) -> Iterator[TextSpan]:
    """A line for each stage of a pipeline, in columns, and last how long the devices wait."""
    lines = [
        (
            f"{stage.device}  ",
            f"{stage.first} to {stage.last}  ",
            f"{percent(stage.work)} of time  ",
            f"{numbers.compact(stage.parameters)} parameters  ",
            f"{numbers.size(stage.memory)}  ",
            f"sends {numbers.size(stage.sent)}" if stage.sent else "",
        )
        for stage in table.stages
    ]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        texts = [fit(text, width) for text, width in zip(line, widths, strict=True)]
        yield "\n" + "".join(texts[:2]), ""
        yield "".join(texts[2:]).rstrip(), "faint"
    divided = f"{table.micro_batches} micro-batches" if table.micro_batches > 1 else "the batch undivided"
    yield f"\nEstimated. With {divided}, equal stages wait for {percent(table.bubble)} of a step.", "faint"


def _sums(table: LayerTable) -> list[TextSpan]:
    """Totals of all layers, and the share of a step outside of them."""
    top = [layer for layer in table.layers if not layer.depth]
    weights, trained = sum(layer.parameters for layer in top), sum(layer.trainable for layer in top)
    pieces: list[TextSpan] = [(f"{numbers.counted(weights, 'parameter')}, {trained:,} trainable", "")]
    if table.flops is None:
        return [*pieces, (f"; FLOPs not counted: {table.reason}", "faint")]
    pieces.append((f"; {numbers.flops(table.flops)} per step", ""))
    if table.rest:
        pieces.append((f", {percent(table.rest / table.flops)} outside layers", "wrong"))
    return [*pieces, (", gradients included", "faint")]
