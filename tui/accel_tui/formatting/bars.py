"""Bars and intervals as text, on a scale of some cells; all are also readable in ASCII."""

import math


def bar(share: float, width: int, *, rest: str = "") -> str:
    """A bar in halves of a cell. Bars of neighbouring rows stay apart, as blocks would not.

    Args:
        share: From 0 to 1.
        width: Cells of a share of 1.
        rest: Fills the cells after it; none by default.
    """
    halves = round(2 * width * min(max(share, 0.0), 1.0)) if math.isfinite(share) else 0
    whole, part = divmod(max(halves, 1) if share > 0 else halves, 2)
    text = "━" * whole + "╸" * part
    return text + rest * (width - len(text))


def interval(
    low: float, value: float, high: float, ends: tuple[float, float], width: int, *, origin: float = math.nan
) -> str:
    """A value and its confidence interval at their places on a scale, as ``├──●─┤``.

    Args:
        low: The lower end of the interval; not a number if it is unknown, as is ``high`` then.
        value: The value.
        high: The upper end.
        ends: The values at the first and at the last cell.
        width: Cells of the scale.
        origin: A value that has a dashed line; none by default.
    """
    first, last = ends
    cells = [" "] * width

    def place(number: float) -> int:
        share = (number - first) / (last - first) if last > first else 0.5
        return min(max(round(share * (width - 1)), 0), width - 1)

    if not math.isfinite(value) or width < 1:
        return " " * width
    if math.isfinite(origin):
        cells[place(origin)] = "┊"
    if math.isfinite(low) and math.isfinite(high):
        left, right = place(low), place(high)
        cells[left : right + 1] = "─" * (right - left + 1)
        cells[left], cells[right] = ("├", "┤") if left < right else ("│", "│")
    cells[place(value)] = "●"
    return "".join(cells)
