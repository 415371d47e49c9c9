"""Draws the importance of each parameter as bars."""

from collections.abc import Mapping

from accel_engine.words.numbers import percent
from accel_tui.formatting import field_labels
from accel_tui.widgets.chart.cell_frame import Frame
from accel_tui.widgets.search.study_styles import write

ABOUT = "share of each parameter in what makes the best tenth good (PED-ANOVA)"

_PARTS = " ▏▎▍▌▋▊▉"


def draw_importance(shares: Mapping[str, float], problem: str, title: str, columns: int, rows: int) -> Frame:
    """Draw a bar per parameter, the most important first; the reason where there are none.

    Args:
        shares: The share of each parameter; together 1.
        problem: Why there are none; empty while they are computed.
        title: In the first row.
        columns: Width in cells.
        rows: Height in cells.
    """
    frame = Frame.blank(columns, rows)
    write(frame, 0, 0, title, "title")
    if not shares:
        write(frame, 0, min(2, rows - 1), problem or "computing…", "note")
        return frame
    write(frame, 0, 1, ABOUT, "note")
    names = {name: field_labels.label(name) for name in shares}
    width = max(map(len, names.values()))
    room = max(columns - width - 8, 1)
    largest = max(shares.values()) or 1.0
    apart = 2 if len(shares) * 2 + 2 <= rows else 1
    for index, (name, share) in enumerate(shares.items()):
        y = 3 + index * apart if apart == 2 else 2 + index
        write(frame, 0, y, names[name].rjust(width), "label")
        write(frame, width + 1, y, _bar(share / largest * room), "primary" if index else "success")
        write(frame, columns - 6, y, percent(share).rjust(6) if share else "    0%", "title")
    return frame


def _bar(cells: float) -> str:
    whole, rest = divmod(round(cells * 8), 8)
    return "█" * whole + (_PARTS[rest] if rest else "")
