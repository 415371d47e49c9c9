"""The type of options that are finite numbers."""

import math
from typing import Any

import click


class FiniteNumber(click.FloatRange):
    """A number in a range; :class:`click.FloatRange` also takes ``nan`` and, without a maximum, ``inf``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """See :class:`click.ParamType`."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number
