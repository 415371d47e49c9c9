"""The requests by name: each module of :mod:`accel_engine.requests` has one, its ``REQUEST``."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from accel_engine import requests
from accel_engine.errors import UsageError
from accel_engine.requests.protocol.request import EngineRequest


def names() -> tuple[str, ...]:
    """The names of all requests, without importing them."""
    import pkgutil  # which a program that asks does not need

    return tuple(module.name for module in pkgutil.iter_modules(requests.__path__) if not module.ispkg)


def find(name: str) -> type[EngineRequest[Any]]:
    """The request of a name.

    Raises:
        UsageError: There is none.
    """
    if name not in names():
        raise UsageError(f"there is no request {name!r}, but {', '.join(names())}")
    found: type[EngineRequest[Any]] = import_module(f"{requests.__name__}.{name}").REQUEST
    return found


def name_of(request: type[EngineRequest[Any]]) -> str:
    """The name of a request: its module's name."""
    return request.__module__.rpartition(".")[2]


def function_of(request: type[EngineRequest[Any]]) -> Callable[..., Any]:
    """Import what answers a request; in an engine process, as this may import TensorFlow."""
    module, _, name = request.function.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found
