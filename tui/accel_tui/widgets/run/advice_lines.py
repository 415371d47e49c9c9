"""The advice that matters most, in a line each above the charts of a run."""

from textual.content import Content
from textual.events import Click, Resize
from textual.reactive import reactive
from textual.widgets import Static

from accel_engine.advice import Finding
from accel_tui.formatting.text import shorten

SHOWN = 2
"""The number of findings that are shown, a line each."""

SIGN = "⚑"
"""The sign of advice, as in charts."""


class AdviceLines(Static):
    """A line per finding; hidden before the first one. A click opens the Advice screen.

    Lines keep their place when findings go, so that the charts below stay where they are.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    AdviceLines {
        display: none;
        padding: 0 1;
        text-wrap: nowrap;
        &.-shown { display: block; }
        &:hover { background: $surface; }
    }
    """

    _lines = 0

    findings: reactive[tuple[Finding, ...]] = reactive((), layout=True)
    """All findings, those that matter most first."""

    def watch_findings(self) -> None:
        """Show the first of them."""
        self._lines = max(self._lines, min(len(self.findings), SHOWN))
        self.styles.height = self._lines
        self.set_class(self._lines > 0, "-shown")
        self._show()

    def on_resize(self, event: Resize) -> None:
        """Cut the lines to another width."""
        del event
        self._show()

    async def on_click(self, event: Click) -> None:
        """Open the Advice screen."""
        event.stop()
        await self.run_action("screen.advice")

    def _show(self) -> None:
        width = self.size.width or self.app.size.width - 2
        more = len(self.findings) - SHOWN
        keys = [f"A all {len(self.findings)}" if more > 0 else "A advice", ""]
        lines = [_line(each, key, width) for each, key in zip(self.findings, keys, strict=False)]
        self.update(Content("\n").join(lines or [Content.styled("no advice at present", "$text-muted")]))


def _line(finding: Finding, key: str, width: int) -> Content:
    """Title and cost on the left, the key on the right."""
    room = width - len(key) - 2 * bool(key) - 2
    title = shorten(finding.title, room)
    line = Content.assemble((f"{SIGN} ", "bold $text-warning"), title)
    if line.cell_length + 2 + len(finding.cost) <= room:
        line = Content.assemble(line, (f"  {finding.cost}", "$text-muted"))
    return Content.assemble(line.pad_right(max(width - len(key) - line.cell_length, 0)), (key, "$text-muted"))
