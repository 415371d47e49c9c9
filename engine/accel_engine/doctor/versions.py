"""Versions as numbers, and the ranges of them that packages ask for."""

import re

_CLAUSE = re.compile(r"(==|!=|>=|<=|>|<|~=)\s*([\w.*]+)")


def numbers(version: str) -> tuple[int, ...]:
    """The numbers of a release: ``2.20.0rc1`` gives ``(2, 20, 0)``; nothing gives ``()``."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def fits(version: str, ranges: str) -> bool:
    """Whether a version is within ranges such as ``<13.0,>=12.5.82``, as far as they are simple."""
    own = numbers(version)
    return all(_holds(own, operator, other) for operator, other in _CLAUSE.findall(ranges))


def _holds(own: tuple[int, ...], operator: str, text: str) -> bool:
    other = numbers(text)
    width = max(len(own), len(other))
    left, right = (value + (0,) * (width - len(value)) for value in (own, other))
    if text.endswith(".*"):
        left, right = own[: len(other)], other
    match operator:
        case "==":
            return left == right
        case "!=":
            return left != right
        case ">=":
            return left >= right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case "<":
            return left < right
    return left >= right and own[: len(other) - 1] == other[:-1]
