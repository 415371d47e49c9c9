"""The types of the options of ``accel-tui bench``: latencies, and lists."""

import re
from typing import Any

import click

from accel_engine.errors import UsageError
from accel_tui.plan.bench_choices import latency, words

_SIZE = re.compile(r"[1-9]\d{0,8}", re.ASCII)


class Latency(click.ParamType[float]):
    """A time with its unit, such as ``10ms``; gives seconds."""

    name = "latency"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """See :class:`click.ParamType`."""
        if isinstance(value, float):
            return value
        try:
            return latency(str(value))
        except UsageError as error:
            self.fail(str(error), param, ctx)


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
        try:
            return words(str(value), self._pattern, self._examples)
        except UsageError as error:
            self.fail(str(error), param, ctx)
