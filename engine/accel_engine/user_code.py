"""Imports and calls the user's Python functions, and explains their errors; without TensorFlow."""

import importlib
import inspect
import linecache
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from accel_engine.errors import AccelError, ModelError, cause_first, frames_in, is_disk_full
from accel_engine.text import printable, suggestion
from accel_engine.user_paths import current_directory, resolved_path, user_path

_imported: set[str] = set()
"""Names of imported user modules, which are imported again each time, as they may have changed."""


_has_run = False


def has_run() -> bool:
    """Whether code of the user has run in this process, which it may have changed in any way."""
    return _has_run


def note_run() -> None:
    """Note that code of the user runs from now on."""
    global _has_run
    _has_run = True


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A function in a file or module of the user."""

    target: str
    """The path of a file that ends with ``.py``, or a module's name."""
    function: str
    """The function's name."""
    title: str
    """The beginning of messages, such as ``model nets:build``."""
    error: type[AccelError]
    """The error that is raised for the user's errors."""

    @property
    def file(self) -> Path | None:
        """The file; ``None`` for a module."""
        return resolved_path(user_path(self.target)) if self.target.endswith(".py") else None

    @property
    def folder(self) -> Path:
        """The folder of the user's files."""
        return self.file.parent if self.file else current_directory()

    def load(self) -> Callable[..., Any]:
        """Import the module, and return the function.

        Raises:
            AccelError: The module or the function does not exist, or the import raises; of type :attr:`error`.
        """
        with self.explained():
            return _function(_module(self), self)

    def load_module(self) -> ModuleType:
        """Import the module alone.

        Raises:
            AccelError: The file or module does not exist, or its import raises; of type :attr:`error`.
        """
        with self.explained():
            return _module(self)

    def call(self, function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
        """Call the function with those arguments that it has as parameters.

        Args:
            function: Result of :meth:`load`.
            given: The arguments by name.

        Returns:
            The function's return value.

        Raises:
            AccelError: The function requires other arguments, or raises; of type :attr:`error`.
        """
        with self.explained():
            return function(**_arguments(function, self, given))

    @contextmanager
    def explained(self, doing: str = "failed") -> Iterator[None]:
        """Convert errors of the user's code to :attr:`error`, with file and line.

        Args:
            doing: What the user's code did, for the message.
        """
        try:
            yield
        except (AccelError, MemoryError):
            raise
        except (Exception, SystemExit) as error:
            if type(error).__name__ == "ResourceExhaustedError":  # TensorFlow's; explained elsewhere
                raise
            raise self.error(f"{self.title} {doing}{_place(error, self.folder)}: {reason(error)}") from error


def parameters(function: Callable[..., Any]) -> set[str]:
    """The names of a function's parameters."""
    return set(inspect.signature(function).parameters)


def reason(error: BaseException) -> str:
    """The type and message of an exception on one line."""
    return one_line(f"{type(error).__name__}: {error}").removesuffix(":")


@contextmanager
def model_errors(problem: str) -> Iterator[None]:
    """Raise what libraries, and layers of the user, raise about a model as a ``ModelError``, with the reason.

    A full disk is no fault of the model.

    Args:
        problem: What cannot be done, such as ``the model cannot be traced``.
    """
    try:
        yield
    except Exception as error:  # their exceptions have no common class
        if is_disk_full(error):
            raise ModelError(f"{problem}: the disk is full") from error
        raise ModelError(f"{problem}: {reason(error)}") from error


def one_line(text: str) -> str:
    """Shorten a message to one line of printable text, with its cause first: see :func:`cause_first`."""
    return textwrap.shorten(printable(cause_first(text)), 500)


def _place(error: BaseException, folder: Path) -> str:
    """The innermost file and line of a traceback in the user's files."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" in {Path(error.filename).name}, line {error.lineno}"
    frames = [(frame.filename, str(frame.lineno)) for frame in traceback.extract_tb(error.__traceback__)]
    # The message of an error in TensorFlow's own threads, or in another process, contains the traceback.
    frames += [(file, str(line)) for file, line in frames_in(str(error))]
    for file, line in reversed(frames):
        if _is_users(file, folder):
            return f" in {Path(file).resolve().relative_to(folder)}, line {line}"
    return ""


def _module(user: UserFunction) -> ModuleType:
    note_run()
    for name in _imported:
        sys.modules.pop(name, None)
    _imported.clear()
    importlib.invalidate_caches()
    linecache.checkcache()
    if str(user.folder) not in sys.path:
        sys.path.insert(0, str(user.folder))  # so that the user's files can import each other
    before = set(sys.modules)
    # Python would take a cached module for a file that was changed within a second and kept its size.
    writes_cache, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        return _load_file(user, user.file) if user.file else importlib.import_module(user.target)
    finally:
        sys.dont_write_bytecode = writes_cache
        files = {name: getattr(sys.modules[name], "__file__", None) for name in set(sys.modules) - before}
        _imported.update(name for name, file in files.items() if file and _is_users(file, user.folder))


def _load_file(user: UserFunction, path: Path) -> ModuleType:
    taken = path.stem in sys.modules or path.stem in sys.stdlib_module_names
    spec = spec_from_file_location(f"user_{path.stem}" if taken else path.stem, path)
    if spec is None or spec.loader is None:
        raise user.error(f"{path} is not a Python file")
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _function(module: ModuleType, user: UserFunction) -> Callable[..., Any]:
    function: Callable[..., Any] | None = getattr(module, user.function, None)
    if function is not None and (other := _instead_of_function(function)):
        raise user.error(not_a_function(user, other))
    if function is not None:
        return function
    own = [name for name, value in vars(module).items() if inspect.isfunction(value) and not name.startswith("_")]
    hint = suggestion(user.function, own) if own else "it has no functions"
    raise user.error(f"{user.target} has no function {user.function}; {hint}")


def not_a_function(user: UserFunction, other: str) -> str:
    """Say that a name is something else than a function, and what would be right."""
    of_object = f"write one that returns it, e.g. def make(): return {user.function}"
    right = "name a function in it" if other == "a module" else of_object
    return f"{user.function} in {user.target} is {other}, not a function: {right}"


def _instead_of_function(value: Any) -> str:
    """The kind of a value that cannot be called, or of a Keras model, which takes inputs; empty for a function."""
    if isinstance(value, ModuleType):
        return "a module"
    of_keras = [base.__name__ for base in type(value).__mro__ if base.__module__.startswith("keras.")]
    if "Model" in of_keras:
        return "a model"
    return "" if callable(value) else f"a value of the type {type(value).__name__}"


def _arguments(function: Callable[..., Any], user: UserFunction, given: Mapping[str, Any]) -> dict[str, Any]:
    wanted = inspect.signature(function).parameters
    nameable = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    unknown = [
        name
        for name, parameter in wanted.items()
        if (name not in given or parameter.kind not in nameable)
        and parameter.default is inspect.Parameter.empty
        and parameter.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    ]
    if unknown:
        raise user.error(
            f"{user.function} in {user.target} requires {', '.join(unknown)}; available arguments: {', '.join(given)}"
        )
    return {name: given[name] for name in wanted if name in given}


def _is_users(file: str, folder: Path) -> bool:
    path = Path(file).resolve()
    return path.is_relative_to(folder) and "site-packages" not in path.parts
