"""The actions on runs, one row each: the screens of runs make their keys of them, and so help and palette."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, partialmethod
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding
from textual.reactive import reactive

from accel_engine.errors import AccelError, RunError
from accel_engine.plan.changed_plan import command_problem
from accel_engine.plan.options import specs_of
from accel_engine.process.start_run import CONTINUABLE
from accel_engine.requests.protocol.model_reference import check_checkpoint
from accel_engine.run import Annotations, RunInfo, RunSummary, Status, send_command
from accel_engine.run.directory.run_paths import run_name
from accel_engine.run.runs.listing import list_runs, summarize
from accel_engine.run.runs.removal import Contents, count_contents, remove
from accel_engine.run.store.annotations import TagChanges, set_tags, write_annotations
from accel_engine.text import printable, printable_fields, printable_line
from accel_engine.user_paths import absolute_path
from accel_engine.words import numbers
from accel_tui.app_protocol import Screens, app_of, errors_shown, open_screen
from accel_tui.plan.trained_run import TrainedRun
from accel_tui.run_list.columns import has_model
from accel_tui.run_list.comparison import MAX_COMPARED_RUNS, MOST_RUNS_OF_BAND, find_mixed_kinds
from accel_tui.run_state.state import RunState
from accel_tui.screens import run_questions
from accel_tui.screens.asking import CANCEL, DELETE, AskingScreen, QuestionScreen, awaiting
from accel_tui.screens.entry_screen import OptionsScreen
from accel_tui.widgets.jobs.option_form import OptionForm

SIMILAR_RUNS = 4
"""How many runs *Compare* on *Run* shows, with the run of the screen."""

RUN, RUNS, COMPARE, SEARCH = "run", "runs", "compare", "search"
"""The screens of runs, as their keys are called in the settings."""


@dataclass(frozen=True, slots=True)
class TargetRun:
    """A run that an action is about, as far as its screen knows it."""

    directory: Path
    info: RunInfo | None = None
    """Its ``meta`` and status; ``None`` if it is not read."""
    has_model: bool | None = False
    """Whether it has a trained model; ``None`` if it will have one, as it is training."""
    is_readable: bool = True
    """Whether it can be read, as far as is known."""
    state: RunState = RunState()  # noqa: RUF009 (it is frozen)
    """Its latest state, where it is followed."""
    pending: tuple[str, ...] = ()
    """Commands that its engine has not answered yet."""

    @property
    def id(self) -> str:
        """Its id; of a run of a host, ``HOST:ID``."""
        return run_name(self.directory)

    @property
    def takes_commands(self) -> bool:
        """Whether an engine runs that saves checkpoints."""
        return self.state.live and not self.state.is_queued and (self.info is None or self.info.has_engine)


def target_of(run: RunSummary) -> TargetRun:
    """A listed run as the target of an action."""
    return TargetRun(run.directory, run.info, has_model(run), is_readable=run.info is not None)


Runs = Sequence[TargetRun]


class RunActionsScreen(AskingScreen):
    """A screen of runs, with the actions on them.

    Its bindings begin with :func:`run_bindings`.
    """

    PLACE: ClassVar[str]
    """Which of the screens of runs it is."""

    pending_commands: reactive[tuple[str, ...]] = reactive((), repaint=False, init=False)
    """Commands that the engine of a run has not answered yet."""

    @property
    def current_run(self) -> TargetRun | None:
        """The run of the screen, or under its cursor."""
        return None

    @property
    def selected_runs(self) -> Runs:
        return ()

    @property
    def hidden_selected(self) -> str:
        """How many of the selected runs the screen does not show, after their number; empty if it shows all."""
        return ""

    def runs_for(self, action: "RunAction") -> Runs:
        """The runs that an action is about: those that are selected if it takes several, or else the current one."""
        current = self.current_run
        return (self.selected_runs if action.takes_several else ()) or ((current,) if current else ())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the actions that the runs allow."""
        row = ACTIONS.get(action)
        if row is None:
            return True
        runs = self.runs_for(row)
        return row.is_offered(runs) if runs and self.PLACE in row.places else False

    def why_not(self, action: str) -> str:
        """Why an action is not possible whose key is dimmed."""
        return ACTIONS[action].why_not if action in ACTIONS else ""

    @awaiting
    async def do_action(self, name: str) -> None:
        """Do something with the runs."""
        await ACTIONS[name].do(self, self.runs_for(ACTIONS[name]))

    async def send(self, run: TargetRun, command: str, argument: float | None = None) -> bool:
        """Send a command to the engine of a run; returns whether that was possible, and notifies if it was not."""
        self.pending_commands = (*self.pending_commands, command)
        try:
            await asyncio.to_thread(send_command, run.directory, command, argument)
        except RunError as error:
            self.drop_pending(command)
            self.notify(str(error), severity="error", markup=False)
            return False
        return True

    def drop_pending(self, *commands: str) -> None:
        """Stop waiting for the answers to commands."""
        self.pending_commands = tuple(each for each in self.pending_commands if each not in commands)

    async def change(self, *changes: Callable[[], object]) -> None:
        """Change runs in a thread; notify of each change that fails."""
        await self.make_changes(*changes)
        self.take_changes()

    def take_changes(self) -> None:
        """Show what has changed of the runs."""


@dataclass(frozen=True, slots=True)
class RunAction:
    """An action on runs."""

    id: str
    """Its name; its key in the settings has the name of the screen before it."""
    key: str
    label: str
    """A word or two for the line of keys."""
    tooltip: str
    """What it does, for help and palette."""
    places: tuple[str, ...]
    """The screens that have it."""
    do: Callable[[RunActionsScreen, Runs], Awaitable[object]]
    """Does it with runs, of which there is at least one."""
    is_offered: Callable[[Runs], bool | None] = bool
    """Whether runs, of which there is at least one, allow it; ``None`` to show its key dimmed."""
    takes_several: bool = False
    """Whether it is about all selected runs."""
    key_of: str = ""
    """The action whose key it shares, which differs by what is offered."""
    is_shown: bool = True
    """Whether the line of keys has it."""
    why_not: str = ""
    """Why it is not possible while its key is dimmed."""

    def binding_id(self, place: str) -> str:
        """The id of its key on a screen, in the settings."""
        return f"{place}.{(self.key_of or self.id).replace('_', '-')}"


NEXT_STEPS = (
    "predict",
    "evaluate",
    "export",
    "compare_similar",
    "train_longer",
    "continue",
    "deploy",
    "duplicate",
)
"""The actions that *Run* offers as buttons once a run has ended, in their order."""

_ONLY_BUTTONS = ("evaluate", "compare_similar", "duplicate")
"""Actions that the line of keys of *Run* leaves out."""


def run_bindings(place: str) -> tuple[Binding, ...]:
    """The keys of a screen's actions on runs."""
    return tuple(
        Binding(
            row.key,
            row.id,
            row.label,
            id=row.binding_id(place),
            tooltip=row.tooltip,
            show=row.is_shown and not (place == RUN and row.id in _ONLY_BUTTONS),
        )
        for row in ACTIONS.values()
        if place in row.places
    )


def _can_pause(runs: Runs) -> bool | None:
    run, state = runs[0], runs[0].state
    is_possible = state.live and not (state.paused or state.is_queued or "pause" in run.pending)
    return _in_training(state) if is_possible else False


def _in_training(state: RunState) -> bool | None:
    """Whether training takes commands; ``None`` while a script does something else: another part may follow."""
    return state.can_control_training or None


def _can_resume(runs: Runs) -> bool:
    return runs[0].state.paused and "resume" not in runs[0].pending


def _can_change_rate(runs: Runs) -> bool | None:
    state = runs[0].state
    if not state.live or state.is_queued:
        return False
    return None if _rate_problem(runs) else _in_training(state)


def _can_find_rate(runs: Runs) -> bool | None:
    return runs[0].takes_commands and (None if _rate_problem(runs) else True)


def _rate_problem(runs: Runs) -> str:
    """Why no command sets the learning rate of a run with this plan; empty if one does, and without a plan."""
    plan = runs[0].info.plan if runs[0].info else None
    return command_problem(plan, ("learning_rate",)) if plan else ""


def _is_live(runs: Runs) -> bool:
    return runs[0].state.live


def _takes_commands(runs: Runs) -> bool:
    return runs[0].takes_commands


def _is_readable(runs: Runs) -> bool:
    """Whether a run can be read, as far as is known, and does not wait in the queue, where it has nothing to tell."""
    return runs[0].is_readable and not runs[0].state.is_queued


def _is_training(runs: Runs) -> bool:
    """Whether a run is one of training, as far as is known, and no bench."""
    run = runs[0]
    return run.is_readable and not (run.info and run.info.bench)


def _has_model(runs: Runs) -> bool | None:
    """Whether all runs have a trained model; ``None`` if they only will have."""
    found = [run.has_model for run in runs]
    return False if False in found else None if None in found else True


def _can_continue(runs: Runs) -> bool:
    return _has_status(runs[0], *CONTINUABLE)


def _can_train_longer(runs: Runs) -> bool:
    return _has_status(runs[0], Status.FINISHED)


def _has_status(run: TargetRun, *statuses: Status) -> bool:
    return bool(run.has_model) and run.info is not None and run.info.status in statuses and _has_plan((run,))


def _has_plan(runs: Runs) -> bool:
    info = runs[0].info
    return info is not None and info.plan is not None


def _are_read(runs: Runs) -> bool:
    return all(run.info for run in runs)


def _have_ended(runs: Runs) -> bool:
    return not any(run.info and run.info.status.live for run in runs)


async def _send(command: str, screen: RunActionsScreen, runs: Runs) -> None:
    await screen.send(runs[0], command)


async def _stop(screen: RunActionsScreen, runs: Runs) -> None:
    """Ask how to stop, then stop; cancel a run that waits."""
    run = runs[0]
    if run.state.is_queued:
        if await screen.ask(run_questions.cancel_question(run.id, "s")) == run_questions.CANCEL_RUN:
            from accel_engine.run_queue.queue import cancel  # seldom needed

            await screen.change(partial(cancel, run.id))
    elif (answer := await screen.ask(run_questions.stop_question(run.state))) in ("stop", "stop_now"):
        await screen.send(run, *run_questions.stop_command(str(answer), run.state))


async def _change_rate(screen: RunActionsScreen, runs: Runs) -> None:
    rate = await screen.ask(run_questions.LearningRateScreen(runs[0].state.learning_rate))
    if rate is not None:
        await screen.send(runs[0], "learning_rate", rate)


async def _find_rate(screen: RunActionsScreen, runs: Runs) -> None:
    rate = await app_of(screen).ask_screen(Screens.FIND_RATE, runs[0].directory)
    if rate is not None:
        await screen.send(runs[0], "learning_rate", rate)


async def _continue(screen: RunActionsScreen, runs: Runs) -> None:
    app_of(screen).launcher.continue_run(runs[0].directory)


async def _train_longer(screen: RunActionsScreen, runs: Runs) -> None:
    """Ask for the number of epochs, then continue from the last checkpoint."""
    run = printable_fields(await asyncio.to_thread(summarize, runs[0].directory))
    if run.info and run.info.plan and screen.is_active:
        epochs = await screen.ask(run_questions.TrainLongerScreen(TrainedRun(run.info, run.info.plan, run.epochs)))
        if epochs is not None:
            app_of(screen).launcher.continue_run(run.directory, epochs)


async def _compare(screen: RunActionsScreen, runs: Runs) -> None:
    infos = [run.info for run in runs if run.info]
    screen.app.clear_notifications()  # an earlier toast would cover the charts
    if problem := find_mixed_kinds(infos):
        screen.notify(problem, severity="warning", markup=False)
        return
    directories = [run.directory for run in runs if run.is_readable]
    if len(directories) < 2:
        screen.notify("Select two or more with space, then compare them.", severity="warning")
        return
    if len(directories) > MOST_RUNS_OF_BAND:
        screen.notify(f"At most {MOST_RUNS_OF_BAND:,} runs can be compared: showing the first of {len(directories):,}.")
    many = len(directories) > MAX_COMPARED_RUNS
    open_screen(screen, Screens.COMPARE_MANY if many else Screens.COMPARE, tuple(directories[:MOST_RUNS_OF_BAND]))


async def _compare_similar(screen: RunActionsScreen, runs: Runs) -> None:
    """Compare a run with the latest others on the same data."""
    run, data = runs[0], runs[0].info.plan_values.get("data") if runs[0].info else None
    listed = await asyncio.to_thread(list_runs)
    others = [
        each.directory
        for each in listed
        if each.info and not each.info.bench and each.id != run.id and each.info.plan_values.get("data") == data
    ]
    if others and screen.is_active:
        open_screen(screen, Screens.COMPARE, (run.directory, *others[: SIMILAR_RUNS - 1]))
    else:
        screen.notify("There is no other run on the same data.", title="Nothing to compare with", severity="warning")


async def _open(target: Screens, screen: RunActionsScreen, runs: Runs) -> None:
    open_screen(screen, target, runs[0].directory)


async def _open_of_all(target: Screens, screen: RunActionsScreen, runs: Runs) -> None:
    """Open a screen of several runs."""
    open_screen(screen, target, tuple(run.directory for run in runs))


async def _use_model(target: Screens, screen: RunActionsScreen, runs: Runs) -> None:
    """Open a screen of a trained model, or notify why there is no model."""
    if await _are_trained(screen, runs):
        await _open(target, screen, runs)


async def _use_models(target: Screens, screen: RunActionsScreen, runs: Runs) -> None:
    """Open a screen of several trained models, or notify why a run has no model."""
    if await _are_trained(screen, runs):
        await _open_of_all(target, screen, runs)


async def _are_trained(screen: RunActionsScreen, runs: Runs) -> bool:
    """Whether all runs have a trained model, and the user has not left the screen meanwhile."""
    try:
        for run in runs:
            await asyncio.to_thread(check_checkpoint, run.directory)
    except AccelError as error:
        screen.notify(str(error), title="No trained model", severity="warning", markup=False)
        return False
    return screen.is_active


async def _edit(screen: RunActionsScreen, runs: Runs) -> None:
    """Edit name, note and tags of a run, or the tags of several."""
    info = runs[0].info
    if info is None:
        return
    ids = [printable_line(run.id) for run in runs]
    if len(runs) == 1:
        title = f"Edit {ids[0]}{screen.hidden_selected}"
        change = await screen.ask(OptionsScreen(title, _annotation_form(printable_fields(info))))
        if change is not None:
            await screen.change(lambda: write_annotations(info.directory, lambda _: change))
        return
    form = OptionForm(TagChanges, tuple(specs_of(TagChanges)), ", ".join(ids), does="saves")
    changes = await screen.ask(OptionsScreen(f"Tag {len(runs)} runs{screen.hidden_selected}", form))
    if changes is not None and changes.tags:
        await screen.change(*(partial(set_tags, run.directory, changes.tags) for run in runs))


def _annotation_form(info: RunInfo) -> OptionForm:
    """The annotations of a run; its plan's name stands where it has no other."""
    specs, now = specs_of(Annotations), info.annotations
    planned = str(info.plan_values.get("name") or "") or specs["name"].hint
    return OptionForm(
        Annotations,
        tuple(specs),
        texts={"name": now.name, "note": now.note, "tags": " ".join(now.tags)},
        specs={"name": replace(specs["name"], hint=planned)},
        does="saves",
    )


async def _duplicate(screen: RunActionsScreen, runs: Runs) -> None:
    if info := runs[0].info:
        open_screen(screen, Screens.NEW_RUN, info.plan)


async def _delete(screen: RunActionsScreen, runs: Runs) -> None:
    """Read the sizes of runs, then ask."""
    try:
        found = await asyncio.to_thread(lambda: [count_contents(run.directory) for run in runs])
    except AccelError as error:
        screen.notify(str(error), severity="error", markup=False)
        return
    title = f"run {runs[0].id}" if len(runs) == 1 else f"{len(runs)} runs"
    title += screen.hidden_selected
    question = QuestionScreen(printable(f"Delete {title}?"), printable(_deletion_detail(runs, found)), (CANCEL, DELETE))
    if screen.is_active and await screen.ask(question) == DELETE.id:
        await screen.change(*(partial(remove, run.directory) for run in runs))


async def _report(screen: RunActionsScreen, runs: Runs) -> None:
    """Write the report on a run to the working directory, in place of an earlier one, and say where it is."""
    directory = runs[0].directory
    path = absolute_path(Path(f"{directory.name}.html"))

    def write() -> None:
        from accel_tui.report.run_report import write_report  # seldom needed

        write_report(directory, path)

    with errors_shown(screen, "No report"):
        await asyncio.to_thread(write)
        screen.notify(str(path), title="Report written", markup=False)


def _deletion_detail(runs: Runs, found: Sequence[Contents]) -> str:
    """A text on the runs and files that are deleted, and their size."""
    size = numbers.size(sum(each.size for each in found))
    checkpoints, models = sum(each.checkpoints for each in found), sum(each.model for each in found)
    parts = [
        numbers.counted(number, word)
        for number, word in ((checkpoints, "checkpoint"), (models, "trained model"))
        if number
    ]
    names = numbers.listed((run.id for run in runs), 6)
    what = "all metrics and the log" + "".join(f", {part}" for part in parts)
    return f"{names}: {what}, {size} in total. This cannot be undone."


_NO_MODEL = "The run has no trained model yet; its first checkpoint will have one."

_NO_TRAINING = "The script does not train now. Once it does, the key works."

_FIXED_RATE = "The learning rate follows a schedule, or the script does not train now."

_ROWS = (
    RunAction(
        "pause",
        "p,space",
        "Pause",
        "Pause or resume training",
        (RUN,),
        partial(_send, "pause"),
        _can_pause,
        why_not=_NO_TRAINING,
    ),
    RunAction(
        "resume",
        "p,space",
        "Resume",
        "Pause or resume training",
        (RUN,),
        partial(_send, "resume"),
        _can_resume,
        key_of="pause",
    ),
    RunAction(
        "stop",
        "s",
        "Stop",
        "Stop training, with or without a final checkpoint. In a script, stop the current fit",
        (RUN,),
        _stop,
        _is_live,
    ),
    RunAction(
        "learning_rate",
        "e",
        "Learning rate",
        "Change the learning rate. In a script, of the current fit",
        (RUN,),
        _change_rate,
        _can_change_rate,
        why_not=_FIXED_RATE,
    ),
    RunAction(
        "find_rate",
        "F",
        "Find rate",
        "Find a learning rate from the last checkpoint, while the run is paused",
        (RUN,),
        _find_rate,
        _can_find_rate,
        is_shown=False,  # the keys that a run needs more often leave no room
        why_not=_FIXED_RATE,
    ),
    RunAction(
        "checkpoint", "C", "Checkpoint", "Save a checkpoint now", (RUN,), partial(_send, "checkpoint"), _takes_commands
    ),
    RunAction("compare", "c", "Compare", "Compare the selected runs", (RUNS, SEARCH), _compare, takes_several=True),
    RunAction(
        "compare_similar",
        "c",
        "Compare",
        "Compare with the latest other runs on the same data",
        (RUN,),
        _compare_similar,
        _is_training,
        key_of="compare",
    ),
    RunAction(
        "evaluate",
        "V",
        "Evaluate",
        "Evaluate runs on the same examples: which one is better?",
        (RUN, RUNS, COMPARE, SEARCH),
        partial(_open_of_all, Screens.EVALUATE),
        _has_model,
        takes_several=True,
        why_not=_NO_MODEL,
    ),
    RunAction(
        "diagnostics",
        "w",
        "Diagnostics",
        "Show confusion matrix, samples, layers",
        (RUN,),
        partial(_open, Screens.DIAGNOSTICS),
        _is_training,
    ),
    RunAction(
        "advice",
        "A",
        "Advice",
        "Show what is wrong with the run, and what to do",
        (RUN, RUNS, SEARCH),
        partial(_open, Screens.ADVICE),
        _is_training,
    ),
    RunAction(
        "bench",
        "b",
        "Bench",
        "Measure the inference of trained models",
        (RUN, RUNS, COMPARE, SEARCH),
        partial(_use_models, Screens.BENCH),
        _has_model,
        takes_several=True,
        why_not=_NO_MODEL,
    ),
    RunAction(
        "export",
        "E",
        "Export",
        "Export the trained model to other formats",
        (RUN, RUNS, SEARCH),
        partial(_use_model, Screens.EXPORT),
        _has_model,
        why_not=_NO_MODEL,
    ),
    RunAction(
        "deploy",
        "D",
        "Deploy",
        "Serve the trained model on this machine",
        (RUN, RUNS, SEARCH),
        partial(_use_model, Screens.DEPLOY),
        _has_model,
        why_not=_NO_MODEL,
    ),
    RunAction(
        "predict",
        "P",
        "Predict",
        "Predict examples with the trained model",
        (RUN, RUNS, SEARCH),
        partial(_use_model, Screens.PREDICT),
        _has_model,
        why_not=_NO_MODEL,
    ),
    RunAction(
        "report",
        "H",
        "Report",
        "Write a report on the run: an HTML file in the working directory",
        (RUN, RUNS),
        _report,
        _is_readable,
        is_shown=False,  # the keys that a run needs more often leave no room
    ),
    RunAction(
        "edit",
        "e",
        "Edit",
        "Edit name, note and tags; or the tags of all selected runs",
        (RUNS,),
        _edit,
        _are_read,
        takes_several=True,
    ),
    RunAction(
        "duplicate", "n", "Duplicate", "Make a new run from the plan of this one", (RUN, RUNS), _duplicate, _has_plan
    ),
    RunAction("continue", "R", "Continue", "Continue from the last checkpoint", (RUN, RUNS), _continue, _can_continue),
    RunAction(
        "train_longer",
        "R",
        "Train longer",
        "Continue for more epochs",
        (RUN, RUNS),
        _train_longer,
        _can_train_longer,
        key_of="continue",
    ),
    RunAction(
        "delete",
        "delete,backspace",
        "Delete",
        "Delete the run, or all selected runs; asks first",
        (RUNS,),
        _delete,
        _have_ended,
        takes_several=True,
    ),
)

ACTIONS: Mapping[str, RunAction] = {row.id: row for row in _ROWS}
"""All actions on runs by their ids, in the order of their keys."""

for _name in ACTIONS:
    setattr(RunActionsScreen, f"action_{_name}", partialmethod(RunActionsScreen.do_action, _name))
