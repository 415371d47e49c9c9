"""The keys of the New run screen, its hints, and what it does with its plan besides showing it."""

import asyncio
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Button

from accel_engine.devices.device_types import Device
from accel_engine.plan import SPECS, Plan
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.search.definition import Parameter, SearchOptions
from accel_engine.search.ranges import format_values
from accel_engine.text import printable, printable_line
from accel_engine.words import numbers
from accel_tui.app_protocol import Screens, app_of, errors_shown, open_screen
from accel_tui.places.place_state import PlaceState
from accel_tui.plan import field_labels, form
from accel_tui.screens.asking import CANCEL, Answer, QuestionScreen, ask_user, tell_question_first
from accel_tui.widgets.plan.data_list import DataList
from accel_tui.widgets.plan.data_preview import DataPreview
from accel_tui.widgets.plan.field import Field
from accel_tui.widgets.plan.field_finder import FieldFinder
from accel_tui.widgets.plan.plan_form import PlanForm

if TYPE_CHECKING:
    from accel_tui.places.where import Where

BINDINGS: tuple[BindingType, ...] = (
    Binding("s,ctrl+s", "start", "Start", id="new-run.start", tooltip="Start training"),
    Binding(
        "a", "queue", "Add to queue", id="new-run.queue", tooltip="Add the run to the queue, until devices are free"
    ),
    Binding(
        "S,f4",
        "search",
        "Search",
        id="new-run.search",
        tooltip="Search for the best values of ranges",
    ),
    Binding(
        "b,f8",
        "race",
        "Race",
        id="new-run.race",
        tooltip="Race the configurations of this plan",
    ),
    Binding("at", "where", "Where", id="new-run.where", tooltip="Choose where it trains: here, a host, a cluster"),
    Binding("Y,f5", "copy", "Copy", id="new-run.copy", tooltip="Copy the equivalent command line"),
    Binding(
        "f6",
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
    Binding("tab", "panel(1)", "Next panel", id="new-run.panel", tooltip="Go to the next panel"),
    Binding("shift+tab", "panel(-1)", id="new-run.panel-back", show=False, tooltip="Go to the panel before"),
    Binding("down", "move(1)", id="new-run.down", tooltip="Next field"),
    Binding("up", "move(-1)", id="new-run.up", tooltip="Previous field"),
    Binding("pagedown", "scroll(1)", id="new-run.page-down", tooltip="Scroll down"),
    Binding("pageup", "scroll(-1)", id="new-run.page-up", tooltip="Scroll up"),
)
"""Keys that use the plan, find a field, and move between fields; while a field is edited, letters are text."""

_START_HINT = "s starts the run; ↑ ↓ select a field, tab goes to the next panel, / finds a setting"
"""Hint while no field has the focus."""

_DATA_HINT = "enter takes the data, → opens a folder, ← the folder above\ntype in the field above to filter"
"""Hint while the list of data has the focus."""

_PREVIEW_HINT = "enter makes the column at the cursor the target, ↑ ↓ scroll"
"""Hint while the preview of the data has the focus."""

_FINDER_HINT = "type a part of a name; ↑ ↓ select a field, enter goes to it, esc closes"
"""Hint while a field is being found."""

_RUNS_HINT = "↑ ↓ select a run, enter opens it"
"""Hint while the recent runs have the focus."""

_CHOICES_HINT = "↑ ↓ select a choice, enter accepts it, esc closes the list"
"""Hint while a list of choices is open."""

_TYPED_HINT = "enter accepts the text, esc leaves it: then letters are keys again"
"""Hint while a field is edited."""

_TYPED_DATA_HINT = "tab completes, ↓ list, esc leaves"
"""The same for the field for the data."""


def hint_for(focused: Widget | None, filled: ResolvedPlan) -> Content:
    """The hint, in one or two lines: what the field is, then what is wrong with it, or what its value means.

    Args:
        focused: The widget with the focus; ``None`` if there is none.
        filled: The form.
    """
    within = focused.ancestors if focused else ()
    if field := next((field for field in within if isinstance(field, Field)), None):
        return _field_hint(field, filled)
    if finder := next((finder for finder in within if isinstance(finder, FieldFinder)), None):
        return Content(_help_of(finder.selected) if finder.selected else _FINDER_HINT)
    for kind, hint in ((DataList, _DATA_HINT), (DataPreview, _PREVIEW_HINT), (Button, _START_HINT)):
        if isinstance(focused, kind):
            return Content(hint)
    return Content(_START_HINT if focused is None else _RUNS_HINT)


def _field_hint(field: Field, filled: ResolvedPlan) -> Content:
    picker, name = field.picker, field.field
    if picker.is_open:
        return Content(_CHOICES_HINT)
    doc = SPECS[name].doc
    if picker.input.is_editing:
        doc = f"{doc} ({_TYPED_DATA_HINT if name == 'data' else _TYPED_HINT})"
    if field.error:
        return Content.assemble(doc, "\n", (printable_line(field.error), "$text-error"))
    value = printable_line(form.describe_value(name, filled) or (field.note if field.cuts_note else ""))
    reset = "; f7 resets it" if field.is_changed else ""
    return Content(f"{doc}\n{value or form.default_reason(name)}{reset}")


def _help_of(field: str) -> str:
    return f"{SPECS[field].doc}\n{form.default_reason(field)}"


_START = Answer("start", "Start now", "s")
_QUEUE = Answer("queue", "Queue", "q")
_RATE = Answer("rate", "Learning rate", "l")
_SIZE = Answer("size", "Batch size", "b")


async def start_plan(screen: Screen[None], plan: Plan, machine: Sequence[Device] | None, *, asks: bool = False) -> None:
    """Start a run; if other runs train on its devices, ask whether to wait for them.

    Args:
        screen: The screen.
        plan: The plan.
        machine: The machine's devices; ``None`` if they are not detected yet.
        asks: Whether to ask in any case.
    """
    launcher = app_of(screen).launcher
    busy = await launcher.busy_runs(plan, machine)
    if busy is None:
        return
    if (busy or asks) and not screen.is_active:  # the question would come over another screen
        tell_question_first(screen, "Not started")
        return
    chosen: str | None = _START.id
    if busy:
        trains = f"Run {busy[0]} trains" if len(busy) == 1 else f"{', '.join(busy)} train"
        detail = (
            f"{trains} on the devices of this plan. At the same time, both are slower and may run out of memory. "
            "In the queue it starts by itself when they are free."
        )
        question = QuestionScreen("Start beside another run?", printable(detail), (_QUEUE, _START, CANCEL))
        chosen = await ask_user(screen, question)
    elif asks:
        detail = f"{plan.model} on {plan.data}, {numbers.counted(plan.epochs, 'epoch')}. The key s starts at once."
        chosen = await ask_user(screen, QuestionScreen("Start training?", printable(detail), (_START, CANCEL)))
    if chosen == _START.id:
        launcher.start_run(plan, machine, screen)
    elif chosen == _QUEUE.id:
        await launcher.queue_run(plan, machine)


async def ask_where(screen: Screen[None], now: "Where | None") -> "Where | None":
    """Ask where plans are to train.

    Args:
        screen: The screen.
        now: Where they train now; ``None`` for this machine.
    """
    from accel_engine.plan.options import specs_of, text_of  # the first frame needs none of these
    from accel_tui.places.where import ROWS, Where, form_specs, place_choices
    from accel_tui.screens.entry_screen import OptionsScreen
    from accel_tui.widgets.jobs.option_form import OptionForm
    from accel_tui.widgets.plan.picker import Picker

    where = now or Where()
    picker = Picker(where.place, has_choices=True, is_list=False)
    picker.set_reactive(Picker.choices, place_choices())
    texts = {name: text_of(getattr(where, name)) for name in ROWS}
    texts = {name: f"{text}{specs_of(Where)[name].unit if text else ''}" for name, text in texts.items()}
    form = OptionForm(Where, ROWS, specs=form_specs(), texts=texts, editors={"place": picker}, does="takes it")
    return await ask_user(screen, OptionsScreen("Where to train?", form, picker))


async def start_plan_elsewhere(
    screen: Screen[None], where: "Where", state: PlaceState, plan: Plan, *, asks: bool = False
) -> None:
    """Start a run at a place; if runs train on a host, ask whether to wait for them.

    Args:
        screen: The screen.
        where: The place.
        state: What is known of it.
        plan: The plan.
        asks: Whether to ask in any case.
    """
    from accel_engine.places import ANY  # the first frame does not need it

    chosen: str | None = _START.id
    if where.is_host and state.training and where.place.strip() != ANY:
        trains = numbers.counted(state.training, "run") + (" train" if state.training > 1 else " trains")
        detail = f"{trains} on {where.place}. In the queue there, this one starts when its devices are free."
        question = QuestionScreen("Start beside another run?", printable(detail), (_QUEUE, _START, CANCEL))
        chosen = await ask_user(screen, question)
    elif asks:
        detail = f"{plan.model} on {plan.data}, {numbers.counted(plan.epochs, 'epoch')}, on {where.place}."
        chosen = await ask_user(screen, QuestionScreen("Start training?", printable(detail), (_START, CANCEL)))
    if chosen in (_START.id, _QUEUE.id):
        await _start_elsewhere(screen, where, plan, queued=chosen == _QUEUE.id)


async def queue_elsewhere(screen: Screen[None], where: "Where", plan: Plan) -> None:
    """Add a run to the queue of a host."""
    await _start_elsewhere(screen, where, plan, queued=True)


async def _start_elsewhere(screen: Screen[None], where: "Where", plan: Plan, *, queued: bool) -> None:
    def warn(text: str) -> None:
        screen.app.call_later(partial(screen.app.notify, text, severity="warning", markup=False))

    def start() -> Path | str:
        from accel_tui.places.start_elsewhere import start_elsewhere  # slow to import

        return start_elsewhere(where, plan, warn, queued=queued)

    await app_of(screen).launcher.start_elsewhere(start, screen)


async def ask_what_to_find(screen: Screen[None], form: PlanForm) -> None:
    """Ask whether to find a learning rate or a batch size for a form's plan; what is taken goes into the form."""
    plan = form.filled.plan
    detail = "Real steps of this plan are measured, in separate processes. Nothing is written."
    answer = await ask_user(screen, QuestionScreen("What to find?", detail, (_RATE, _SIZE, CANCEL)))
    size: int | None = None
    rate: float | None = None
    if answer == _RATE.id:
        rate = await app_of(screen).ask_screen(Screens.FIND_RATE, plan)
    elif answer == _SIZE.id:
        size, rate = await app_of(screen).ask_screen(Screens.FIND_SIZE, plan) or (None, None)
    if size is not None:
        form.set("batch_size", str(size))
    if rate is not None:
        form.set("learning_rate", f"{rate:g}")
    if size is not None or rate is not None:
        taken = f"Learning rate {rate:g}" if size is None else f"Batch size {size:,}"
        screen.notify(taken, timeout=2)


async def ask_to_search(
    screen: Screen[None],
    filled: ResolvedPlan,
    parameters: Sequence[Parameter],
    given: Collection[str],
    where: "Where | None" = None,
) -> None:
    """Ask for trials, monitor and time, then start a search, and open it.

    Args:
        screen: The screen.
        filled: The form.
        parameters: What varies.
        given: Fields that the user has changed.
        where: The cluster that trains the trials; ``None`` for this machine.
    """
    from accel_tui.plan.search_start import ROWS, SearchStart, first_texts  # the first frame does not need them
    from accel_tui.screens.entry_screen import OptionsScreen
    from accel_tui.widgets.jobs.option_form import OptionForm

    screen.app.clear_notifications()  # a toast would cover the questions
    ranges = ", ".join(f"{field_labels.label(each.name)} {format_values(each)}" for each in parameters)
    form = OptionForm(SearchStart, ROWS, ranges, texts=first_texts(filled), does="searches")
    chosen: SearchStart | None = await ask_user(screen, OptionsScreen("Search for the best plan", form))
    if chosen is None:
        return
    options = chosen.with_parameters(parameters)
    plan = filled.plan.replace(monitor=options.monitor)
    with errors_shown(screen, "The search was not started"):
        fixed = {*given} - {each.name for each in parameters}
        directory = await asyncio.to_thread(_start_search, plan, fixed, options, where)
        if screen.is_active:
            open_screen(screen, Screens.SEARCH, directory)
        else:
            screen.app.notify(f"{directory.name}: S lists it", title="Search started", markup=False)


def _start_search(plan: Plan, given: Collection[str], options: SearchOptions, where: "Where | None") -> Path:
    """Start a search, in a thread: its imports are slow."""
    from accel_engine.search.new_study import start_study
    from accel_engine.search.runs_at_place import RunsAtPlace

    return start_study(plan, given, options, RunsAtPlace(where.name, where.request) if where and where.name else None)


def explain_ranges(screen: Screen[None], count: int) -> None:
    """Say that a plan with ranges is searched, not started.

    Args:
        screen: The screen.
        count: Number of fields that have a range.
    """
    screen.notify(
        f"{numbers.counted(count, 'field')} of the form {'varies' if count == 1 else 'vary'}. "
        "Press S (f4 in a field) to search for the best values; "
        "Start and Queue train one plan, and need a single value in each field.",
        title="Search?",
        severity="warning",
    )
