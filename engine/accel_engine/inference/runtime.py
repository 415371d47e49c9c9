"""What every runtime of a trained model can do; without TensorFlow."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from accel_engine.data.structure import ArraySpec

Arrays = Mapping[str, npt.NDArray[Any]]
"""Arrays by the name of an input or an output, each ``[batch, ...]``."""


class Runtime(Protocol):
    """A loaded model that computes outputs from raw examples.

    Attributes:
        name: Its format, such as ``keras``, ``savedmodel``, ``tflite`` or ``onnx``.
        inputs: The spec of each input, without the batch.
        outputs: The spec of each output, without the batch.
        size: Bytes of its files.
    """

    name: str
    inputs: Mapping[str, ArraySpec]
    outputs: Mapping[str, ArraySpec]
    size: int

    def run(self, inputs: Arrays) -> dict[str, npt.NDArray[np.generic]]:
        """Compute a batch; returns when the outputs are in host memory.

        Args:
            inputs: An array for each input, of any batch size.

        Raises:
            ModelError: The runtime failed; why.
        """
