"""Sparkline: a history in a single row of text."""

import math
from collections.abc import Sequence

_BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float | None], columns: int, low: float = 0, high: float = 100) -> str:
    """Draw the latest values as a row of blocks, the newest at the right.

    Args:
        values: Oldest first; ``None`` or NaN if missing.
        columns: Width in characters, one per value.
        low: Value of the lowest block.
        high: Value of the full block.

    Returns:
        Exactly ``columns`` characters; a space for each missing value.
    """
    latest = values[-columns:] if columns > 0 else ()
    return "".join(_block(value, low, high) for value in latest).rjust(columns)


def _block(value: float | None, low: float, high: float) -> str:
    if value is None or math.isnan(value):
        return " "
    share = (value - low) / (high - low)
    return _BLOCKS[round(min(max(share, 0.0), 1.0) * (len(_BLOCKS) - 1))]
