"""Runs the model of a run, from raw examples of its data."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.structure import ArraySpec, Batch, Structure, flatten, map_structure, named_leaves
from accel_engine.errors import ModelError, UsageError
from accel_engine.inference.runtime import Arrays
from accel_engine.keras_support.model_structure import fixed_batch
from accel_engine.models.exported_model import INPUT, OUTPUT
from accel_engine.private_names.keras_names import all_layers
from accel_engine.trained.open_trained import TrainedModel
from accel_engine.trained.split_batches import batches
from accel_engine.user_code import reason


class TrainedRuntime:
    """A trained model as one compiled function; see :class:`accel_engine.inference.runtime.Runtime`.

    Args:
        trained: The model. It runs on the current device, on which its weights should be, in the precision that its
            layers have when a batch size is run for the first time.
        xla: Whether XLA compiles it, for each batch size anew.
    """

    name = "keras"

    def __init__(self, trained: TrainedModel, *, xla: bool) -> None:
        self._model = trained.model
        self._structure = trained.dataset.spec.inputs
        self._outputs_of = trained.outputs_of
        self.inputs: Mapping[str, ArraySpec] = dict(named_leaves(self._structure, INPUT))
        self.outputs: Mapping[str, ArraySpec] = dict(named_leaves(trained.outputs, OUTPUT))
        self.size = sum(weight.numpy().nbytes for weight in self._model.weights)
        retraces_less = not xla and fixed_batch(self._model) is None
        self._function = tf.function(self._call, autograph=False, jit_compile=xla, reduce_retracing=retraces_less)

    def run(self, inputs: Arrays) -> dict[str, npt.NDArray[np.generic]]:
        """See :meth:`accel_engine.inference.runtime.Runtime.run`."""
        try:
            outputs = self._function({name: tf.convert_to_tensor(array) for name, array in inputs.items()})
            return {name: output.numpy() for name, output in named_leaves(outputs, OUTPUT)}
        except tf.errors.ResourceExhaustedError as error:
            raise ModelError("out of memory") from error
        except (tf.errors.OpError, TypeError, ValueError) as error:
            raise ModelError(f"TensorFlow cannot run the model: {reason(error)}") from error

    def _call(self, tensors: dict[str, tf.Tensor]) -> Structure:
        arrays = iter(tensors[name] for name, _ in named_leaves(self._structure, INPUT))
        inputs = map_structure(lambda _: next(arrays), self._structure)
        return self._outputs_of(inputs)


@contextmanager
def computing_in(model: keras.Model, precision: str) -> Iterator[None]:
    """Let all layers compute in a precision until the end of the block, but for layers with their own policy.

    Those that compute in float32 on purpose, such as the last one of a model in half precision, still do so.

    Args:
        model: The model; its weights do not change.
        precision: Keras' dtype policy.
    """
    of_model = model.dtype_policy.name
    with _policies(layer for layer in all_layers(model) if layer.dtype_policy.name == of_model) as layers:
        for layer in layers:
            layer.dtype_policy = keras.DTypePolicy(precision)
        yield


@contextmanager
def computing_in_float32(model: keras.Model) -> Iterator[None]:
    """Let all layers of mixed precision, whose weights are float32, and new ones, compute in float32 until the end."""
    policy = keras.config.dtype_policy()
    mixed = (layer for layer in all_layers(model) if layer.dtype_policy.name in ("mixed_float16", "mixed_bfloat16"))
    try:
        with _policies(mixed) as layers:
            keras.config.set_dtype_policy("float32")
            for layer in layers:
                layer.dtype_policy = keras.DTypePolicy("float32")
            yield
    finally:
        keras.config.set_dtype_policy(policy)


@contextmanager
def _policies(layers: Iterable[keras.Layer]) -> Iterator[list[keras.Layer]]:
    """Give layers their policies back at the end."""
    own = [(layer, layer.dtype_policy) for layer in layers]
    try:
        yield [layer for layer, _ in own]
    finally:
        for layer, policy in own:
            layer.dtype_policy = policy


def examples_of(trained: TrainedModel, limit: int) -> dict[str, npt.NDArray[np.generic]]:
    """The inputs of the first examples of the model's split, by name, ``[examples, ...]``.

    Args:
        trained: The model with its data.
        limit: Examples at most.
    """
    raw: Batch = next(batches(trained.examples))[1]
    arrays = [np.asarray(array)[:limit] for array in flatten(raw.inputs)]
    return dict(zip((name for name, _ in named_leaves(raw.inputs, INPUT)), arrays, strict=True))


BFLOAT16_FLAGS = ("avx512_bf16", "amx_bf16")
"""Flags of x86 processors that multiply bfloat16; others convert it, which is slower than float32."""

_BFLOAT16_CAPABILITY = (8, 0)
"""The compute capability from which NVIDIA GPUs multiply bfloat16 (Ampere)."""

_FLOAT16_CAPABILITY = (7, 0)
"""The compute capability from which they have tensor cores for float16 (Volta), as Keras' guide says."""


def device_names(wanted: Sequence[str]) -> list[str]:
    """TensorFlow's names of the devices, such as ``GPU:0``; all GPUs and the CPU unless some are wanted.

    Args:
        wanted: Such as ``cpu``, ``gpu`` or ``gpu:1``; empty for all.

    Raises:
        UsageError: There is no such device.
    """
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    found = [*(f"GPU:{index}" for index in range(len(gpus))), "CPU:0"]
    if not wanted:
        return found
    chosen = dict.fromkeys(name for each in wanted for name in found if _is(name, each))
    missing = [each for each in wanted if not any(_is(name, each) for name in found)]
    if missing:
        raise UsageError(f"TensorFlow has no device {missing[0]}: it has {', '.join(found).lower()}")
    return list(chosen)


def _is(name: str, wanted: str) -> bool:
    return wanted.upper() in (name, name.partition(":")[0])


def precisions(device: str, own: str) -> list[str]:
    """The precisions that a device computes fast in, the model's own first.

    Args:
        device: TensorFlow's name.
        own: The model's dtype policy.
    """
    if device.startswith("CPU"):
        fast = ["mixed_bfloat16"] if has_bfloat16() else []
    else:
        gpu = tf.config.list_physical_devices("GPU")[int(device.partition(":")[2])]
        capability = tf.config.experimental.get_device_details(gpu).get("compute_capability", (0, 0))
        fast = ["mixed_float16"] * (capability >= _FLOAT16_CAPABILITY)
        fast += ["mixed_bfloat16"] * (capability >= _BFLOAT16_CAPABILITY)
    return list(dict.fromkeys([own, *fast]))


def has_bfloat16(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the processor multiplies bfloat16; ``False`` where the system does not tell."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return False
    flags = next((line for line in lines if line.startswith("flags")), "").split()
    return any(flag in flags for flag in BFLOAT16_FLAGS)
