"""A finding in words: what it is, what it follows from, what it costs."""

from collections.abc import Iterator

from textual.content import Content

from accel_engine.advice import Finding
from accel_tui.formatting.advice import evidence_text
from accel_tui.formatting.wrapping import hanging


def finding_content(finding: Finding, width: int, *, has_title: bool = True) -> Content:
    """Confidence, cost and evidence of a finding.

    Args:
        finding: The finding.
        width: Cells of a line.
        has_title: Whether the title comes first.
    """
    title = [Content.styled(finding.title, "bold $accent")] if has_title else []
    return Content("\n").join([*title, *_lines(finding, width)])


def _lines(finding: Finding, width: int) -> Iterator[Content]:
    yield Content.assemble(
        (str(finding.confidence), "$text-muted"), ("   cost: ", "$text-muted"), (finding.cost, "$text-warning")
    )
    yield Content("")
    yield Content.styled("Evidence", "bold $primary")
    for each in finding.evidence:
        lines = hanging(evidence_text(each), width - 2, "")
        yield Content("\n").join(
            [Content.assemble(("· ", "$text-muted"), lines[0]), *(Content(f"  {line}") for line in lines[1:])]
        )
