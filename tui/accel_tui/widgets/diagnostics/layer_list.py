"""The layers of a model with their shapes, parameters and FLOPs."""

from collections.abc import Iterator
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.strip import Strip

from accel_engine.run.diagnostics import Layer, LayerTable
from accel_engine.words import numbers
from accel_engine.words.numbers import percent
from accel_tui.formatting.text import fit, shorten
from accel_tui.widgets.text_page import TextPage, TextSpan

NAME_WIDTH = 60
"""Maximum width of a layer's name and class."""

_NUMBERS = 51  # width of the columns after the name, without the bar
_BAR = 40


class LayerList(TextPage):
    """A line per layer, nested models indented, and totals."""

    BINDING_GROUP_TITLE = "Layers"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "scroll_by(1)", id="layers.down", tooltip="Scroll down"),
        Binding("up", "scroll_by(-1)", id="layers.up", tooltip="Scroll up"),
        Binding("pagedown,space", "scroll_by(20)", id="layers.page-down", tooltip="20 layers down"),
        Binding("pageup", "scroll_by(-20)", id="layers.page-up", tooltip="20 layers up"),
        Binding("home", "scroll_by(-100000)", id="layers.home", tooltip="First layer"),
        Binding("end", "scroll_by(100000)", id="layers.end", tooltip="Last layer"),
    ]

    table: reactive[LayerTable | None] = reactive(None, repaint=False)
    """The layers."""

    first: reactive[int] = reactive(0, repaint=False)
    """The first visible layer."""

    def watch_table(self) -> None:
        """Show the table from the first visible layer."""
        self.rebuild()

    watch_first = watch_table

    def action_scroll_by(self, lines: int) -> None:
        """Scroll by lines."""
        if self.table:
            last = max(0, len(self.table.layers) - (self.size.height - 2))
            self.first = min(max(self.first + lines, 0), last)

    def on_mouse_scroll_down(self) -> None:
        """Scroll down."""
        self.action_scroll_by(3)

    def on_mouse_scroll_up(self) -> None:
        """Scroll up."""
        self.action_scroll_by(-3)

    def build_page(self, width: int, height: int) -> Iterator[Strip]:
        """Build the column heads, the layers, and the totals."""
        if self.table is None or height < 3:
            return
        table = self.table
        names = [_name(layer) for layer in table.layers]
        name_width = min(max([*map(len, names), 5]), NAME_WIDTH, max(width - _NUMBERS, 12))
        bar_width = min(_BAR, width - name_width - _NUMBERS)
        titles = f"{'OUTPUT SHAPE':>14} {'PARAMETERS':>12} {'TRAINABLE':>9} {'FLOPs':>6} {'SHARE':>5}"
        yield self.line((f"{fit('LAYER', name_width)} {titles}", "title"))
        rows = height - 2
        first = min(self.first, max(0, len(names) - rows))
        for layer, label in list(zip(table.layers, names, strict=True))[first : first + rows]:
            yield self.line(*self._layer(layer, label, table.flops, name_width, bar_width))
        for _ in range(rows - len(names)):
            yield Strip.blank(0)
        yield self.line(*_sums(table), (_range(first, rows, len(names)), "faint"))

    def _layer(
        self, layer: Layer, label: str, total_flops: float | None, name_width: int, bar_width: int
    ) -> Iterator[TextSpan]:
        yield fit(label, name_width), "head" if layer.inner else ""
        shape = "?" if layer.shape is None else "x".join("?" if side is None else str(side) for side in layer.shape)
        yield f" {shorten(shape or 'scalar', 14):>14}", "faint"
        yield f" {layer.parameters:>12,}" if layer.parameters else " " * 13, ""
        trained, style = _trained(layer)
        yield f" {trained:>9}", style
        flops = numbers.compact(layer.flops) if layer.flops else ""
        yield f" {flops:>6}", ""
        share = layer.flops / total_flops if total_flops and layer.flops else 0.0
        yield f" {percent(share) if share else '':>5}", ""
        if bar_width > 3 and share and not layer.inner:
            yield " " + "▇" * round(share * (bar_width - 1)), "head"


def _name(layer: Layer) -> str:
    return f"{'  ' * layer.depth}{layer.name}  {layer.kind}"


def _trained(layer: Layer) -> TextSpan:
    if not layer.parameters:
        return "", ""
    if layer.trainable == layer.parameters:
        return "yes", "right"
    return (percent(layer.trainable / layer.parameters, 0), "") if layer.trainable else ("no", "wrong")


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


def _range(first: int, rows: int, count: int) -> str:
    return f"   {first + 1} to {min(first + rows, count)} of {count}" if rows < count else ""
