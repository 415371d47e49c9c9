"""Samples as text: sentences with their labels, tokens with those predicted, and whatever has no picture."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.reactive import reactive
from textual.strip import Strip

from accel_engine.run.diagnostics import Example
from accel_engine.run.diagnostics.views import Parts, Row, Text, Tokens, View
from accel_engine.words import numbers
from accel_tui.appearance import colour_scales
from accel_tui.formatting.text import fit
from accel_tui.widgets.diagnostics.examples import (
    ListedExamples,
    are_characters,
    captions,
    is_correct,
    is_next_token,
    joined,
)
from accel_tui.widgets.diagnostics.scroll_page import ScrollPage
from accel_tui.widgets.styled_text import TextSpan, wrapped_spans

_INDENT = 4
_COLOURED = 0.02  # share of the highest loss from which a token is coloured
_LABELS = 24  # maximum width of a token with its label


class ExampleList(ScrollPage):
    """A paragraph per sample. Of a language model, the tokens are coloured by their loss."""

    BINDING_GROUP_TITLE = "Samples"

    examples: reactive[ListedExamples | None] = reactive(None, repaint=False)
    """The samples."""

    _name_width = _LABELS

    def watch_examples(self, before: ListedExamples | None, examples: ListedExamples | None) -> None:
        """Show other samples."""
        same = before and examples and (before.order, before.only_wrong) == (examples.order, examples.only_wrong)
        self.show_again(from_start=not same)

    def headings(self, width: int, visible: range, lines: int) -> Sequence[Strip]:
        """Which samples are shown."""
        if self.examples is None:
            return ()
        shown = len(self.examples.shown)
        is_text = any(map(is_next_token, self.examples.shown))
        below = ("coloured by loss   " if self.has_colours else "underlined: wrong   ") if is_text else ""
        below += f"lines {visible.start + 1} to {visible.stop}" if len(visible) < lines else ""
        reason = self.examples.report.reason
        summary = self.line(*self.examples.summary(0, shown, width, below))
        return [summary, self.line((reason, "faint"))] if reason else [summary]

    def lines(self, width: int) -> Iterator[Strip]:
        """The paragraphs."""
        if self.examples is None:
            return
        texts = [line for each in self.examples.shown for line in captions(self.examples.report, each)]
        self._name_width = min(max((len(line.text) for line in texts), default=0), _LABELS)
        for example in self.examples.shown:
            yield from self._paragraph(example, width)

    def _paragraph(self, example: Example, width: int) -> Iterator[Strip]:
        assert self.examples  # noqa: S101 (otherwise there are no lines)
        correct = is_correct(example)
        style = "head" if correct is None else "right" if correct else "wrong"
        mark = "" if correct is None else "✓ " if correct else "✗ "
        head: list[TextSpan] = [(f"{mark}example {example.row:<8,}", style)]
        body = list(self._body(example, width - _INDENT))
        true, predicted = captions(self.examples.report, example)
        if predicted.style != "faint" and not isinstance(example.output, Tokens):
            names = min(max(8, (width - 50) // 2), self._name_width)
            head += [
                (f" true {fit(true.text, names)} predicted ", ""),
                (fit(predicted.text, names) + f"{predicted.suffix:>5}", style),
            ]
        if not np.isnan(example.loss):
            head.append((f"  loss {numbers.metric(example.loss)}", "faint"))
        yield self.line(*head)
        for line in body:
            yield Strip.join([Strip([Segment(" " * _INDENT, self.rich_style)]), line])
        if body:
            yield Strip.blank(0)

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
        """A view as text; nothing for one that is none."""
        text, more = "", ""
        match view:
            case Text(text, length):
                more = f" … {length:,} characters" if length > len(text) else ""
            case Tokens(tokens, length):
                text, more = joined(tokens), f" … {length:,} tokens" if length > len(tokens) else ""
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
            needed = min(max(len(word), len(said), len(label) if label != said else 0), _LABELS)
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
def _heat_style(share: float, background: colour_scales.Colour, *, dark: bool) -> Style:
    colour = colour_scales.scale_colour(share**2, colour_scales.INCORRECT, background, dark=dark)
    text = colour_scales.contrasting_text_colour(colour)
    return Style(color=RichColor.from_rgb(*text), bgcolor=RichColor.from_rgb(*colour))
