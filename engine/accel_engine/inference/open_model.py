"""Opens a model in the runtime of its format."""

from pathlib import Path

from accel_engine.errors import UsageError
from accel_engine.inference.encoded_runtime import with_encodings
from accel_engine.inference.runtime import Runtime

FORMATS = ("keras", "savedmodel", "tflite", "onnx")
"""Formats of models."""

_SUFFIXES = {".keras": "keras", ".h5": "keras", ".tflite": "tflite", ".onnx": "onnx"}


def format_of(path: Path) -> str:
    """The format of a model, one of :data:`FORMATS`, by the path alone: a directory is a SavedModel.

    Raises:
        UsageError: There is nothing at the path, or it is no model.
    """
    if path.is_dir():
        return "savedmodel"
    if not path.is_file():
        raise UsageError(f"no such file: {path}")
    if found := _SUFFIXES.get(path.suffix):
        return found
    suffixes = ", ".join(_SUFFIXES)
    raise UsageError(f"{path} is no model: give a file that ends with {suffixes}, or the directory of a SavedModel")


def open_model(path: Path, *, threads: int | None = None, jit_compile: bool = False) -> Runtime:
    """Load a model.

    Args:
        path: A file or directory; see :func:`format_of`.
        threads: Threads of LiteRT or ONNX Runtime; those of TensorFlow are the process's own.
        jit_compile: Whether XLA compiles a Keras model or a SavedModel.

    Raises:
        ModelError: It cannot be loaded; why.
        UsageError: There is no model.
    """
    kind = format_of(path)
    # Each module imports its library, of which not all need be installed.
    if kind == "keras":
        from accel_engine.inference.keras_runtime import open_keras

        return open_keras(path, jit_compile=jit_compile)
    if kind == "savedmodel":
        from accel_engine.inference.savedmodel_runtime import SavedModelRuntime

        return SavedModelRuntime(path, jit_compile=jit_compile)
    if kind == "tflite":
        from accel_engine.inference.litert_runtime import LiteRTRuntime

        return with_encodings(LiteRTRuntime(path, threads=threads), path)
    from accel_engine.inference.onnx_runtime import OnnxRuntime

    return with_encodings(OnnxRuntime(path, threads=threads), path)
