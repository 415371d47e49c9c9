"""What the user should know, and what the engine answered."""

import time

from textual.content import Content

from accel_engine.events import Warned
from accel_tui.run.state import Notice, RunState
from accel_tui.widgets.run.run_text import RunText


class Notices(RunText):
    """Warnings and answers to commands, the newest first; as many as there is room for."""

    DEFAULT_CSS = """
    Notices {
        height: auto;
    }
    """

    def words(self, state: RunState) -> Content:
        """A paragraph for each notice."""
        if not state.notices:
            return Content.styled("none", "$text-muted")
        # More than fit on any screen would be set for nothing.
        return Content("\n").join(_notice(notice) for notice in reversed(state.notices[-60:]))


def _notice(notice: Notice) -> Content:
    at = (time.strftime("%H:%M:%S ", time.localtime(notice.time)), "$text-muted")
    if isinstance(notice, Warned):
        return Content.assemble(at, ("! ", "bold $warning"), notice.message)
    sign = ("✓ ", "$success") if notice.obeyed else ("✗ ", "$error")
    return Content.assemble(at, sign, notice.answer)
