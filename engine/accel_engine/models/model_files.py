"""Which files have a Keras model, and why others have none; without TensorFlow."""

from contextlib import suppress
from pathlib import Path

from accel_engine.user_paths import exists, is_directory, is_file

MODEL_FILES = (".keras", ".h5")
"""Suffixes of files that Keras loads a model from."""

WEIGHTS = ".weights.h5"
"""Suffix of the files of ``model.save_weights``."""

SAVED_MODEL = "saved_model.pb"
"""The file that a directory with a SavedModel has."""

SIGNATURE = "serving_default"
"""The signature of a SavedModel that servers call unless a request names another."""

_ONLY_RUN = {".tflite": "a TFLite model", ".onnx": "an ONNX model", ".pb": "a TensorFlow graph"}
"""Suffixes of models that have lost their layers."""


def is_model_file(name: str) -> bool:
    """Whether a file of this name has a Keras model."""
    return name.endswith(MODEL_FILES) and not name.endswith(WEIGHTS)


def is_saved_model(path: Path) -> bool:
    """Whether a path names the directory of a SavedModel, or one with numbered versions of it."""
    with suppress(OSError):  # a directory that may not be read
        if is_directory(path):
            versions = (each for each in path.iterdir() if each.name.isdecimal())
            return any(is_file(each / SAVED_MODEL) for each in (path, *versions))
    return False


def why_no_layers(path: Path) -> str:
    """Why Keras cannot load a model from what is at a path, and what would do; empty if nothing says so.

    Args:
        path: A file or directory, which need not exist.
    """
    what = "a SavedModel" if is_saved_model(path) else _ONLY_RUN.get(path.suffix.lower(), "")
    if what:
        return (
            f"{what} has no Keras layers any more: give the run or the FILE.keras that it was exported from, or save "
            "the model again with model.save('FILE.keras')"
        )
    if path.name.endswith(WEIGHTS):
        return (
            "it has weights without their layers: build the model in Keras, load them with "
            "model.load_weights, and save both with model.save('FILE.keras')"
        )
    if path.suffix.lower() in (".hdf5", ".pt", ".pth", ".safetensors", ".ckpt", ".index") and exists(path):
        return "Keras loads models from FILE.keras and FILE.h5: save it as one of these with model.save"
    return ""
