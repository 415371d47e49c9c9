"""Random numbers that a step draws, such as the masks of dropout, drawn outside of XLA for all steps of a chunk.

From one seed, XLA draws other numbers than TensorFlow's kernels do, and on a CPU takes about ten times as long. So the
numbers of a chunk are drawn by the kernels, with the same seeds and in the same order as by steps without XLA, and
are inputs of the compiled steps: a run has the same random numbers in every execution mode.

On a GPU, a loop of kernels before each chunk takes longer than the steps of a small model. There the inputs are the
seeds, and XLA draws the masks of dropout from them by the algorithm of the kernels, which gives the same numbers.
"""

import inspect
import math
import re
import threading
from collections import Counter
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

_MANTISSAS = {tf.float32: 23, tf.float16: 10, tf.bfloat16: 7}
"""Bits of the mantissas of types."""

_current = threading.local()


@dataclass(frozen=True, slots=True)
class Draw:
    """One draw of random numbers in a step."""

    draw: Callable[[], tf.Tensor]
    """Draws the numbers, as the step would; a :class:`DropoutMask` can do so from any seed."""
    spec: tf.TensorSpec
    """Their type."""


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


class DropoutMask:
    """Draws which inputs dropout keeps, a Boolean array.

    Args:
        dropout: Keras' function.
        shape: Of the array.
        dtype: Of the inputs.
        rate: The share of inputs that become zero, between 0 and 1.
        seed: A number or a generator; ``None`` for the generator that all layers share.
    """

    def __init__(
        self, dropout: Callable[..., tf.Tensor], shape: Sequence[int], dtype: tf.DType, rate: float, seed: Any
    ) -> None:
        self._dropout, self._shape, self._dtype, self._rate, self.seed = dropout, shape, dtype, rate, seed

    def __call__(self) -> tf.Tensor:
        """Draw it as Keras does."""
        return tf.not_equal(self._dropout(tf.ones(self._shape, self._dtype), self._rate, seed=self.seed), 0)

    @property
    def is_seeded(self) -> bool:
        """Whether :meth:`of` draws it: not if all layers share its generator, whose seeds are not a simple sequence."""
        return self.seed is not None and self._dtype in _MANTISSAS

    def of(self, seed: tf.Tensor) -> tf.Tensor:
        """Draw it from a seed, int32 ``[2]``, in XLA.

        The lowest bits of a random integer are the mantissa of the number that TensorFlow's kernels compare with the
        rate. XLA has another algorithm by default, and takes other bits.
        """
        integers = tf.random.stateless_uniform(
            self._shape, seed, minval=None, maxval=None, dtype=tf.uint32, alg="philox"
        )
        numbers = 1 << _MANTISSAS[self._dtype]
        least = math.ceil(float(self._dtype.as_numpy_dtype(self._rate)) * numbers)
        return tf.bitwise.bitwise_and(integers, tf.constant(numbers - 1, tf.uint32)) >= tf.constant(least, tf.uint32)


class SeededMasks:
    """The masks of dropout of a step, in its order, each from a seed.

    Args:
        masks: The masks, seeded ones.
    """

    def __init__(self, masks: Sequence[DropoutMask]) -> None:
        self._masks = masks
        self._generators = {id(mask.seed): mask.seed for mask in masks if not isinstance(mask.seed, int)}
        self._uses = Counter(id(mask.seed) for mask in masks)

    def seeds(self, size: int, count: tf.Tensor) -> tf.Tensor:
        """The seeds of some steps, int32 ``[size, masks, 2]``; the generators are then as after ``count`` steps."""
        before = Counter[int]()
        seeds = []
        for mask in self._masks:
            seeds.append(self._seeds_of(mask, before[id(mask.seed)], size))
            before[id(mask.seed)] += 1
        for key, generator in self._generators.items():
            generator.state.assign(generator.state + _counted(self._uses[key] * tf.cast(count, tf.int64), generator))
        return tf.stack(seeds, axis=1)

    def drawn(self, seeds: tf.Tensor) -> list[tf.Tensor]:
        """The masks of a step, from its seeds, int32 ``[masks, 2]``."""
        return [mask.of(seed) for mask, seed in zip(self._masks, tf.unstack(seeds, len(self._masks)), strict=True)]

    def drawn_by_kernels(self, steps: int) -> list[list[tf.Tensor]]:
        """The masks of some steps, as they are without XLA."""
        return [[mask() for mask in self._masks] for _ in range(steps)]

    def _seeds_of(self, mask: DropoutMask, before: int, size: int) -> tf.Tensor:
        """The seeds of a mask, int32 ``[size, 2]``, of whose generator each step draws some others before."""
        if isinstance(mask.seed, int):
            seeds = tf.tile(tf.constant([[mask.seed, 0]], tf.int64), [size, 1])
        else:
            number = before + self._uses[id(mask.seed)] * tf.range(size, dtype=tf.int64)
            seeds = tf.cast(mask.seed.state + _counted(number, mask.seed), tf.int64)
        return tf.cast(tf.math.floormod(seeds, tf.int32.max - 1), tf.int32)


def _counted(number: tf.Tensor, generator: keras.random.SeedGenerator) -> tf.Tensor:
    """What a generator's state, ``[2]``, has more after it was used a number of times, ``[..., 2]``."""
    return tf.cast(tf.stack([tf.zeros_like(number), number], axis=-1), generator.state.dtype)


def seeded_masks(draws: Sequence[Draw]) -> SeededMasks | None:
    """The draws of a step as masks from seeds; ``None`` if there are none, or others among them."""
    masks = [draw.draw for draw in draws if isinstance(draw.draw, DropoutMask) and draw.draw.is_seeded]
    return SeededMasks(masks) if masks and len(masks) == len(draws) else None


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

    def __call__(self, draw: Callable[[], tf.Tensor]) -> tf.Tensor:
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
    dtype = inputs.dtype
    keep = DropoutMask(dropout, shape, dtype, rate, arguments.get("seed"))
    scale = tf.constant(1 / (1 - rate), dtype)
    return tf.where(handler(keep), inputs * scale, tf.zeros([], dtype))
