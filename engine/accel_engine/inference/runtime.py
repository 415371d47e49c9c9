"""The protocol of all runtimes of a trained model; without TensorFlow."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from accel_engine.data.structure import ArraySpec
from accel_engine.errors import ModelError

Arrays = Mapping[str, npt.NDArray[Any]]
"""Arrays by the name of an input or an output, each ``[batch, ...]``."""


class Runtime(Protocol):
    """A loaded model that computes outputs from raw examples."""

    name: str
    """Its format, such as ``keras``, ``savedmodel``, ``tflite`` or ``onnx``."""
    inputs: Mapping[str, ArraySpec]
    """The spec of each input, without the batch."""
    outputs: Mapping[str, ArraySpec]
    """The spec of each output, without the batch."""
    size: int
    """Bytes of its files."""

    def run(self, inputs: Arrays) -> dict[str, npt.NDArray[np.generic]]:
        """Compute a batch; returns when the outputs are in host memory.

        Args:
            inputs: An array for each input, of any batch size.

        Raises:
            ModelError: The runtime failed; the message says why.
        """


def check_inputs(inputs: Arrays, specs: Mapping[str, ArraySpec]) -> None:
    """Check that a model takes these arrays.

    Raises:
        ModelError: A name is wrong, or a shape.
    """
    if inputs.keys() != specs.keys():
        given, taken = (", ".join(sorted(names)) or "none" for names in (inputs, specs))
        raise ModelError(f"the model takes the inputs {taken}, not {given}")
    for name, spec in specs.items():
        given_shape = inputs[name].shape[1:]
        if given_shape == spec.shape:  # nearly always, and a small model takes only some 50 us
            continue
        if not spec.fits(given_shape):
            sides = "x".join(map(str, given_shape)) or "single values"
            raise ModelError(f"input {name} takes examples of {spec}, not {sides}")


def size_on_disk(path: Path) -> int:
    """Bytes of a file, or of all files in a directory."""
    if path.is_file():
        return path.stat().st_size
    return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
