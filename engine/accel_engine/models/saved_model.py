"""Loads a model from a ``.keras`` or ``.h5`` file, with the user's custom objects."""

import inspect
import re
from pathlib import Path
from typing import Any

import keras

from accel_engine import user_code
from accel_engine.errors import ModelError
from accel_engine.models.model_entry import BuildOptions
from accel_engine.user_code import UserFunction, reason
from accel_engine.user_paths import user_path

UNKNOWN_CLASS = re.compile(r"Could not locate (?:class|function) '([^']+)'")
"""Keras' message on a class that it does not know."""

_LAMBDA = ("safe_mode", "unsafe_deserialization")
"""Parts of Keras' messages on lambda layers."""

UNSAFE_NOTE = (
    "the model's file may contain lambda layers, whose code runs with all your rights (--unsafe-load on): "
    "load only files that you trust as you would trust a program"
)
"""A warning for the user of :attr:`BuildOptions.unsafe`."""


def load_saved(path: str, options: BuildOptions) -> Any:
    """Load a model.

    Args:
        path: The ``.keras`` or ``.h5`` file.
        options: The custom objects, and whether lambda layers are loaded.

    Raises:
        ModelError: The file or the custom objects cannot be loaded.
    """
    objects = custom_objects(options.custom_objects) if options.custom_objects else None
    if options.unsafe:
        user_code.note_run()
    try:
        return keras.models.load_model(user_path(path), custom_objects=objects, safe_mode=not options.unsafe)
    except Exception as error:
        raise ModelError(f"cannot load {path}: {_explained(error, options)}") from error


def custom_objects(path: str) -> dict[str, Any]:
    """Import a Python file, and return its public classes and functions by name, except for classes of Keras.

    Raises:
        ModelError: The file cannot be imported, or has no class and no function.
    """
    module = UserFunction(path, "", f"custom objects in {Path(path).name}", ModelError).load_module()
    found = {
        name: value
        for name, value in vars(module).items()
        if (inspect.isclass(value) or inspect.isfunction(value))
        and not name.startswith("_")
        and not str(value.__module__).startswith("keras.")
    }
    if not found:
        raise ModelError(f"{path} has no class and no function for a saved model")
    return found


def _explained(error: Exception, options: BuildOptions) -> str:
    """The error of the file, with what may help."""
    text = str(error)
    if not options.unsafe and any(part in text for part in _LAMBDA):
        return (
            "it has a lambda layer, whose code in the file could do anything that you may do, or a layer that reads "
            "other files. If you trust the file as you would trust a program, add --unsafe-load on"
        )
    if found := UNKNOWN_CLASS.search(text):
        name = f"the class or function {found[1]} is not known"
        if options.custom_objects:
            return f"{name}, and {Path(options.custom_objects).name} does not define it"
        return f"{name}. If it is your own, add --custom-objects FILE.py with the file that defines it"
    return reason(error)
