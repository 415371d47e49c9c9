"""Random numbers that a step draws, such as the masks of dropout, drawn outside of XLA for all steps of a chunk.

From one seed, XLA draws other numbers than TensorFlow's kernels do, and on a CPU takes about ten times as long. So the
numbers of a chunk are drawn by the kernels, with the same seeds and in the same order as by steps without XLA, and
are inputs of the compiled steps: a run has the same random numbers in every execution mode.
"""

import inspect
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import keras
import tensorflow as tf

from accel_engine.private_names.keras_names import replaced_draws
from accel_engine.training.core.rematerialization.recomputation import NumberedDraws, numbering_draws

_DRAWS = ("uniform", "normal", "truncated_normal", "randint", "dropout")
"""The functions of Keras whose random numbers do not depend on the data."""

_SCOPE = "drawn.before"
"""Name scope of the recorded draws."""

_RANDOM_OPERATION = re.compile("Random|TruncatedNormal|Multinomial|^Rng")
"""Operations of TensorFlow that draw random numbers."""

_current = threading.local()


@dataclass(frozen=True, slots=True)
class Draw:
    """One draw of random numbers in a step.

    Attributes:
        draw: Draws the numbers, as the step would.
        spec: Their type.
    """

    draw: Callable[[], tf.Tensor]
    spec: tf.TensorSpec


@contextmanager
def recorded_draws() -> Iterator[list[Draw]]:
    """List the draws of a step that is traced inside the ``with`` block."""
    recorder = _Recorder()
    with _handled(recorder):
        yield recorder.draws


@contextmanager
def given_draws(numbers: Sequence[tf.Tensor]) -> Iterator[None]:
    """Give a step that is traced inside the ``with`` block the numbers of its draws, in their order."""
    with _handled(_Given(numbers)):
        yield


def has_other_draws(graph: tf.Graph) -> bool:
    """Whether a step, traced with :func:`recorded_draws`, draws random numbers that were not recorded.

    Such as draws of ``tf.random``, of a loop inside the step, or whose distribution depends on the data.
    """
    definition = graph.as_graph_def()
    nodes = [node for node in definition.node if _SCOPE not in node.name]
    nodes += [node for function in definition.library.function for node in function.node_def]
    return any(_RANDOM_OPERATION.search(node.op) for node in nodes)


class _Handler(NumberedDraws, Protocol):
    """Returns the numbers of each draw, from a function that draws them."""

    def __call__(self, draw: Callable[[], tf.Tensor]) -> tf.Tensor: ...


class _Recorder:
    """Draws the numbers, and lists each draw once: a part of the model that is computed again draws them again."""

    def __init__(self) -> None:
        self.draws: list[Draw] = []
        self.next_number = 0

    def __call__(self, draw: Callable[[], tf.Tensor]) -> tf.Tensor:
        with tf.name_scope(_SCOPE):
            numbers = draw()
        if self.next_number == len(self.draws):
            self.draws.append(Draw(draw, tf.TensorSpec(numbers.shape, numbers.dtype)))
        self.next_number += 1
        return numbers


class _Given:
    """Returns given numbers, one after the other."""

    def __init__(self, numbers: Sequence[tf.Tensor]) -> None:
        self._numbers = numbers
        self.next_number = 0

    def __call__(self, draw: Callable[[], tf.Tensor]) -> tf.Tensor:  # noqa: ARG002 (they were drawn before)
        numbers = self._numbers[self.next_number]
        self.next_number += 1
        return numbers


@contextmanager
def _handled(handler: _Handler) -> Iterator[None]:
    """Let a handler return the numbers of each draw in the current graph.

    Draws in other threads and in graphs inside this one, such as loops, stay as they are.
    """
    graph = tf.compat.v1.get_default_graph()
    before = getattr(_current, "handler", None)

    def replace(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(original)

        def replacement(*positional: Any, **named: Any) -> Any:
            ours = getattr(_current, "handler", None) is handler and tf.compat.v1.get_default_graph() is graph
            arguments = _known(signature, *positional, **named) if ours else None
            if arguments is None:
                return original(*positional, **named)
            if name == "dropout":
                return _dropped(arguments, original, handler)
            return handler(partial(original, **arguments))

        return replacement

    _current.handler = handler
    try:
        with replaced_draws(replace, _DRAWS), numbering_draws(handler):
            yield
    finally:
        _current.handler = before


def _known(signature: inspect.Signature, *positional: Any, **named: Any) -> dict[str, Any] | None:
    """The arguments of a draw; ``None`` if they are not known before the step, except for inputs of a known shape."""
    arguments = signature.bind(*positional, **named).arguments
    seed = arguments.get("seed")
    if not (seed is None or isinstance(seed, int | keras.random.SeedGenerator)):
        return None
    known: dict[str, Any] = {}
    for name, argument in arguments.items():
        if name == "inputs":
            if not argument.shape.is_fully_defined():
                return None
            known[name] = argument
        elif name in ("shape", "noise_shape") and argument is not None:
            sides = _known_sides(argument)
            if sides is None or (name == "shape" and None in sides):
                return None
            known[name] = sides
        elif tf.is_tensor(argument):
            return None
        else:
            known[name] = argument
    return known


def _known_sides(shape: Any) -> list[int | None] | None:
    """The sides of a shape as numbers, ``None`` where they are the inputs'; ``None`` if one depends on the data."""
    if tf.is_tensor(shape):
        shape = tf.get_static_value(shape)
    if shape is None:
        return None
    sides = [side if side is None else tf.get_static_value(tf.convert_to_tensor(side)) for side in shape]
    if any(side is None and given is not None for side, given in zip(sides, shape, strict=True)):
        return None
    return [side if side is None else int(side) for side in sides]


def _dropped(arguments: dict[str, Any], dropout: Callable[..., Any], handler: _Handler) -> Any:
    """Inputs with dropout, as Keras computes it, but for where the mask comes from."""
    inputs, rate = arguments["inputs"], arguments["rate"]
    if rate in (0, 1):
        return dropout(**arguments)
    noise_shape = arguments.get("noise_shape") or [None] * inputs.shape.rank
    shape = [side if wanted is None else wanted for side, wanted in zip(inputs.shape, noise_shape, strict=True)]
    dtype, seed = inputs.dtype, arguments.get("seed")

    def keep() -> tf.Tensor:
        return tf.not_equal(dropout(tf.ones(shape, dtype), rate, seed=seed), 0)

    scale = tf.constant(1 / (1 - rate), dtype)
    return tf.where(handler(keep), inputs * scale, tf.zeros([], dtype))
