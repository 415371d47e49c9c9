"""Calls the user's function that returns a model, and explains its errors."""

import importlib
import inspect
import linecache
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import tensorflow as tf

from accel_engine.errors import ModelError
from accel_engine.models import UserModel
from accel_engine.text import printable, suggestion

_OUT_OF_MEMORY = (MemoryError, tf.errors.ResourceExhaustedError)
"""Errors that are not caused by the user's code; they are explained elsewhere."""

_imported: set[str] = set()
"""Names of imported user modules, which are imported again each time, as they may have changed."""


def call(model: UserModel, given: Mapping[str, Any]) -> Any:
    """Import the user's module and call the function with those arguments that it has as parameters.

    Args:
        model: A ``file`` or ``module`` model.
        given: The arguments by name.

    Returns:
        The function's return value.

    Raises:
        ModelError: The module or the function does not exist, requires other arguments, or raises.
    """
    folder = Path(model.target).expanduser().resolve().parent if model.kind == "file" else Path.cwd()
    with _explained(model.name, folder):
        function = _function(_module(model, folder), model)
        return function(**_arguments(function, model, given))


def reason(error: BaseException) -> str:
    """The type and message of an exception on one line."""
    return one_line(f"{type(error).__name__}: {error}").removesuffix(":")


def one_line(text: str) -> str:
    """Shorten a message to one line of printable text; Keras' messages have several lines and ANSI codes."""
    return textwrap.shorten(printable(text), 500)


@contextmanager
def _explained(name: str, folder: Path) -> Iterator[None]:
    """Convert errors of the user's code to ``ModelError``, with file and line."""
    try:
        yield
    except (ModelError, *_OUT_OF_MEMORY):
        raise
    except (Exception, SystemExit) as error:
        raise ModelError(f"model {name} failed{_place(error, folder)}: {reason(error)}") from error


def _place(error: BaseException, folder: Path) -> str:
    """The innermost file and line of a traceback in the user's files."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" in {Path(error.filename).name}, line {error.lineno}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if _is_users(frame.filename, folder):
            return f" in {Path(frame.filename).resolve().relative_to(folder)}, line {frame.lineno}"
    return ""


def _module(model: UserModel, folder: Path) -> ModuleType:
    for name in _imported:
        sys.modules.pop(name, None)
    _imported.clear()
    importlib.invalidate_caches()
    linecache.checkcache()
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))  # so that the user's files can import each other
    before = set(sys.modules)
    try:
        return _load_file(model) if model.kind == "file" else importlib.import_module(model.target)
    finally:
        files = {name: getattr(sys.modules[name], "__file__", None) for name in set(sys.modules) - before}
        _imported.update(name for name, file in files.items() if file and _is_users(file, folder))


def _load_file(model: UserModel) -> ModuleType:
    path = Path(model.target).expanduser().resolve()
    taken = path.stem in sys.modules or path.stem in sys.stdlib_module_names
    spec = spec_from_file_location(f"user_{path.stem}" if taken else path.stem, path)
    if spec is None or spec.loader is None:
        raise ModelError(f"{path} is not a Python file")
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _function(module: ModuleType, model: UserModel) -> Callable[..., Any]:
    function: Callable[..., Any] | None = getattr(module, model.function, None)
    if callable(function):
        return function
    if function is not None:
        raise ModelError(f"{model.function} in {model.target} is not a function but {type(function).__name__}")
    own = [name for name, value in vars(module).items() if inspect.isfunction(value) and not name.startswith("_")]
    hint = suggestion(model.function, own) if own else "it has no functions"
    raise ModelError(f"{model.target} has no function {model.function}; {hint}")


def _arguments(function: Callable[..., Any], model: UserModel, given: Mapping[str, Any]) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters
    nameable = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    unknown = [
        name
        for name, parameter in parameters.items()
        if (name not in given or parameter.kind not in nameable)
        and parameter.default is inspect.Parameter.empty
        and parameter.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    ]
    if unknown:
        raise ModelError(
            f"{model.function} in {model.target} requires {', '.join(unknown)}; available arguments: {', '.join(given)}"
        )
    return {name: given[name] for name in parameters if name in given}


def _is_users(file: str, folder: Path) -> bool:
    path = Path(file).resolve()
    return path.is_relative_to(folder) and "site-packages" not in path.parts
