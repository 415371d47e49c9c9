"""Legend of the colours of masks."""

from rich.color import Color as RichColor
from rich.style import Style

from accel_engine.run.diagnostics import OutputReport, SegmentationReport
from accel_tui.widgets.diagnostics.pixels import CLASS_SIGNS
from accel_tui.widgets.diagnostics.view_pictures import class_colour

LegendSpan = tuple[str, Style | None]
"""Text and its style; ``None`` for plain text."""


def mask_legend(report: OutputReport, width: int, *, blocks: bool) -> list[LegendSpan] | None:
    """The colours and names of as many classes as fit; ``None`` if the report has no masks.

    Args:
        report: The report.
        width: In cells.
        blocks: Whether masks are drawn in colours; else the signs of classes are named.
    """
    if not isinstance(report, SegmentationReport):
        return None
    spans: list[LegendSpan] = []
    for index, name in enumerate(report.names):
        sign, style = CLASS_SIGNS[index % len(CLASS_SIGNS)], None
        if blocks:
            sign, style = "██", Style(color=RichColor.from_rgb(*class_colour(index)))
        entry: list[LegendSpan] = [(sign, style), (f" {name}   ", None)]
        more = f"and {len(report.names) - index} more"
        if sum(len(text) for text, _ in [*spans, *entry]) + (len(more) if index + 1 < len(report.names) else 0) > width:
            return [*spans, (more, None)]
        spans += entry
    return spans
