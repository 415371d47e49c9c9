"""Warnings of a run, the engine's answers to commands, and the number of damaged records."""

import time
from pathlib import Path

from textual.content import Content

from accel_engine.events import PlanChanged, Recovered, Warned
from accel_tui.formatting.runs import left_out, plan_change
from accel_tui.run_state.state import Notice, RunState
from accel_tui.widgets.run.run_text import RunText


class Notices(RunText):
    """Warnings and answers to commands, newest first."""

    DEFAULT_CSS = """
    Notices {
        height: auto;
    }
    """

    def build(self, state: RunState) -> Content:
        """A paragraph per notice."""
        if not state.notices:
            return Content.styled("none", "$text-muted")
        # no screen has room for more
        return Content("\n").join(_notice(notice) for notice in reversed(state.notices[-60:]))


def _notice(notice: Notice) -> Content:
    at = (time.strftime("%H:%M:%S ", time.localtime(notice.time)), "$text-muted")
    if isinstance(notice, Warned):
        mark = ("· ", "$text-muted") if notice.severity == "information" else ("! ", "bold $warning")
        return Content.assemble(at, mark, notice.message)
    if isinstance(notice, Recovered):
        text = f"{notice.reason}: {notice.action}, from step {notice.step:,}"
        return Content.assemble(at, ("↻ ", "bold $warning"), text)
    if isinstance(notice, PlanChanged):
        return Content.assemble(at, ("· ", "$text-muted"), plan_change(notice))
    if notice.obeyed:
        return Content.assemble(at, ("✓ ", "$success"), notice.answer)
    return Content.assemble(at, ("✗ ", "$error"), f"{notice.command.replace('_', ' ')}: {notice.answer}")


class DamageLine(RunText):
    """A line with the number of damaged records; hidden without any."""

    DEFAULT_CSS = """
    DamageLine {
        display: none;
        height: 1;
        padding: 0 1;
        color: $warning;
    }
    """

    def set_state(self, state: RunState) -> None:
        """Set the state; shown if records are damaged."""
        self.display = state.damaged > 0
        super().set_state(state)

    def build(self, state: RunState) -> Content:
        """The count, and the command that saves the rest."""
        return Content(left_out(state.damaged, state.info.directory if state.info else Path("RUN")))
