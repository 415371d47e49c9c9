"""The keys of the New run screen."""

from textual.binding import Binding, BindingType

BINDINGS: tuple[BindingType, ...] = (
    Binding("s,ctrl+s", "start", "Start", id="new-run.start", tooltip="Start training"),
    Binding("Q", "queue", "Queue", id="new-run.queue", tooltip="Queue the run until devices are free"),
    Binding(
        "S,f4",
        "search",
        "Search",
        id="new-run.search",
        tooltip="Search for the best values of ranges",
    ),
    Binding("r,ctrl+r", "app.show_runs", "Runs", id="new-run.runs", tooltip="List all runs"),
    Binding(
        "R,f8",
        "race",
        "Race",
        id="new-run.race",
        tooltip="Race the configurations of this plan",
    ),
    Binding("c,f5", "copy", "Copy", id="new-run.copy", tooltip="Copy the equivalent command line"),
    Binding(
        "d,f6",
        "defaults",
        "Defaults",
        id="new-run.defaults",
        show=False,
        tooltip="Reset all fields to their defaults, after a question",
    ),
    Binding(
        "F",
        "measure",
        "Finders",
        id="new-run.measure",
        tooltip="Find a batch size or a learning rate for this plan by measuring",
    ),
    # With priority, as keys that are typed at once after these would else be for what has the focus before.
    Binding(
        "slash",
        "find('/')",
        "Find",
        id="new-run.find",
        tooltip="Find a field by its name or its help",
        priority=True,
    ),
    Binding(
        "f3",
        "find('f3')",
        "Find",
        id="new-run.find-from-field",
        tooltip="Find a field, also while in one",
        priority=True,
    ),
    Binding("down", "app.focus_next", id="new-run.down", tooltip="Next field"),
    Binding("up", "app.focus_previous", id="new-run.up", tooltip="Previous field"),
    Binding("pagedown", "scroll(1)", id="new-run.page-down", tooltip="Scroll down"),
    Binding("pageup", "scroll(-1)", id="new-run.page-up", tooltip="Scroll up"),
    Binding(
        "escape",
        "leave",
        "To Start",
        id="new-run.leave",
        tooltip="Leave the field and go to Start, where letters are keys",
    ),
)
"""Keys that use the plan, find a field, and move between fields; in a field, letters are text."""
