"""Runs a SavedModel by its signature, as TensorFlow Serving does."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.structure import ArraySpec
from accel_engine.errors import ModelError, UsageError
from accel_engine.inference.runtime import Arrays, check_inputs, size_on_disk
from accel_engine.models.model_files import SAVED_MODEL, SIGNATURE
from accel_engine.user_code import reason


class SavedModelRuntime:
    """A loaded SavedModel; see :class:`accel_engine.inference.runtime.Runtime`.

    Args:
        path: A directory with a SavedModel, or with a numbered directory for each version, of which the last is taken.
        jit_compile: Whether XLA compiles it.

    Raises:
        ModelError: The model cannot be loaded.
        UsageError: The directory has no SavedModel.
    """

    name = "savedmodel"

    def __init__(self, path: Path, *, jit_compile: bool = False) -> None:
        directory = _find_saved_model(path)
        self.size = size_on_disk(directory)
        try:
            self._loaded = tf.saved_model.load(str(directory))  # keeps the variables
        except (tf.errors.OpError, OSError, ValueError, TypeError, AttributeError) as error:
            raise ModelError(f"{path} cannot be loaded: {reason(error)}") from error
        if SIGNATURE not in self._loaded.signatures:
            raise ModelError(f"{path} has no signature {SIGNATURE}")
        signature = self._loaded.signatures[SIGNATURE]
        inputs: dict[str, Any] = signature.structured_input_signature[1]
        self.inputs: Mapping[str, ArraySpec] = {name: _spec(tensor) for name, tensor in sorted(inputs.items())}
        self.outputs: Mapping[str, ArraySpec] = {
            name: _spec(tensor) for name, tensor in sorted(signature.structured_outputs.items())
        }
        self._function = tf.function(signature, autograph=False, jit_compile=True) if jit_compile else signature

    def run(self, inputs: Arrays) -> dict[str, npt.NDArray[np.generic]]:
        """See :meth:`accel_engine.inference.runtime.Runtime.run`."""
        check_inputs(inputs, self.inputs)
        try:
            outputs = self._function(
                **{name: tf.constant(inputs[name], spec.dtype) for name, spec in self.inputs.items()}
            )
            return {name: outputs[name].numpy() for name in self.outputs}
        except (tf.errors.OpError, TypeError, ValueError) as error:
            raise ModelError(f"TensorFlow cannot run the SavedModel: {reason(error)}") from error


def _find_saved_model(path: Path) -> Path:
    """The directory with the SavedModel: ``path``, or its numbered directory of the highest version.

    Raises:
        UsageError: The directory has no SavedModel.
    """
    if (path / SAVED_MODEL).is_file():
        return path
    versions = [each for each in path.glob("*") if each.name.isdecimal() and (each / SAVED_MODEL).is_file()]
    if not versions:
        raise UsageError(f"{path} has no SavedModel: neither {SAVED_MODEL} nor a numbered directory with one")
    return max(versions, key=lambda each: int(each.name))


def _spec(tensor: Any) -> ArraySpec:
    return ArraySpec(tuple(tensor.shape.as_list()[1:]), tensor.dtype.name)
