"""Gives raw texts to a model that takes them as numbers; without TensorFlow."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from accel_engine.data.structure import ArraySpec
from accel_engine.inference.arrays import check_inputs
from accel_engine.inference.runtime import Arrays, Runtime
from accel_engine.inference.text_encoding import TextEncoding, encode, read_encodings


def sidecar_of(path: Path) -> Path:
    """The file beside a model that says how its texts are encoded."""
    return path.with_name(f"{path.name}.json")


class EncodedRuntime:
    """A model with the encoding of its texts; see :class:`accel_engine.inference.runtime.Runtime`.

    Args:
        runtime: Takes numbers.
        encodings: How to make them, by input.
    """

    def __init__(self, runtime: Runtime, encodings: Mapping[str, TextEncoding]) -> None:
        self.name = runtime.name
        self.size = runtime.size
        texts = {name: ArraySpec(each.shape, "string") for name, each in encodings.items()}
        self.inputs: Mapping[str, ArraySpec] = {**runtime.inputs, **texts}
        self.outputs = runtime.outputs
        self._runtime = runtime
        self._encodings = encodings

    def run(self, inputs: Arrays) -> dict[str, npt.NDArray[np.generic]]:
        """See :meth:`accel_engine.inference.runtime.Runtime.run`."""
        check_inputs(inputs, self.inputs)
        return self._runtime.run(encode(inputs, self._encodings))


def with_encodings(runtime: Runtime, path: Path) -> Runtime:
    """The runtime of a model's file, with the encoding of its texts if there is a file that has it.

    Raises:
        ModelError: That file cannot be read.
    """
    sidecar = sidecar_of(path)
    encodings = read_encodings(sidecar) if sidecar.is_file() else {}
    return EncodedRuntime(runtime, encodings) if encodings else runtime
