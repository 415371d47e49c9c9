"""Batches of any size from a few examples, for measuring; without TensorFlow."""

from collections.abc import Mapping, Sequence

import numpy as np

from accel_engine.data.structure import ArraySpec
from accel_engine.errors import ModelError
from accel_engine.inference.runtime import Arrays

MAX_BATCHES = 8
"""Different batches of a size at most, so that not the same bytes are read from the caches each time."""

MAX_BYTES = 1 << 28
"""Bytes of all batches of a size at most; but there is always one batch."""

EXAMPLES = 256
"""Random examples."""


def batches_of(examples: Arrays, size: int) -> list[dict[str, np.ndarray]]:
    """Different batches of some examples, which are repeated where there are too few.

    Args:
        examples: An array for each input, ``[examples, ...]``.
        size: Examples of a batch.
    """
    count = len(next(iter(examples.values())))
    nbytes = sum(array[:1].nbytes for array in examples.values()) * size
    number = max(1, min(MAX_BATCHES, MAX_BYTES // max(nbytes, 1), -(-count // size)))
    rows = [np.arange(first * size, (first + 1) * size) % count for first in range(number)]
    return [{name: array[chosen] for name, array in examples.items()} for chosen in rows]


def random_examples(specs: Mapping[str, ArraySpec], seed: int = 0) -> dict[str, np.ndarray]:
    """Random examples of a model's inputs: floats between 0 and 1, whole numbers 0 and 1, the texts ``0`` and ``1``.

    Larger numbers may be no token of the model, or no class.

    Args:
        specs: The specs of the inputs.
        seed: Of the random numbers.

    Raises:
        ModelError: An input has a dimension of any size.
    """
    draws = np.random.default_rng(seed)
    return {name: _random(name, spec, draws) for name, spec in specs.items()}


def _random(name: str, spec: ArraySpec, draws: np.random.Generator) -> np.ndarray:
    sides: Sequence[int | None] = spec.shape
    if None in sides:
        raise ModelError(f"input {name} has a dimension of any size ({spec}): give examples with --data")
    shape = (EXAMPLES, *(side for side in sides if side is not None))
    if spec.dtype == "string":
        return draws.integers(0, 2, shape).astype(str).astype(object)
    if spec.dtype.startswith(("float", "bfloat")):
        return draws.random(shape, np.float32).astype("float32" if spec.dtype == "bfloat16" else spec.dtype)
    return draws.integers(0, 2, shape).astype(spec.dtype)
