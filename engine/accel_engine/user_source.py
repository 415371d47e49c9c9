"""Checks a function of the user by its source, without running it; without TensorFlow.

Importing the user's files may import TensorFlow, which takes seconds. What their text tells is reported before that.
"""

import ast
import importlib.util
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path

from accel_engine.errors import AccelError, UsageError
from accel_engine.text import suggestion
from accel_engine.user_code import UserFunction, not_a_function

_DYNAMIC = frozenset({"exec", "globals", "locals", "setattr", "vars"})
"""Functions by which a module may get names that its text does not show."""


def check_source(user: UserFunction, given: Sequence[str]) -> frozenset[str] | None:
    """Check that a function exists and can be called.

    Args:
        user: The function.
        given: Names of the arguments that it may ask for.

    Returns:
        The names of its parameters; ``None`` where only running the code can tell.

    Raises:
        AccelError: The file or module does not exist or has a syntax error, or the function does not exist or requires
            other arguments; of type :attr:`UserFunction.error`.
    """
    path = user.file or _module_file(user)
    if path is None:
        return None
    with user.explained(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(path.read_bytes(), str(path))
        compile(tree, str(path), "exec", dont_inherit=True)  # finds further errors of syntax
    names = list(_names(tree.body))
    made = [function for name, function in names if name == user.function]
    if not made and not _may_have_more_names(tree):
        own = [name for name, function in names if function is not None and not name.startswith("_")]
        hint = suggestion(user.function, own) if own else "it has no functions"
        raise _usage_error(user, f"{user.target} has no function {user.function}; {hint}")
    if made and (other := _instead_of_function(tree, user.function)):
        raise _usage_error(user, not_a_function(user, other))
    # A decorator may change what the function takes.
    known = len(made) == 1 and made[0] is not None and not made[0].decorator_list
    return _parameters(made[0], user, given) if known and made[0] is not None else None


def _usage_error(user: UserFunction, message: str) -> AccelError:
    """An error of wrong usage, as nothing was started."""
    error = user.error(message)
    error.exit_status = UsageError.exit_status
    return error


def _parameters(function: ast.FunctionDef, user: UserFunction, given: Sequence[str]) -> frozenset[str]:
    """The names of a function's parameters.

    Raises:
        AccelError: The function requires parameters that it may not ask for.
    """
    of = function.args
    positional = [*of.posonlyargs, *of.args]
    required = positional[: len(positional) - len(of.defaults)]
    required += [each for each, default in zip(of.kwonlyargs, of.kw_defaults, strict=True) if default is None]
    unknown = [each.arg for each in required if each.arg not in given or each in of.posonlyargs]
    if unknown:
        needs = f"requires {', '.join(unknown)}; available arguments: {', '.join(given)}"
        raise _usage_error(user, f"{user.function} in {user.target} {needs}")
    return frozenset(each.arg for each in (*positional, *of.kwonlyargs))


def _names(body: Sequence[ast.AST]) -> Iterator[tuple[str, ast.FunctionDef | None]]:
    """Yield the names that statements of a module define, with the function if it is one."""
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, None
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0], None
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, None
        elif not isinstance(node, ast.Lambda):
            yield from _names(list(ast.iter_child_nodes(node)))


def _instead_of_function(tree: ast.Module, name: str) -> str:
    """What the last statement that gives a module the name makes of it, where its text tells; else empty."""
    found = ""
    for node in tree.body:
        if not any(each == name for each, _ in _names([node])):
            continue
        is_value = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        found = "a module" if isinstance(node, ast.Import) else ""
        if isinstance(node, ast.Assign) and is_value:
            found = _kind_of_value(node.value)
    return found


def _kind_of_value(value: ast.expr) -> str:
    if isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in ("Sequential", "Model"):
        return "a model"
    literal = isinstance(value, ast.Constant | ast.Tuple | ast.List | ast.Dict | ast.Set)
    return "a value" if literal else ""


def _may_have_more_names(tree: ast.Module) -> bool:
    """Whether a module may define names that its text does not show."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            return True
        if isinstance(node, ast.Global) or (isinstance(node, ast.FunctionDef) and node.name == "__getattr__"):
            return True
        if isinstance(node, ast.Name) and node.id in _DYNAMIC:
            return True
    return False


def _module_file(user: UserFunction) -> Path | None:
    """The Python file of a module; ``None`` if only importing it can tell.

    Raises:
        AccelError: There is no such module.
    """
    parts, path, file = user.target.split("."), [str(user.folder), *sys.path], None
    for index, part in enumerate(parts):
        name = ".".join(parts[: index + 1])
        spec = PathFinder.find_spec(part, path)  # with the whole name, it would need the imported package
        if spec is None and not index:  # such as one of an editable installation
            with suppress(ImportError, ValueError, AttributeError):
                spec = importlib.util.find_spec(name)
        if spec is None:
            if file is not None and re.search(rb"__path__|sys\.modules", file.read_bytes()):
                return None  # the package finds its modules in its own way
            raise user.error(f"{user.title} failed: there is no module {name}")
        path = list(spec.submodule_search_locations or ())
        file = Path(spec.origin) if spec.origin and spec.origin.endswith(".py") else None
    return file
