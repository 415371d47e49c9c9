"""Lets a run's language model continue a prompt."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.characters import texts_of_tokens, tokens_of_text
from accel_engine.data.structure import ArraySpec, flatten
from accel_engine.errors import ModelError
from accel_engine.requests.protocol.request import Send, tells, unheard
from accel_engine.requests.write_text import WritingRequest, WrittenPart, WrittenText
from accel_engine.trained.open_trained import TrainedModel, open_trained
from accel_engine.training.core.task import probabilities_of
from accel_engine.training.evaluation.reports.sequence import continued


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
    prompt = tokens_of_text(options.prompt, vocabulary)
    form = model.output_forms[0]

    @tf.function(reduce_retracing=True)  # type: ignore[untyped-decorator]
    def compute(tokens: tf.Tensor, last: tf.Tensor) -> tf.Tensor:
        output = flatten(model.outputs_of(tokens))[0]
        return probabilities_of(output[0, last], form.task)

    def next_chances(tokens: npt.NDArray[Any], last: int) -> npt.NDArray[np.float64]:
        found = compute(tf.constant(tokens[np.newaxis], dtype), tf.constant(last))
        return found.numpy().astype(np.float64)[: len(vocabulary)]

    tokens = continued(
        next_chances, prompt, window, any_length=any_length, temperature=options.temperature, seed=options.seed
    )
    written, count = [], [0]
    for text in texts_of_tokens(_counted(islice(tokens, options.tokens), count), vocabulary):
        written.append(text)
        send(WrittenPart(text))
    notes = list(model.notes)
    if count[0] < options.tokens:
        notes.append(f"the model's outputs are not finite after {count[0]:,} tokens")
    return WrittenText(model.name, model.step, "".join(written), count[0], tuple(notes))


def _check(model: TrainedModel) -> tuple[int, bool, str]:
    """The window of a language model, whether it takes fewer tokens, and the type of tokens.

    Raises:
        ModelError: The model writes no text.
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
