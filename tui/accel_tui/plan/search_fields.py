"""Ranges and lists of values in fields of the form: what varies in a search. Other fields are the plan's own."""

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accel_engine.errors import PlanError, Words
from accel_engine.plan import SPECS, Plan
from accel_engine.plan.plan import default_text, option_words
from accel_engine.search.definition import Parameter
from accel_engine.search.ranges import RANGE, format_over, format_value, format_values, parameter_of
from accel_engine.text import shell_command
from accel_engine.words import numbers
from accel_tui.plan import field_labels

_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})*,0\d{2}")
"""A number with commas between thousands whose last group begins with 0, as no number of a list does: ``60,000``."""

_NUMBERS = re.compile(r"[-+.\de]+\.\.[-+.\de]+(:.*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SplitTexts:
    """The texts of a form, ranges apart."""

    texts: Mapping[str, str]
    """The text of each field; of one that varies, the first value's."""
    parameters: Mapping[str, Parameter]
    """What varies, by field."""
    errors: Mapping[str, Words]
    """What is wrong with ranges, by field."""


def is_range(name: str, text: str) -> bool:
    """Whether the text of a field is a range or a list of values, be it valid or not.

    Of a field that takes numbers, ``LOW..HIGH`` and values between commas; of one with choices, several of them.
    """
    spec = SPECS[name]
    if spec.type in (int, float):
        return RANGE in text or ("," in text and not _THOUSANDS.fullmatch(text.replace(" ", "")))
    return spec.type is str and "," in text and (bool(spec.choices) or name == "model")


def looks_like_range(name: str) -> bool:
    """Whether the name of a run is the range of another field, typed in the wrong place."""
    return bool(_NUMBERS.fullmatch(name.strip()))


def split(texts: Mapping[str, str]) -> SplitTexts:
    """Take the ranges out of the texts of a form."""
    plain, parameters, errors = dict(texts), dict[str, Parameter](), dict[str, Words]()
    for name, text in texts.items():
        if is_range(name, text):
            try:
                parameters[name] = found = parameter_of(name, text.strip())
                plain[name] = format_value(_first_value(found))
            except PlanError as error:
                plain[name], errors[name] = default_text(name), error.reason
    return SplitTexts(plain, parameters, errors)


def _first_value(parameter: Parameter) -> Any:
    """The first choice, or the lower end."""
    return parameter.choices[0] if parameter.choices else parameter.low


def describe_parameters(parameters: Sequence[Parameter]) -> str:
    """The parameters for the summary: ``2 parameters: learning rate, batch size``."""
    names = ", ".join(field_labels.label(each.name) for each in parameters)
    return f"{numbers.counted(len(parameters), 'parameter')}: {names}. S searches; figures are for the first values"


def search_command(plan: Plan, parameters: Sequence[Parameter], always: Container[str] = ()) -> str:
    """The shell command that searches, without fields at their defaults.

    Args:
        plan: The plan that all trials share.
        parameters: What varies.
        always: Fields to include anyway, because a setting overrides their defaults.
    """
    varying, changed = {each.name for each in parameters}, plan.changed()
    words = ["accel-tui", "search"]
    for name, value in plan.to_mapping().items():
        if name not in varying and (name in changed or name in always):
            words += option_words(name, value)
    for each in parameters:
        words += ["--over", format_over(each)]
    return shell_command(words)


def range_texts(parameters: Sequence[Parameter]) -> dict[str, str]:
    """The range of each parameter as the text of its field."""
    return {each.name: format_values(each) for each in parameters}
