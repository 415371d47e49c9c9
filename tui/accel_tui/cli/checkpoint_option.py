"""The option ``--checkpoint`` of commands that use a run's trained model."""

from typing import Any

import click


class Checkpoint(click.ParamType[str]):
    """``auto``, ``best``, ``last`` or a step."""

    name = "checkpoint"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """See :class:`click.ParamType`."""
        if value not in ("auto", "best", "last") and not str(value).isdecimal():
            self.fail(f"{value!r} is neither auto, best, last nor a step", param, ctx)
        return str(value)
