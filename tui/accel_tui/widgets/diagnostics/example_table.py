"""Samples as rows of a table, and the current one as text where it has some: a sentence, or tokens with predictions."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from rich.cells import cell_len
from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.strip import Strip
from textual.widgets import Static

from accel_engine.run.diagnostics import Example
from accel_engine.run.diagnostics.views import Parts, Row, Text, Tokens, View
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.appearance import colours
from accel_tui.formatting.text import fit, shorten
from accel_tui.widgets.diagnostics.examples import (
    ListedExamples,
    are_characters,
    captions,
    is_correct,
    is_next_token,
    joined_tokens,
    leaves,
)
from accel_tui.widgets.diagnostics.scroll_page import ScrollPage
from accel_tui.widgets.styled_text import TextSpan, wrapped_spans
from accel_tui.widgets.table import Table
from accel_tui.widgets.text_table import TextRow, TextTable

_COLOURED = 0.02  # share of the highest loss from which a token is coloured
_LABELS = 24  # maximum width of a token with its label, and of a value in the table
_WIDEST = 80  # cells of a column: of the beginning of a text


class ExampleTable(Vertical):
    """A row per sample; below them the text of the current one, if the samples have texts."""

    DEFAULT_CSS = """
    ExampleTable {
        height: 1fr;
        & > Static { height: auto; color: $text; }
        &.-texts > TextTable { height: auto; max-height: 50%; }
        & > ExampleText { display: none; margin: 1 0 0 0; }
        &.-texts > ExampleText { display: block; }
    }
    """

    examples: reactive[ListedExamples | None] = reactive(None, repaint=False)
    """The samples."""

    def compose(self) -> ComposeResult:
        yield Static(markup=False)
        yield TextTable()
        yield ExampleText()

    def on_mount(self) -> None:
        """Show the samples that were set before."""
        self._show()

    def on_resize(self) -> None:
        self._summarize()

    def watch_examples(self) -> None:
        if self.is_mounted:
            self._show()

    def _summarize(self) -> None:
        if self.examples:
            spans = self.examples.summary(0, len(self.examples.shown), self.size.width)
            if reason := self.examples.report.reason:
                spans.append((f"\n{reason}", "faint"))
            styles = {"title": "bold", "faint": "$text-muted", "right": "$text-success"}
            self.query_one(Static).update(Content.assemble(*((text, styles[name]) for text, name in spans)))

    def _show(self) -> None:
        self._summarize()
        shown = self.examples.shown if self.examples else ()
        cells = [_cells(self.examples, each) for each in shown if self.examples]
        titles = list(dict.fromkeys(name for row in cells for name in row))
        rows = [
            TextRow(number, tuple(row.get(name, "") for name in titles), _colours(example, titles))
            for number, (example, row) in enumerate(zip(shown, cells, strict=True))
        ]
        self.set_class(any(map(has_hidden_text, shown)), "-texts")
        self.query_one(TextTable).show_texts(titles, rows, _WIDEST)

    @on(Table.Moved)
    def _show_text(self) -> None:
        current = self.query_one(TextTable).current
        shown = self.examples.shown if self.examples else ()
        self.query_one(ExampleText).example = shown[current.number] if current and current.number < len(shown) else None


def _colours(example: Example, titles: Sequence[str]) -> tuple[str, ...]:
    """The colours of the cells of an example: of its number and its prediction, whether that is right."""
    colour = {None: "", True: "success", False: "error"}[is_correct(example)]
    return tuple(colour if title == "example" or title.startswith("predicted") else "" for title in titles)


def _cells(examples: ListedExamples, example: Example) -> dict[str, str]:
    """The cells of a row by the title of their column."""
    mark = {None: "", True: "✓ ", False: "✗ "}[is_correct(example)]
    cells = {
        "example": f"{mark}{example.row:,}",
        "loss": "" if np.isnan(example.loss) else numbers.metric(example.loss),
    }
    true, predicted = captions(examples.report, example)
    if isinstance(example.target, Row) and isinstance(example.output, Row):
        names = example.target.names if len(example.target.names) > 1 else ("",)
        for name, *values in zip(names, example.target.values, example.output.values, strict=True):
            cells |= {
                f"{each} {name}".strip(): value for each, value in zip(("true", "predicted"), values, strict=True)
            }
    elif predicted.style != "faint" and not isinstance(example.output, Tokens):
        for name, caption in (("true", true), ("predicted", predicted)):
            cells[name] = shorten(caption.text, _LABELS - len(caption.suffix)) + caption.suffix
    for leaf in leaves(example.input):
        if isinstance(leaf, Row):
            pairs = zip(leaf.names, leaf.values, strict=True)
            cells |= {name if name not in cells else f"{name} ": shorten(value, _LABELS) for name, value in pairs}
    if text := _beginning(example.input):
        cells["text"] = text
    return cells


def has_hidden_text(example: Example) -> bool:
    """Whether an example is shown as text, too: its row cannot have all of it."""
    views = (example.input, example.target, example.output)
    return any(isinstance(leaf, Text | Tokens) for view in views for leaf in leaves(view))


def _beginning(view: View | None) -> str:
    """The first words of a text, in a line; empty if there is none."""
    texts = (
        each.text if isinstance(each, Text) else joined_tokens(each.tokens[:_WIDEST])
        for each in leaves(view)
        if isinstance(each, Text | Tokens)
    )
    return shorten(printable_line(next(texts, "")[: _WIDEST + 1]), _WIDEST)


class ExampleText(ScrollPage):
    """An example as text. Of a language model, the tokens are coloured by their loss."""

    BINDING_GROUP_TITLE = "Sample"

    example: reactive[Example | None] = reactive(None, repaint=False, always_update=True)
    """The example."""

    def watch_example(self, before: Example | None, example: Example | None) -> None:
        is_same = before and example and before.row == example.row
        self.show_again(from_start=not is_same)

    def headings(self, width: int, visible: range, lines: int) -> Sequence[Strip]:
        """Which example it is, and how tokens are marked."""
        if self.example is None:
            return ()
        below = ""
        if is_next_token(self.example):
            below = "   coloured by loss" if self.has_colours else "   underlined: wrong"
        if len(visible) < lines:
            below += f"   lines {visible.start + 1} to {visible.stop}"
        mark, style = {None: ("", ""), True: ("✓ ", "right"), False: ("✗ ", "wrong")}[is_correct(self.example)]
        return [self.line((mark, style), (f"example {self.example.row:,}", "title"), (below, "faint"))]

    def lines(self, width: int) -> Iterator[Strip]:
        if self.example is not None:
            yield from self._body(self.example, width)

    def _body(self, example: Example, width: int) -> Iterator[Strip]:
        words, true, predicted = example.input, example.target, example.output
        if isinstance(true, Tokens) and isinstance(predicted, Tokens):
            if is_next_token(example):
                yield from self._heat(true, predicted, width)
            elif isinstance(words, Tokens) and len(words.tokens) == len(true.tokens):
                yield from self._glosses(words, true, predicted, width)
            else:
                yield from self._view(words, width, "input")
                yield from self._compared(true, predicted, width)
            return
        yield from self._view(words, width)
        for name, view in (("true", true), ("predicted", predicted)):
            if isinstance(view, Text | Parts):
                yield from self._view(view, width, name)

    def _view(self, view: View | None, width: int, name: str = "") -> Iterator[Strip]:
        """A view as text; nothing for a view that is not text."""
        text, more = "", ""
        match view:
            case Text(text, length):
                more = f" … {length:,} characters" if length > len(text) else ""
            case Tokens(tokens, length):
                text, more = joined_tokens(tokens), f" … {length:,} tokens" if length > len(tokens) else ""
            case Row(names, values, columns):
                text = "  ".join(f"{key} {value}" for key, value in zip(names, values, strict=True))
                more = f" … {columns:,} columns" if columns > len(values) else ""
            case Parts(names, views):
                for part, each in zip(names, views, strict=True):
                    yield from self._view(each, width, f"{name} {part}".strip())
        if text:
            label = [(f"{name}: ", "faint")] if name else []
            for line in wrapped_spans([*label, (text, ""), (more, "faint")], width):
                yield self.line(*line)

    def _glosses(self, words: Tokens, true: Tokens, predicted: Tokens, width: int) -> Iterator[Strip]:
        """Each token above its predicted label, and the true one where that is wrong."""
        columns = []
        for word, label, said in zip(words.tokens, true.tokens, predicted.tokens, strict=False):
            needed = min(max(cell_len(word), cell_len(said), cell_len(label) if label != said else 0), _LABELS)
            columns.append((needed, word, label, said))
        start = 0
        while start < len(columns):
            end, used = start, 0
            while end < len(columns) and (end == start or used + columns[end][0] <= width):
                used += columns[end][0] + 1
                end += 1
            part = columns[start:end]
            yield self.line(
                *((fit(word, size) + " ", "wrong" if true != said else "") for size, word, true, said in part)
            )
            yield self.line(
                *((fit(said, size) + " ", "wrong" if true != said else "faint") for size, _, true, said in part)
            )
            if any(true != said for _, _, true, said in part):
                yield self.line(
                    *((fit(true if true != said else "", size) + " ", "right") for size, _, true, said in part)
                )
            start = end

    def _compared(self, true: Tokens, predicted: Tokens, width: int) -> Iterator[Strip]:
        """Two sequences, the tokens marked in which they differ."""
        space = "" if are_characters(true.tokens) else " "
        for name, tokens, others, style in (
            ("true", true.tokens, predicted.tokens, "right"),
            ("predicted", predicted.tokens, true.tokens, "wrong"),
        ):
            spans: list[TextSpan] = [(f"{name}: ", "faint")]
            for index, token in enumerate(tokens):
                same = index < len(others) and others[index] == token
                spans.append((token + space, "" if same else style))
            for line in wrapped_spans(spans, width, at_words=False):
                yield self.line(*line)

    def _heat(self, true: Tokens, predicted: Tokens, width: int) -> Iterator[Strip]:
        """The text, each token coloured by its loss; without colours, wrong ones underlined."""
        losses = np.zeros(0, np.float32) if predicted.losses is None else predicted.losses
        highest = float(np.nanmax(losses)) if np.isfinite(losses).any() else 0.0
        space = "" if are_characters(true.tokens) else " "
        has_colours, plain = self.has_colours, self.rich_style
        background, dark, underlined = self.background_rgb, self.is_dark, plain + Style(underline=True)
        spans: list[TextSpan] = []
        for index, token in enumerate(true.tokens):
            if has_colours:
                share = float(losses[index]) / highest if index < len(losses) and highest > 0 else 0.0
            else:
                share = float(predicted.tokens[index : index + 1] != (token,))
            coloured = share >= _COLOURED  # NaN where a token does not count
            spans.append((token + space, f"{share:.2f}" if coloured else ""))
        for line in wrapped_spans(spans, width, at_words=False):
            segments = []
            for text, share_text in line:
                style = underlined if share_text else plain
                if share_text and has_colours:
                    style = _heat_style(float(share_text), background, dark=dark)
                segments.append(Segment(text, style))
            yield Strip(segments)


@lru_cache(512)
def _heat_style(share: float, background: colours.Colour, *, dark: bool) -> Style:
    colour = colours.scale_colour(share**2, colours.INCORRECT, background, dark=dark)
    text = colours.contrasting_text_colour(colour)
    return Style(color=RichColor.from_rgb(*text), bgcolor=RichColor.from_rgb(*colour))
