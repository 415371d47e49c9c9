"""Calls the user's function that returns a model."""

from collections.abc import Mapping
from typing import Any

from accel_engine.errors import ModelError
from accel_engine.models import UserModel
from accel_engine.user_code import UserFunction, one_line, reason
from accel_engine.user_source import check_source

__all__ = ["ARGUMENTS", "call", "check_model_function", "one_line", "reason"]

ARGUMENTS = ("input_shape", "classes", "num_classes", "class_names", "vocabulary", "element_spec")
"""Names of the arguments that a function may ask for."""


def check_model_function(model: UserModel) -> None:
    """Check by its source that a function exists and asks for known arguments only, without running it.

    Raises:
        ModelError: It does not, or its file has a syntax error.
    """
    if model.function:
        check_source(_function(model), ARGUMENTS)


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
    user = _function(model)
    return user.call(user.load(), given)


def _function(model: UserModel) -> UserFunction:
    return UserFunction(model.target, model.function, f"model {model.name}", ModelError)
