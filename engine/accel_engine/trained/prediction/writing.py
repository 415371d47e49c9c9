"""Lets a run's language model continue a prompt."""

import codecs
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.structure import ArraySpec, flatten
from accel_engine.data.texts.characters import BYTES, UNKNOWN
from accel_engine.errors import DataError, ModelError
from accel_engine.requests.protocol.request import Send, tells, unheard
from accel_engine.requests.write_text import WritingRequest, WrittenPart, WrittenText
from accel_engine.text import suggestion
from accel_engine.trained.open_trained import TrainedModel, open_trained
from accel_engine.training.core.task import probabilities_of
from accel_engine.training.evaluation.reports.sequence import continued

_UNKNOWN = (UNKNOWN, "[UNK]", "<unk>", "<UNK>")
"""Tokens that stand for those that are not in a vocabulary."""


def continue_text(request: WritingRequest, send: Send = unheard) -> WrittenText:
    """Continue a prompt with the model of a run.

    Args:
        request: The run and the prompt.
        send: Takes each part of the text.

    Raises:
        AccelError: The model cannot be restored, or writes no text.
    """
    options = request.options
    model = open_trained(request.directory, data=None, checkpoint=options.checkpoint, doing=tells(send))
    tells(send)("writing")
    window, any_length, dtype = _check(model)
    vocabulary = model.form.vocabulary
    prompt = encoded(options.prompt, vocabulary)
    form = model.output_forms[0]

    @tf.function(reduce_retracing=True)  # type: ignore[untyped-decorator]
    def compute(tokens: tf.Tensor, last: tf.Tensor) -> tf.Tensor:
        output = flatten(model.outputs_of(tokens))[0]
        return probabilities_of(output[0, last], form.task)

    def next_chances(tokens: npt.NDArray[Any], last: int) -> npt.NDArray[np.float64]:
        found = compute(tf.constant(tokens[np.newaxis], dtype), tf.constant(last))
        chances: npt.NDArray[np.float64] = found.numpy().astype(np.float64)[: len(vocabulary)]
        return chances

    tokens = continued(
        next_chances, prompt, window, any_length=any_length, temperature=options.temperature, seed=options.seed
    )
    written, count = [], [0]
    for text in decoded(_counted(islice(tokens, options.tokens), count), vocabulary):
        written.append(text)
        send(WrittenPart(text))
    notes = list(model.notes)
    if count[0] < options.tokens:
        notes.append(f"the model's outputs are not finite after {count[0]:,} tokens")
    return WrittenText(model.name, model.step, "".join(written), count[0], tuple(notes))


def encoded(text: str, vocabulary: Sequence[str]) -> list[int]:
    """The tokens of a text: bytes, characters, or words between spaces, whichever the vocabulary has.

    Raises:
        DataError: It has none, or the vocabulary lacks one and has no token for those.
    """
    if not text:
        raise DataError("the prompt is empty: the model continues at least one token")
    if tuple(vocabulary) == BYTES:
        return list(text.encode())
    parts = list(text) if _of_characters(vocabulary) else text.split()
    places = {token: place for place, token in enumerate(vocabulary)}
    unknown = next((places[token] for token in _UNKNOWN if token in places), None)
    tokens = []
    for part in parts:
        place = places.get(part, unknown)
        if place is None:
            hint = "" if len(part) == 1 else f"; {suggestion(part, vocabulary)}"
            raise DataError(f"{part!r} of the prompt is not in the vocabulary of the run{hint}")
        tokens.append(place)
    if not tokens:
        raise DataError("the prompt has no words")
    return tokens


def decoded(tokens: Iterable[int], vocabulary: Sequence[str]) -> Iterator[str]:
    """The text of each token, as soon as it is complete: a character may have several bytes."""
    if tuple(vocabulary) == BYTES:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        yield from filter(None, (decoder.decode(bytes([token])) for token in tokens))
        if rest := decoder.decode(b"", final=True):
            yield rest
        return
    space = "" if _of_characters(vocabulary) else " "
    for token in tokens:
        yield f"{space}{vocabulary[token]}"


def _of_characters(vocabulary: Sequence[str]) -> bool:
    """Whether tokens follow each other without spaces between: words need them, characters do not."""
    return any(token.isspace() for token in vocabulary) or all(len(token) <= 1 for token in vocabulary)


def _check(model: TrainedModel) -> tuple[int, bool, str]:
    """The window of a language model, whether it takes fewer tokens, and the type of tokens.

    Raises:
        ModelError: It writes no text.
    """
    spec, output = model.dataset.spec.inputs, model.output_forms[0]
    is_sequence = isinstance(spec, ArraySpec) and len(spec.shape) == 1 and "int" in spec.dtype
    own = (
        len(model.output_forms) == 1
        and output.task.name == "sequence"
        and model.form.class_names
        in (
            (),
            model.form.vocabulary,
        )
    )
    if not (is_sequence and own and 0 < len(model.form.vocabulary) <= len(output.classes)):
        what = f"its task is {output.task.name}" if output.task.name != "sequence" else "it has no vocabulary"
        raise ModelError(f"run {model.name} writes no text: {what}")
    window = spec.shape[0] or model.plan.window or 64
    return window, spec.shape[0] is None, spec.dtype


def _counted(tokens: Iterable[int], count: list[int]) -> Iterator[int]:
    for token in tokens:
        count[0] += 1
        yield token
