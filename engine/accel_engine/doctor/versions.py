"""Parses version numbers, and compares them with requirements."""

import re

_CLAUSE = re.compile(r"(==|!=|>=|<=|>|<|~=)\s*([\w.*]+)")


def release_numbers(version: str) -> tuple[int, ...]:
    """Parse the release numbers of a version: ``2.20.0rc1`` gives ``(2, 20, 0)``; an empty text gives ``()``."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def satisfies(version: str, ranges: str) -> bool:
    """Whether a version satisfies simple specifiers such as ``<13.0,>=12.5.82``."""
    own = release_numbers(version)
    return all(_satisfies_clause(own, operator, other) for operator, other in _CLAUSE.findall(ranges))


def _satisfies_clause(own: tuple[int, ...], operator: str, text: str) -> bool:
    other = release_numbers(text)
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
