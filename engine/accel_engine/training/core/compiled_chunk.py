"""Runs the steps of a chunk in one program of XLA: how many, and without the layers' operations of cuDNN.

A program for each step leaves a dispatch and copies of all weights between two steps; one for the whole loop made a
perceptron of batch 32 twice as fast. Its arrays have the size of the largest chunk, and the number of steps is a
tensor: on a CPU, a loop that runs as often as a tensor says is as fast as one of a fixed length, if its arrays are of
a fixed size. On a GPU it made a perceptron 0.7 times as fast (benchmarks/README.md): XLA copies the loop's condition to
the host before each step. So there, loops of a constant number of steps, a block, take all steps but the last few.

What XLA cannot do, or not as TensorFlow's kernels do it, is prepared for all steps of a chunk before the program runs:
random numbers (see :mod:`accel_engine.training.core.random_draws`), augmented examples, and batches that come from the
host.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from accel_engine.data.structure import Batch, flatten, map_structure
from accel_engine.private_names.keras_names import all_layers
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.feed import filled, slice_of
from accel_engine.training.core.random_draws import (
    Draw,
    SeededMasks,
    given_draws,
    has_other_draws,
    recorded_draws,
    seeded_masks,
)
from accel_engine.training.core.step import graph_of
from accel_engine.training.model_analysis.flops import UNCOUNTED

PREPARED_BYTES = 1 << 23
"""Bytes of a chunk's prepared arrays at most, unless a single step has more."""

PREPARED_SHARE = 1 / 128
"""Share of a GPU's free memory that they may take, if that is more: writing them takes it about a millisecond."""

BLOCK = 32
"""Steps of a block, on GPUs: the program waits for a condition before each block, and before each step of the rest of a
chunk. In the mean over chunks of about a thousand steps, no other power of two has fewer waits."""

SHORT_STEPS = 256
"""Steps of the largest chunk from which blocks are worthwhile: XLA compiles their steps once more, and a wait takes
about 15 µs (H200), 8% of a step of which 256 take :data:`CHUNK_SECONDS`."""


def compiles_chunks(assembly: Assembly) -> bool:
    """Whether XLA can compile whole chunks of an assembly: not the steps of several replicas or workers.

    Nor a custom ``train_step``, which may draw random numbers itself.
    """
    alone = assembly.replicas == 1 and assembly.single_process
    return alone and not assembly.on_tpu and not assembly.has_custom_train_step


class UnpreparedDraws(Exception):  # noqa: N818 (an answer, not an error)
    """A step draws random numbers that cannot be drawn before it."""

    def __str__(self) -> str:
        return "the model draws random numbers that cannot be drawn before XLA runs the steps"


@dataclass(frozen=True, slots=True)
class ChunkProgram:
    """A chunk of steps as one program, for sources of one type."""

    size: int
    """Steps of the largest chunk."""
    draws: tuple[Draw, ...]
    """The random numbers that each step draws."""
    masks: SeededMasks | None
    """The draws, if the program draws them from seeds; ``None`` if they are drawn before it."""
    batch: Batch
    """The type of a batch that is ready for a step."""
    stacks: bool
    """Whether batches are stacked first, rather than taken from the source by the program."""
    run: Callable[..., tf.Tensor]
    """The compiled function, of the prepared source, the random numbers or their seeds, and the number of steps;
    gives the series of steps, float32 ``[size, series]``."""


class CompiledChunk:
    """Compiles and prepares the chunks of an assembly.

    Args:
        assembly: Model, data and strategy.
        take_step: Takes a step with a batch and returns its series, float32 ``[series]``.
        steps: Steps of the largest chunk that may be worthwhile.
    """

    def __init__(self, assembly: Assembly, take_step: Callable[[Batch], tf.Tensor], steps: int) -> None:
        self._assembly, self._strategy, self._feed = assembly, assembly.strategy, assembly.feed
        self._take_step, self._steps = take_step, steps

    def program(self, source: Any) -> ChunkProgram:
        """The program for sources of this type; call it before :meth:`take_steps` is traced.

        Raises:
            UnpreparedDraws: The steps draw random numbers that cannot be drawn before the program runs.
        """
        stacks = not self._feed.can_slice or self._assembly.augmentation is not None
        spec = self._feed.spec(source)
        batch = self._batch_spec(spec)
        draws, width = self._traced_step(batch)
        masks = self._seeded_masks(draws)
        taken = batch if stacks else _step_spec(spec)
        prepared = [tf.TensorSpec([len(draws), 2], tf.int32)] if masks else [draw.spec for draw in draws]
        step_bytes = 4 * width + sum(map(_bytes, [*flatten(taken), *prepared]))
        size = max(1, min(self._steps, _most_bytes(self._assembly) // max(1, step_bytes)))
        run = graph_of(self._runner(size, width, masks, stacks=stacks), self._assembly, jit_compile=True)
        return ChunkProgram(size, draws, masks, batch, stacks, run)

    def take_steps(self, program: ChunkProgram, source: Any, first: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
        """The series of ``count`` steps, float32 ``[count, series]``; in a graph."""
        prepare = self._stacked if program.stacks else _sliced
        prepared = prepare(program, source, first, count)
        numbers = self._strategy.run(self._drawn, args=(program, count))
        rows = self._strategy.run(program.run, args=(prepared, numbers, count))
        return self._strategy.experimental_local_results(rows)[0][:count]

    def _runner(self, size: int, width: int, masks: SeededMasks | None, *, stacks: bool) -> Callable[..., tf.Tensor]:
        block = _block(self._assembly, self._steps, size)

        def step(batch: Batch, numbers: list[tf.Tensor]) -> tf.Tensor:
            with given_draws(masks.drawn(*numbers) if masks else numbers):
                return self._take_step(batch)

        # Two loops have the same step, which is traced once.
        take_step = graph_of(step, self._assembly) if block else step

        def run(prepared: Any, numbers: list[tf.Tensor], count: tf.Tensor) -> tf.Tensor:
            def take(index: tf.Tensor, rows: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
                batch = _at(prepared, index) if stacks else self._feed.examples(*self._feed.arguments(prepared, index))
                return index + 1, rows.write(index, take_step(batch, [each[index] for each in numbers]))

            def take_block(index: tf.Tensor, rows: tf.TensorArray) -> Any:
                def take_next(done: tf.Tensor, *state: Any) -> tuple[Any, ...]:
                    return done + 1, *take(*state)

                return tf.while_loop(lambda done, *_: done < block, take_next, (tf.constant(0), index, rows))[1:]

            state = tf.constant(0), tf.TensorArray(tf.float32, size=size, element_shape=[width])
            if block:
                # The operations of a step are counted in the loop below, which has the same ones.
                state = tf.while_loop(lambda index, _: index <= count - block, take_block, state, name=UNCOUNTED)
            _, rows = tf.while_loop(lambda index, _: index < count, take, state)
            return rows.stack()

        return run

    def _traced_step(self, batch: Batch) -> tuple[tuple[Draw, ...], int]:
        """The random numbers that a step with a batch of this type draws, and the number of its series."""
        # The program traces the step again: its inputs are the numbers of all draws, whose types must be known before.
        # They cannot be added while it is traced, as one loop draws them all, in the order of the steps.
        draws: list[Draw] = []

        def step(batch: Batch) -> tf.Tensor:
            with recorded_draws() as recorded:
                row = self._strategy.run(self._take_step, args=(batch,))
            draws.extend(recorded)
            return self._strategy.experimental_local_results(row)[0]

        graph = graph_of(step, self._assembly).get_concrete_function(batch).graph
        if has_other_draws(graph):
            raise UnpreparedDraws
        return tuple(draws), int(graph.outputs[0].shape[0])

    def _seeded_masks(self, draws: tuple[Draw, ...]) -> SeededMasks | None:
        """The draws as masks that the program draws from seeds; ``None`` if they are drawn before it.

        So it is on a GPU, if two steps have the same masks on it with XLA and without.
        """
        masks = seeded_masks(draws) if self._assembly.on_gpu else None
        if masks is None:
            return None
        compiled = graph_of(masks.drawn, self._assembly, jit_compile=True)

        def are_alike() -> tf.Tensor:
            with keras.StatelessScope():  # the generators stay as they are
                kernels = masks.drawn_by_kernels(2)
            with keras.StatelessScope():
                seeds = masks.seeds(2, tf.constant(2))
            pairs = zip(flatten(kernels), flatten([compiled(seeds[step]) for step in range(2)]), strict=True)
            return tf.reduce_all([tf.reduce_all(tf.equal(*pair)) for pair in pairs])

        alike = graph_of(lambda: self._strategy.run(are_alike), self._assembly)()
        return masks if all(self._strategy.experimental_local_results(alike)) else None

    def _batch_spec(self, spec: Any) -> Batch:
        function = graph_of(lambda source: self._batch(source, tf.constant(0)), self._assembly)
        return Batch(*function.get_concrete_function(spec).structured_outputs)

    def _batch(self, source: Any, step: tf.Tensor) -> Batch:
        """The batch of a step, with an augmentation as it is after it."""
        batch = self._strategy.run(self._ready, args=self._feed.arguments(source, step))
        return map_structure(lambda each: self._strategy.experimental_local_results(each)[0], batch)

    def _ready(self, *arguments: Any) -> Batch:
        examples = self._feed.examples(*arguments)
        return self._assembly.prepare_training(examples) if self._assembly.augmentation else examples

    def _stacked(self, program: ChunkProgram, source: Any, first: tf.Tensor, count: tf.Tensor) -> Batch:
        """The batches of a chunk, one after the other, in the arrays of the largest chunk."""
        return Batch(*_filled(program.batch, program.size, count, lambda index: self._batch(source, first + index)))

    def _drawn(self, program: ChunkProgram, count: tf.Tensor) -> list[tf.Tensor]:
        """The random numbers of a chunk, each an array ``[size, ...]``, drawn in the order of the steps, or seeds."""
        if program.masks:
            return [program.masks.seeds(program.size, count)]
        specs = [draw.spec for draw in program.draws]
        return _filled(specs, program.size, count, lambda _: [draw.draw() for draw in program.draws])


def _block(assembly: Assembly, steps: int, size: int) -> int:
    """Steps of a block of a program; 0 if it has none.

    Args:
        assembly: Model, data and strategy.
        steps: Steps of the largest chunk that may be worthwhile.
        size: Steps of the largest chunk of the program.
    """
    return BLOCK if assembly.on_gpu and steps >= SHORT_STEPS and size >= BLOCK else 0


def _most_bytes(assembly: Assembly) -> int:
    """Bytes of a chunk's prepared arrays at most."""
    free = (assembly.device_memory or 0) if assembly.on_gpu else 0
    return max(PREPARED_BYTES, int(PREPARED_SHARE * free))


def _sliced(program: ChunkProgram, source: Any, first: tf.Tensor, count: tf.Tensor) -> Any:
    """The part of a source that a chunk takes, in the arrays of the largest chunk."""

    def padded(part: tf.Tensor) -> tf.Tensor:
        full = tf.pad(part, [[0, program.size - count], *[[0, 0]] * (part.shape.rank - 1)])
        return tf.ensure_shape(full, [program.size, *part.shape[1:]])

    return map_structure(padded, slice_of(source, first, count))


def _filled(specs: Any, size: int, count: tf.Tensor, make: Callable[[tf.Tensor], Any]) -> Any:
    """Arrays ``[size, ...]`` for specs, whose first ``count`` elements are made one after the other."""
    flat = flatten(specs)
    arrays = [tf.TensorArray(spec.dtype, size=size, element_shape=spec.shape) for spec in flat]

    def fill(index: tf.Tensor, arrays: list[tf.TensorArray]) -> tuple[tf.Tensor, list[tf.TensorArray]]:
        made = flatten(make(index))
        return index + 1, [array.write(index, each) for array, each in zip(arrays, made, strict=True)]

    if not flat:
        return specs
    # One after the other, as drawing a number changes the state that the next one follows from.
    loop = (tf.constant(0), arrays)
    _, arrays = tf.while_loop(lambda index, _: index < count, fill, loop, parallel_iterations=1)
    return filled(specs, iter([array.stack() for array in arrays]))


def _step_spec(spec: Any) -> Any:
    """The type of a single step of a source that can be sliced."""
    return map_structure(lambda each: tf.TensorSpec(each.shape[1:], each.dtype), spec)


def _at(structure: Any, index: tf.Tensor) -> Any:
    return map_structure(lambda array: array[index], structure)


def _bytes(spec: tf.TensorSpec) -> int:
    return int(math.prod(spec.shape) * spec.dtype.size)


CHUNK_SECONDS = 0.05
"""Target duration of a chunk: short enough for live charts and a quick stop, long enough to keep a device busy."""

SHARED_CHUNK_SECONDS = 4 * CHUNK_SECONDS
"""The same with other workers, which synchronize before every chunk."""

MAX_STEPS = 4096
"""The most steps of a chunk."""

LARGEST_GAIN, LARGEST_ACCELERATED_GAIN = 8, 32
"""How many times as fast as another execution mode a compiled chunk may be, for the size of its arrays: on a CPU, and
on an accelerator, where it was up to 26 times as fast (H200)."""


def largest_chunk(rate: float, on_cpu: bool) -> int:
    """The most steps of a compiled chunk, a power of two.

    Args:
        rate: Steps per second of another execution mode; 0 if it is unknown.
        on_cpu: Whether CPUs train, rather than accelerators.
    """
    gain = LARGEST_GAIN if on_cpu else LARGEST_ACCELERATED_GAIN
    wanted = gain * CHUNK_SECONDS * rate if rate else MAX_STEPS
    return min(MAX_STEPS, 1 << max(0, math.ceil(math.log2(max(1.0, wanted)))))


class ChunkSize:
    """Adapts the number of steps per chunk to the duration of a step."""

    def __init__(self, target: float = CHUNK_SECONDS, minimum: int = 1) -> None:
        self._target = target
        self._minimum = minimum
        self.steps = minimum

    def update(self, count: int, seconds: float) -> None:
        """Adapt to the duration of a chunk; grows at most fourfold, so that one quick chunk has little effect."""
        wanted = int(self._target / max(seconds / count, 1e-9))
        self.steps = max(self._minimum, min(wanted, 4 * self.steps, MAX_STEPS))


@contextmanager
def without_cudnn(model: keras.Model) -> Iterator[None]:
    """Use no cuDNN operations in the steps of a model that are traced inside the ``with`` block."""
    layers = [layer for layer in all_layers(model) if getattr(layer, "use_cudnn", False)]
    chosen = [layer.use_cudnn for layer in layers]
    try:
        for layer in layers:
            layer.use_cudnn = False
        yield
    finally:
        for layer, own in zip(layers, chosen, strict=True):
            layer.use_cudnn = own
