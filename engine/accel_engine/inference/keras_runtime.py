"""Runs a Keras model, of a ``.keras`` or ``.h5`` file or in memory, as one compiled function."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.structure import ArraySpec, flatten, map_structure
from accel_engine.errors import ModelError
from accel_engine.inference.runtime import Arrays, check_inputs
from accel_engine.keras_support.model_structure import model_input
from accel_engine.models.model_call import call_model
from accel_engine.models.saved_model import UNKNOWN_CLASS
from accel_engine.user_code import reason


class KerasRuntime:
    """A Keras model that computes outputs from arrays; see :class:`accel_engine.inference.runtime.Runtime`.

    The names of inputs and outputs are the keys of a model with dictionaries; other inputs have the names of their
    layers, other outputs ``output_0``, ``output_1`` and so on, as in a SavedModel of Keras.

    Args:
        model: A functional or sequential model, built.
        size: Bytes of its file.
        jit_compile: Whether XLA compiles it.

    Raises:
        ModelError: The model does not tell its inputs, or cannot be traced.
    """

    name = "keras"

    def __init__(self, model: keras.Model, size: int, *, jit_compile: bool = False) -> None:
        structure = model_input(model)
        if structure is None:
            raise ModelError(f"model {model.name} does not tell its inputs: it is neither functional nor sequential")
        self.size = size
        self._model = model
        self._structure = map_structure(lambda tensor: tensor.name, structure)
        if isinstance(structure, dict):
            self._structure = {key: key for key in structure}
        tensors = dict(zip(flatten(self._structure), flatten(structure), strict=True))
        self.inputs: Mapping[str, ArraySpec] = {name: _spec(tensor) for name, tensor in tensors.items()}
        signature = {name: tf.TensorSpec(tensor.shape, tensor.dtype, name) for name, tensor in tensors.items()}
        function = tf.function(
            self._call, input_signature=[signature], autograph=False, jit_compile=jit_compile or None
        )
        try:
            # Called without the search for a trace that fits, which takes as long as a small model.
            self._trace = function.get_concrete_function()
        except (tf.errors.OpError, TypeError, ValueError) as error:
            raise ModelError(f"model {model.name} cannot be traced: {reason(error)}") from error
        # Not the model's, which are wrong for lookups of texts.
        outputs = self._trace.structured_outputs
        self.outputs: Mapping[str, ArraySpec] = {name: _spec(tensor) for name, tensor in outputs.items()}

    def run(self, inputs: Arrays) -> dict[str, npt.NDArray[np.generic]]:
        """See :meth:`accel_engine.inference.runtime.Runtime.run`."""
        check_inputs(inputs, self.inputs)
        try:
            tensors = {name: tf.constant(inputs[name], spec.dtype) for name, spec in self.inputs.items()}
            return {name: output.numpy() for name, output in self._trace(tensors).items()}
        except (tf.errors.OpError, TypeError, ValueError) as error:
            raise ModelError(f"Keras cannot run the model: {reason(error)}") from error

    def _call(self, tensors: dict[str, Any]) -> dict[str, Any]:
        inputs = map_structure(lambda name: tensors[name], self._structure)
        return _by_name(call_model(self._model, inputs, training=False))


def open_keras(path: Path, *, jit_compile: bool = False) -> KerasRuntime:
    """Load the model of a file.

    Raises:
        ModelError: The model cannot be loaded.
    """
    try:
        model = keras.models.load_model(path, compile=False)  # so that a loss of the user's own need not be known
    except Exception as error:
        raise ModelError(f"Keras cannot load {path.name}: {_explained(error)}") from error
    return KerasRuntime(model, path.stat().st_size, jit_compile=jit_compile)


def _explained(error: Exception) -> str:
    if unknown := UNKNOWN_CLASS.search(str(error)):
        name = unknown[1]
        return f"class {name} is not known: decorate it with keras.saving.register_keras_serializable, and import it"
    return reason(error)


def _by_name(outputs: Any) -> dict[str, Any]:
    if isinstance(outputs, dict):
        return dict(sorted(outputs.items()))
    return {f"output_{index}": output for index, output in enumerate(flatten(outputs))}


def _spec(tensor: Any) -> ArraySpec:
    dtype = tensor.dtype
    return ArraySpec(tuple(tensor.shape[1:]), dtype if isinstance(dtype, str) else dtype.name)
