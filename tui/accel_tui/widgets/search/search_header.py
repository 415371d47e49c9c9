"""The header of the Search screen: how far the search is, and what it has found."""

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from accel_tui.study_state import texts
from accel_tui.study_state.state import StudyState


class SearchHeader(Vertical):
    """Two lines: progress, and the best trial beside its plan trained again; progress alone has both."""

    DEFAULT_CSS = """
    SearchHeader {
        height: 2;
        Static { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
        &.-progress-only #progress { height: 2; text-wrap: wrap; }
        &.-progress-only #best { display: none; }
    }
    """

    def compose(self) -> ComposeResult:
        """Compose the lines."""
        yield Static("reading the search…", id="progress", markup=False)
        yield Static(id="best", markup=False)

    def show(self, state: StudyState, problem: str) -> None:
        """Show a state, or why it cannot be read."""
        word, colour = texts.state_of_study(state)
        progress = Content.assemble((word, f"${colour}"), ("  " + texts.progress_text(state), "$text-muted"))
        self._update("progress", Content.styled(problem, "$text-error") if problem else progress)
        best = best_line(state)
        self._update("best", best)
        self.set_class(not best.plain, "-progress-only")

    def _update(self, line: str, content: Content) -> None:
        shown = self.query_one(f"#{line}", Static)
        if shown.content != content:
            shown.update(content)


def best_line(state: StudyState) -> Content:
    """The search's own best, and beside it the mean and the spread of the plan trained again."""
    parts: list[tuple[str, str]] = [(texts.best_text(state, state.monitor), "$success")]
    if confirmed := texts.confirmation_text(state):
        parts.append((("  ·  " if parts[0][0] else "") + confirmed, "bold"))
    if len(state.objectives) > 1 and state.front:
        parts.append((f"  ·  {len(state.front)} on the front", "$text-muted"))
    return Content.assemble(*parts)
