"""The lines around the charts of a run: title, progress and advice."""

from textual.app import ComposeResult
from textual.content import Content
from textual.events import Click, Resize
from textual.reactive import reactive
from textual.widgets import Static

from accel_engine.advice import Finding
from accel_engine.events import Outcome
from accel_engine.words import numbers
from accel_tui.formatting.text import base_name, shorten
from accel_tui.run_state.state import RunState
from accel_tui.widgets.key_bar import RunsBadge
from accel_tui.widgets.run.run_events import SIGN
from accel_tui.widgets.run.run_view import RunLine, RunText, row
from accel_tui.widgets.styled_text import TextSpan


class RunTitle(RunText):
    """Run id, model and data, and machine."""

    DEFAULT_CSS = """
    RunTitle {
        height: 1;
        padding: 0 1;
        background: $surface;
    }
    """

    def inputs(self, state: RunState) -> tuple[object, ...]:
        """All that the text depends on."""
        return state.info, self.width

    def build(self, state: RunState) -> Content:
        """Run id, name, model and data at the left, machine at the right."""
        info = state.info
        if info is None:
            return Content("")
        values = info.plan_values
        # a valid name is part of the id already; the name of a script is its data
        name = info.name if not info.id.endswith(f"-{info.name}") and info.name != values.get("data") else ""
        trains = " on ".join(base_name(str(value)) for field in ("model", "data") if (value := values.get(field)))
        strategy = values.get("strategy")
        trains += f", strategy {strategy}" if strategy not in (None, "", "default") else ""
        if info.source:
            trains = f"imported from {base_name(info.source.path)}"
        if info.bench:
            trains = f"inference, {info.bench}"
        left = Content.assemble(
            ("accel-tui", "bold $accent"),
            (f"  {info.id}", "bold"),
            f"  {name}" if name else "",
            (f"  {trains}", "$text-muted"),
        )
        where = f"{info.host}, process {info.pid}" if info.pid and info.status.live else info.host
        return row(left, Content.styled(where, "$text-muted"), max(self.width - RunsBadge.ROOM, 1))

    def compose(self) -> ComposeResult:
        """Compose the badge."""
        yield RunsBadge()


class ProgressLine(RunLine):
    """A bar over all epochs, or the epochs of a script's part; percentage, elapsed and remaining time."""

    def spans(self, state: RunState) -> list[TextSpan]:
        """The bar and its figures; an empty bar while the number of steps is unknown, a full one of a finished run."""
        if state.info and state.info.bench:
            return []  # it is stored once it is measured
        share = state.progress if state.progress is not None else float(_has_finished(state))
        is_known = state.progress is not None or not (state.is_launched or state.lost)
        tail = f" {int(share * 100):3}%" if is_known else ""  # never 100% before the last step
        if state.part and is_known:
            tail += f" of part {state.part.started.part}"
        if state.live and (elapsed := state.elapsed(state.now)) is not None:
            tail += f"   {numbers.duration(elapsed)} elapsed"
            if (left := state.remaining) is not None:
                tail += f"   {numbers.duration(left)} left"
            elif state.built and not (state.total_steps or state.is_between_parts):
                tail += "   ETA after the first epoch"
        elif ends_early := _early_end(state):
            share, tail = 1.0, f" {ends_early}"
        width = max(0, self.width - len(tail))
        halves = int(share * width * 2)
        style = "$warning" if state.paused else "$error" if state.lost else "$primary"
        done = "━" * (halves // 2) + "╸" * (halves % 2)
        return [(done, style), ("─" * (width - len(done)), "$foreground 20%"), (tail, "")]


def _has_finished(state: RunState) -> bool:
    return state.has_ended and state.ended is not None and state.ended.outcome is Outcome.FINISHED


def _early_end(state: RunState) -> str:
    """How far a run came that finished before its last step, as by early stopping; empty for any other."""
    ended, built, total = state.ended, state.built, state.total_steps
    if state.is_launched or not (ended and built and total and state.step < total and _has_finished(state)):
        return ""
    if not built.epochs:
        return f"ended early, after {state.step:,} of {numbers.counted(total, 'step')}"
    return f"ended early, after {ended.epochs:,} of {numbers.counted(built.epochs, 'epoch')}"


SHOWN = 2
"""The number of findings that are shown, a line each."""


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
        self._lines = max(self._lines, min(len(self.findings), SHOWN))
        self.styles.height = self._lines
        self.set_class(self._lines > 0, "-shown")
        self._show()

    def on_resize(self, event: Resize) -> None:
        self._show()

    async def on_click(self, event: Click) -> None:
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
