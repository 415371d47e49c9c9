"""The keys of the Search screen, what each needs, and what is asked before a search is changed."""

from collections.abc import Mapping

from textual.binding import Binding, BindingType

from accel_engine.errors import UsageError
from accel_engine.search.trial import Trial
from accel_engine.words import numbers
from accel_tui.screens.entry_screen import Entry, EntryScreen
from accel_tui.screens.run_actions import SEARCH, run_bindings
from accel_tui.study_state.state import StudyState
from accel_tui.widgets.search.study_view import VIEWS

BINDINGS: tuple[BindingType, ...] = (
    Binding(
        "s", "stop_trial", "Stop", id="search.stop", tooltip="Stop the trial with a checkpoint; it counts; asks first"
    ),
    Binding("delete,backspace", "prune", "Prune", id="search.prune", tooltip="Prune the trial now; asks first"),
    Binding("R", "prolong", "Prolong", id="search.prolong", tooltip="Train the trial for more epochs"),
    Binding("e", "change_trials", "Trials", id="search.trials", tooltip="Change the number of trials"),
    Binding("n", "take", "To form", id="search.take", tooltip="Take the trial's plan into the form of New run"),
    Binding(
        "B",
        "take_best",
        "Best to form",
        id="search.take-best",
        tooltip="Take the best plan into the form of New run",
    ),
    *run_bindings(SEARCH),
    Binding("X", "stop_search", "Stop all", id="search.stop-all", tooltip="Stop the whole search; asks first"),
    Binding("R", "resume_search", "Continue", id="search.resume", tooltip="Continue the search"),
    *(
        Binding(str(number), f"tab({number})", id=f"search.tab-{number}", show=False, tooltip=f"Show {label}")
        for number, label in enumerate(VIEWS.values(), 1)
    ),
    Binding("tab", "next_tab(1)", "View", id="search.next-tab", tooltip="Next view"),
    Binding("shift+tab", "next_tab(-1)", id="search.previous-tab", show=False, tooltip="Previous view"),
    Binding("left", "shift(-1)", id="search.previous-parameter", tooltip="Previous parameter, or pair of them"),
    Binding("right", "shift(1)", id="search.next-parameter", tooltip="Next parameter, or pair of them"),
    Binding("f", "maximize", "Full screen", id="search.full-screen", tooltip="Show only the view, or the table too"),
    Binding("S", "show_searches", "Searches", id="search.list", show=False, tooltip="List all searches"),
)
"""Keys of trials, of the search, and of its views."""


def is_offered(action: str, state: StudyState, trial: Trial | None) -> bool:
    """Whether an action is possible.

    Args:
        action: Its name.
        state: The search.
        trial: The trial under the cursor; ``None`` if there is none.
    """
    is_running = state.is_running
    match action:
        case "stop_trial" | "prune":
            return is_running and trial is not None and trial.state.live
        case "prolong":
            return is_running and trial is not None and not trial.state.live
        case "take":
            return trial is not None
        case "take_best":
            return state.best is not None
        case "change_trials" | "stop_search":
            return is_running
        case "resume_search":
            return state.definition is not None and not is_running
    return True


MAX_COUNT = 100_000
"""The largest number of trials or epochs."""


class CountScreen(EntryScreen[int]):
    """Asks for a number of trials or epochs.

    Args:
        title: What is changed.
        detail: What is asked for.
        noun: What is counted, in the singular.
        count: The number at first.
        effect: What happens with a number, with ``{}`` in its place.
    """

    def __init__(self, title: str, detail: str, noun: str, count: int, effect: str) -> None:
        super().__init__(title, detail, Entry(f"{noun}s", str(count)))
        self._noun, self._effect = noun, effect

    def parse(self, texts: Mapping[str, str]) -> int:
        """Parse the number."""
        return parse_count(texts[f"{self._noun}s"], f"{self._noun}s")

    def effect(self, value: int) -> str:
        """Say what happens."""
        return self._effect.format(numbers.counted(value, self._noun))


def parse_count(text: str, noun: str) -> int:
    """Parse a number from 1.

    Args:
        text: The text; commas and blanks between digits are ignored.
        noun: What is counted, in the plural.

    Raises:
        UsageError: The text is not a number, or out of range.
    """
    try:
        count = int(text.strip().removeprefix("+").replace(",", "").replace(" ", ""))
    except ValueError:
        count = 0
    if not 1 <= count <= MAX_COUNT:
        raise UsageError(f"must be a number of {noun}, from 1 to {MAX_COUNT:,}")
    return count
