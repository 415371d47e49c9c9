"""Builds the report of a model that predicts a class for each token, such as a language model."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.structure import Batch, flatten
from accel_engine.private_names.keras_names import mask_of
from accel_engine.run.diagnostics import SequenceReport
from accel_engine.run.diagnostics.reports import MAX_PIXEL_CLASSES
from accel_engine.run.diagnostics.views import View
from accel_engine.training.evaluation.reports.example_views import token_text, tokens_view
from accel_engine.training.evaluation.reports.measures import (
    broadcast,
    compared_classes,
    confusion,
    loss_values,
    no_totals,
    probabilities,
)
from accel_engine.training.evaluation.reports.output_report import SEED, Floats, ModelOutput, OutputReportBuilder, Shown
from accel_engine.training.evaluation.task_report import Predict

PADDING = frozenset({"", "[PAD]", "<pad>"})
"""Texts of a first token that is padding."""

PROMPT = 16
"""Tokens that generated text continues."""

_LOSS, _TOKENS, _CORRECT, _NATS = range(4)


class SequenceBuilder(OutputReportBuilder):
    """Measures each sequence: its loss, its tokens, how many are correct, and their cross-entropy.

    Args:
        output: The output, ``[batch, tokens, classes]``.
        writes_text: Whether the classes are the tokens of the inputs, so that the model can write text.
    """

    width = 4
    random = 1

    def __init__(self, output: ModelOutput, *, writes_text: bool) -> None:
        super().__init__(output)
        self._writes_text = writes_text
        self._names = output.views.vocabulary if writes_text else output.class_names
        self._classes = max(2, output.units)
        self._counts = not writes_text and self._classes <= MAX_PIXEL_CLASSES
        self.totals = self._classes**2 + 1 if self._counts else 0

    def measure(self, batch: Batch, target: Any, output: Any, mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """See :class:`OutputReportBuilder`."""
        classes, predicted, nats = compared_classes(output, target, logits=self.output.logits)
        counts = self._counted(classes, batch.weights, mask_of(output))
        counts = tf.cast(counts, tf.float32)
        tokens = tf.reduce_sum(counts, axis=1)
        losses = loss_values(self.output.loss, target, output)
        losses = nats if losses is None or losses.shape.rank != 2 else tf.cast(losses, tf.float32)

        def total(values: tf.Tensor) -> tf.Tensor:
            return tf.reduce_sum(tf.where(counts > 0, values, 0.0), axis=1)  # a product would spread NaN

        correct = total(tf.cast(classes == predicted, tf.float32))
        values = tf.stack([total(losses) / tf.maximum(tokens, 1.0), tokens, correct, total(nats)], axis=1)
        if not self._counts:
            return values, no_totals()
        return values, confusion(classes, predicted, broadcast(mask, classes) * counts, self._classes)

    def build(
        self, values: npt.NDArray[np.float32], totals: Floats, shown: Shown, predict: Predict | None
    ) -> SequenceReport:
        """See :class:`OutputReportBuilder`."""
        _, tokens, correct, nats = values.sum(axis=0, dtype=np.float64)
        counts = np.rint(totals).astype(np.int64)[:-1].reshape(self._classes, -1) if self._counts else None
        prompt, generated = self._written(shown, predict)
        report = shown.examples(*self._views(shown))
        report["random"] = ()
        with np.errstate(over="ignore"):
            perplexity = float(np.exp(nats / tokens)) if tokens else np.nan
        large = not self._writes_text and not self._counts
        return SequenceReport(
            output=self.output.name,
            examples=len(values),
            names=self._names if counts is not None else (),
            tokens=int(tokens),
            accuracy=float(correct / tokens) if tokens else np.nan,
            perplexity=perplexity,
            counts=counts,
            prompt=prompt,
            generated=generated,
            reason=f"no confusion matrix: more than {MAX_PIXEL_CLASSES} classes" if large else "",
            **report,
        )

    def _counted(self, classes: tf.Tensor, weights: Any, mask: tf.Tensor | None) -> tf.Tensor:
        """Which tokens count, bool: those with a class, with a weight, and not masked."""
        counts = (classes >= 0) & (classes < self._classes)
        ignored = getattr(self.output.loss, "ignore_class", None)
        if ignored is not None:
            counts &= classes != ignored
        if weights is not None and len(flatten(weights)) == 1 and len(flatten(weights)[0].shape) == 2:
            counts &= tf.cast(flatten(weights)[0], tf.float32) > 0
        return counts if mask is None else counts & tf.cast(mask, tf.bool)

    def _views(self, shown: Shown) -> tuple[list[View | None], list[View | None]]:
        """Views of targets and outputs."""
        if shown.target is None or not len(shown.rows):
            return [], []
        with tf.device("CPU:0"):
            output = tf.constant(shown.output)
            classes, predicted, losses = compared_classes(output, tf.constant(shown.target), logits=self.output.logits)
            counts = self._counted(classes, shown.batch.weights, None).numpy()
        inputs = flatten(shown.batch.inputs)
        vocabulary = self.output.views.vocabulary
        if vocabulary and vocabulary[0] in PADDING and inputs[0].shape == counts.shape:
            counts &= inputs[0] != 0
        targets: list[View | None] = []
        outputs: list[View | None] = []
        for true, said, loss, count in zip(classes.numpy(), predicted.numpy(), losses.numpy(), counts, strict=True):
            length = int(np.flatnonzero(count)[-1]) + 1 if count.any() else 0
            targets.append(tokens_view(true, self._names, length=length))
            outputs.append(tokens_view(said, self._names, np.where(count, loss, np.nan), length))
        return targets, outputs

    def _written(self, shown: Shown, predict: Predict | None) -> tuple[str, str]:
        """A prompt of the validation data, and how the model continues it."""
        if not self._writes_text or predict is None or len(shown.rows) == shown.worst:
            return "", ""
        vocabulary, example = self.output.views.vocabulary, flatten(shown.batch.inputs)[0][shown.worst]
        prompt = example[: min(PROMPT, len(example))].tolist()

        def next_chances(tokens: npt.NDArray[Any], last: int) -> npt.NDArray[np.float64]:
            outputs = self.output.of(predict(tokens[np.newaxis].astype(example.dtype)))
            with tf.device("CPU:0"):
                found = probabilities(tf.convert_to_tensor(outputs[0, last]), logits=self.output.logits, binary=False)
            # Where there are more units than tokens, as often for whole tiles, the others mean nothing.
            return found.numpy().astype(np.float64)[: len(vocabulary)]

        written = generate(next_chances, prompt, len(example), any_length=self.output.shape[1] is None)
        # Words need spaces between them, characters and parts of words do not.
        space = "" if any(token.isspace() for token in vocabulary) else " "
        texts = [space.join(token_text(token, vocabulary) for token in part) for part in (prompt, written)]
        return texts[0], texts[1]


LENGTH = 300
"""Tokens that are written at most."""

SECONDS = 2.0
"""Seconds after which no token is added."""

TEMPERATURE = 0.8


NextChances: TypeAlias = Callable[[npt.NDArray[Any], int], npt.NDArray[np.float64]]
"""Returns the probability of each next token after the token at an index, for some tokens."""


def generate(next_chances: NextChances, prompt: Sequence[int], window: int, *, any_length: bool = False) -> list[int]:
    """Continue a prompt; the same model gives the same tokens, as many as the time allows. See :func:`continued`."""
    tokens = continued(next_chances, prompt, window, any_length=any_length)
    ends, written = time.monotonic() + SECONDS, list[int]()
    while len(written) < LENGTH and time.monotonic() < ends:
        if (token := next(tokens, None)) is None:
            break
        written.append(token)
    return written


def continued(
    next_chances: NextChances,
    prompt: Sequence[int],
    window: int,
    *,
    any_length: bool = False,
    temperature: float = TEMPERATURE,
    seed: int = SEED,
) -> Iterator[int]:
    """Yield the tokens after a prompt, each drawn by its probability, until a probability is not finite.

    Args:
        next_chances: The model.
        prompt: The first tokens.
        window: Most tokens that the model is given, the last ones.
        any_length: Whether the model takes fewer; otherwise zeros follow the tokens, which a causal model ignores.
        temperature: The divisor of the logarithms of probabilities; 0 always takes the most probable token.
        seed: Seed of the draws.
    """
    generator, tokens = np.random.default_rng(seed), list(prompt)
    while True:
        given = np.array(tokens[-window:])
        last = len(given) - 1
        if not any_length:
            given = np.pad(given, (0, window - len(given)))
        found = next_chances(given, last)
        if not np.isfinite(found).all():
            return
        if temperature == 0:
            tokens.append(int(found.argmax()))
        else:
            with np.errstate(divide="ignore"):
                scaled = np.log(found) / temperature
            chances = np.exp(scaled - scaled.max())
            if not np.isfinite(chances).all():
                return
            tokens.append(int(generator.choice(len(chances), p=chances / chances.sum())))
        yield tokens[-1]
