"""The types of the options of ``accel-tui bench``: latencies, and lists."""

import math
import re
from collections.abc import Sequence
from typing import Any

import click

_LATENCY = re.compile(r"(\d+(?:\.\d+)?)\s*(us|µs|ms|s)")
_SIZE = re.compile(r"[1-9]\d{0,8}", re.ASCII)
_UNITS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


class Latency(click.ParamType[float]):
    """A time with its unit, such as ``10ms``; gives seconds."""

    name = "latency"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """See :class:`click.ParamType`."""
        if isinstance(value, float):
            return value
        found = _LATENCY.fullmatch(str(value).strip())
        if not found or not 0 < float(found[1]) < math.inf:
            self.fail(f"{value!r} is no latency: give one with its unit, such as 10ms, 500us or 1.5s", param, ctx)
        return float(found[1]) * _UNITS[found[2]]


class Sizes(click.ParamType[tuple[int, ...]]):
    """Positive whole numbers, separated by commas."""

    name = "sizes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """See :class:`click.ParamType`."""
        if isinstance(value, tuple):
            return value
        parts = [part.strip() for part in str(value).split(",")]
        if not all(_SIZE.fullmatch(part) for part in parts):
            self.fail(f"{value!r} are no batch sizes: give positive whole numbers, such as 1,8,32", param, ctx)
        return tuple(dict.fromkeys(map(int, parts)))


class Words(click.ParamType[tuple[str, ...]]):
    """Words, separated by commas.

    Args:
        pattern: A regular expression of a word.
        examples: For the message about another one.
    """

    name = "words"

    def __init__(self, pattern: str, examples: str) -> None:
        self._pattern = pattern
        self._examples = examples

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """See :class:`click.ParamType`."""
        if isinstance(value, tuple):
            return value
        parts: Sequence[str] = [part.strip() for part in str(value).split(",")]
        for part in parts:
            if not re.fullmatch(self._pattern, part):
                self.fail(f"{part!r} is none of {self._examples}", param, ctx)
        return tuple(dict.fromkeys(parts))
