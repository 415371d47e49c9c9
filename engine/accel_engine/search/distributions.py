"""The parameters of a search as distributions of Optuna, and Optuna's values as those of fields."""

from collections.abc import Iterable, Mapping
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from accel_engine.search.definition import Parameter
from accel_engine.search.over import LIST


def distributions(parameters: Iterable[Parameter]) -> dict[str, BaseDistribution]:
    """The distribution of each parameter, by the name of its field."""
    return {parameter.name: distribution(parameter) for parameter in parameters}


def distribution(parameter: Parameter) -> BaseDistribution:
    """The distribution of a parameter; choices that are lists are texts to Optuna."""
    if parameter.choices:
        return CategoricalDistribution([as_categorical(choice) for choice in parameter.choices])
    if parameter.low is None or parameter.high is None:
        raise ValueError(f"{parameter.name} has neither a range nor choices")
    if parameter.whole:
        step = 1 if parameter.step is None else int(parameter.step)
        return IntDistribution(int(parameter.low), int(parameter.high), log=parameter.log, step=step)
    return FloatDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)


def as_categorical(value: Any) -> Any:
    """A choice as Optuna stores it: a list is a text."""
    return LIST.join(value) if isinstance(value, list | tuple) else value


def field_values(parameters: Iterable[Parameter], params: Mapping[str, Any]) -> dict[str, Any]:
    """The values of fields, in types of JSON, that Optuna's values stand for."""
    return {each.name: _field_value(each, params[each.name]) for each in parameters if each.name in params}


def _field_value(parameter: Parameter, value: Any) -> Any:
    if parameter.choices:
        return next((choice for choice in parameter.choices if as_categorical(choice) == value), value)
    return int(value) if parameter.whole else float(value)
