"""The examples that a page of samples shows, and what is written about each."""

from collections.abc import Sequence
from dataclasses import dataclass

from accel_engine.run.diagnostics import (
    ClassificationReport,
    Example,
    MultiLabelReport,
    OutputReport,
    SamplePrediction,
    SequenceReport,
)
from accel_engine.run.diagnostics.views import Labels, Parts, Row, Tokens, View
from accel_engine.words import numbers
from accel_engine.words.numbers import percent
from accel_tui.widgets.styled_text import TextSpan

WORST, RANDOM = "highest loss first", "random"
"""Orders of examples, in words."""

_CHARACTERS = 1.5  # mean length up to which tokens are characters


@dataclass(frozen=True, slots=True)
class Caption:
    """A line about an example."""

    text: str
    """The part that is shortened where it does not fit."""
    suffix: str = ""
    """A text after it, which is not shortened."""
    style: str = ""
    """``right``, ``wrong``, ``faint`` or empty."""
    mark: str = ""
    """A text before it, in the style of the example."""


@dataclass(frozen=True, slots=True, eq=False)
class ListedExamples:
    """Examples of a report."""

    report: OutputReport
    step: int = 0
    """The step of the validation."""
    order: str = WORST
    """How they are chosen: :data:`WORST` or :data:`RANDOM`."""
    only_wrong: bool = False
    """Whether only errors are shown."""

    @property
    def shown(self) -> tuple[Example, ...]:
        return tuple(each for each in self._all if not (self.only_wrong and is_correct(each)))

    @property
    def _all(self) -> tuple[Example, ...]:
        return self.report.random if self.order == RANDOM else self.report.worst

    def summary(self, first: int, last: int, width: int, below: str = "") -> list[TextSpan]:
        """Which examples are visible.

        Args:
            first: Index of the first visible one.
            last: Index of the one after the last.
            width: In cells.
            below: What is written about each, where there is room.
        """
        if not last:
            if not self._all:
                return [("No examples were stored.", "faint")]
            return [("No errors.", "right"), (f" & shows all samples, {self.order}.", "faint")]
        what = f"only errors, {self.order}" if self.only_wrong else self.order
        text = f"{first + 1} to {last} of {len(self.shown)}, {what}"
        judged = [each for each in self._all if is_correct(each) is not None]
        errors = f" ({numbers.counted(sum(not is_correct(each) for each in judged), 'error')})" if judged else ""
        after = f"{errors}, after step {self.step:,}"
        below = f"   {below}" if below else ""
        return [(text, "title"), (after + below if len(text + after + below) <= width else after, "faint")]


def is_correct(example: Example) -> bool | None:
    """Whether a prediction is right; ``None`` where it is only more or less so."""
    if isinstance(example, SamplePrediction):
        return example.is_correct
    match example.target, example.output:
        case Labels(true), Labels(predicted):
            return set(true) == set(predicted)
        case Tokens(true), Tokens(predicted):
            return None if is_next_token(example) else true == predicted
    return None


def is_next_token(example: Example) -> bool:
    """Whether the target of each token is the next one, as in a language model."""
    words, true = example.input, example.target
    if not (isinstance(words, Tokens) and isinstance(true, Tokens) and len(true.tokens) > 1):
        return False
    return words.tokens[1:] == true.tokens[: len(words.tokens) - 1]


def captions(report: OutputReport, example: Example) -> tuple[Caption, Caption]:
    """Two lines about an example: what is true, and what the model predicts."""
    correct = is_correct(example)
    style = "" if correct is None else "right" if correct else "wrong"
    mark = "" if correct is None else "✓ " if correct else "✗ "
    if isinstance(example, SamplePrediction) and isinstance(report, ClassificationReport):
        confidence = f" {percent(example.confidence)}"
        return (
            Caption(_name(report.names, example.label), mark=mark),
            Caption(_name(report.names, example.predicted), confidence, style),
        )
    if isinstance(report, MultiLabelReport | SequenceReport) or isinstance(example.target, Row):
        true, predicted = (view_text(report, view) for view in (example.target, example.output))
        if true or predicted:
            return Caption(true or "none", mark=mark or "true "), Caption(predicted or "none", style=style)
    return Caption(f"example {example.row:,}", mark=mark), Caption(
        f"loss {numbers.metric(example.loss)}", style="faint"
    )


def view_text(report: OutputReport, view: View | None) -> str:
    """A target or an output in one line; empty if it is a picture or a curve."""
    match view:
        case Row(names, values):
            named = len(values) > 1
            return ", ".join(f"{name} {value}" if named else value for name, value in zip(names, values, strict=True))
        case Labels(labels, scores) if isinstance(report, MultiLabelReport):
            texts = [_name(report.names, label) for label in labels]
            shares = [f" {percent(score)}" for score in scores] or [""] * len(texts)
            return ", ".join(text + share for text, share in zip(texts, shares, strict=True))
        case Tokens(tokens):
            return joined_tokens(tokens)
    return ""


def leaves(view: View | None) -> tuple[View, ...]:
    """The parts of a view, or the view itself."""
    if isinstance(view, Parts):
        return tuple(leaf for part in view.views for leaf in leaves(part))
    return () if view is None else (view,)


def _name(names: tuple[str, ...], index: int | None) -> str:
    if index is None:
        return "no class"
    return names[index] if 0 <= index < len(names) else str(index)


def are_characters(tokens: Sequence[str]) -> bool:
    """Whether tokens are characters, which are joined without blanks, rather than words."""
    return sum(map(len, tokens)) <= _CHARACTERS * len(tokens)


def joined_tokens(tokens: Sequence[str]) -> str:
    """The text of some tokens."""
    return ("" if are_characters(tokens) else " ").join(tokens)
