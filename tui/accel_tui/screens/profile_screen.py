"""Profile screen: the operations that take the time of a run's steps, from a trace."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.content import Content
from textual.widgets import Digits, Static

from accel_engine.errors import RunError
from accel_engine.op_profile.options import ProfileOptions, xprof_command
from accel_engine.op_profile.profile_run import check_profilable, profile_run
from accel_engine.requests.profile_plan import ProfilePhase
from accel_engine.requests.protocol.request import ExamplesDone
from accel_engine.run import diagnostics, read_run
from accel_engine.run.diagnostics import OpProfile
from accel_engine.run.directory.run_paths import run_name
from accel_engine.text import printable, printable_fields
from accel_engine.words import numbers
from accel_tui.formatting import op_profile
from accel_tui.formatting.bars import bar
from accel_tui.screens.asking import awaiting, copy_text
from accel_tui.screens.job import Job
from accel_tui.screens.job_screen import JobScreen
from accel_tui.widgets.jobs.option_form import OptionForm
from accel_tui.widgets.text_table import ResultTables

_BAR = 60  # most cells of a bar of the summary
_MUCH = 0.2  # share of the time without work from which it stands out

MOST_ROWS = 100
"""The most rows of a table."""


class ProfileSummary(Horizontal):
    """How long a step took in large digits, and how much of the time the devices computed."""

    DEFAULT_CSS = """
    ProfileSummary {
        height: auto;
        margin-bottom: 1;
        display: none;
        Digits { width: auto; margin: 0 2 0 1; color: $speed; text-style: bold; }
        Static { width: 1fr; height: auto; color: $text-muted; text-wrap: nowrap; }
        &.-known { display: block; }
    }
    """

    _found: OpProfile | None = None

    def compose(self) -> ComposeResult:
        """Compose the number and the lines beside it."""
        yield Digits("")
        yield Static(markup=False)

    def show(self, found: OpProfile) -> None:
        self._found = found
        self.add_class("-known")
        self.on_resize()

    def on_resize(self) -> None:
        """Draw bars that fit."""
        found = self._found
        if found is None:
            return
        number, _, unit = numbers.latency(found.seconds / (found.steps or 1)).partition(" ")
        self.query_one(Digits).update(number)
        width, busy = min(_BAR, self.size.width // 3), 1.0 - found.idle
        lines = [
            Content.styled(f"{unit} per step" if found.steps else f"{unit} traced", "$foreground"),
            _share("busy", busy, width, "$speed"),
            _share("idle", found.idle, width, "$warning" if found.idle > _MUCH else "$text-muted"),
        ]
        self.query_one(Static).update(Content("\n").join(lines))


def _share(name: str, share: float, width: int, colour: str) -> Content:
    shown = (f"{name}  {numbers.percent(share):>5}  ", ""), (bar(share, width), colour)
    return Content.assemble(*shown, (bar(1.0, width)[len(bar(share, width)) :], "$border"))


class ProfileScreen(JobScreen):
    """Profiles a run: a live one while it trains, another by steps of its plan; first shows the last profile.

    Args:
        directory: The run's directory.
    """

    NOUN = "the profile"
    KEPT = "Nothing is kept of it."
    BINDING_GROUP_TITLE = "Profile"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("Y", "copy", "Copy", id="profile.copy", tooltip="Copy the command that opens the trace in XProf"),
    ]

    def __init__(self, directory: Path) -> None:
        super().__init__(f"Profile  {printable(run_name(directory))}")
        self._directory = directory
        self._found: OpProfile | None = None

    def make_form(self) -> OptionForm:
        """How long."""
        return OptionForm(ProfileOptions, ("seconds",))

    def compose_result(self) -> ComposeResult:
        awaited = "The operations that take longest on each device, and what the training waits for."
        with Container(id="result"):
            yield ProfileSummary()
            yield ResultTables(awaited=awaited, id="tables")

    def on_mount(self) -> None:
        """Show the form, or the profile that the run has."""
        super().on_mount()
        self._show_stored()

    @awaiting
    async def _show_stored(self) -> None:
        try:
            found = (await asyncio.to_thread(diagnostics.read, self._directory)).operations
        except RunError:
            return  # a start tells why
        if found is not None and self.options is None:
            self.options = ProfileOptions()
            self._show_result()
            self.progress.show_end(self._show(found), "", was_cancelled=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Copy the command for a trace that is there."""
        if action == "copy":
            return self._found is not None and bool(self._found.trace) and not self.has_class("-form")
        return super().check_action(action, parameters)

    def action_copy(self) -> None:
        """Copy the command that opens the traces of the run in XProf."""
        copy_text(self, xprof_command(self._directory))

    def prepare(self, options: ProfileOptions) -> ProfileOptions:
        """Check that something can take the run's steps."""
        check_profilable(read_run(self._directory))
        return options

    def run(self, job: Job, prepared: ProfileOptions) -> OpProfile:
        return profile_run(self._directory, prepared, job.ask, job.send, lambda: job.is_cancelled)

    def take(self, part: ProfilePhase | ExamplesDone) -> None:
        """Tell what happens."""
        if isinstance(part, ExamplesDone):
            self.progress.show_examples(part, "reading ")
        else:
            self.progress.show(part.text)

    async def finish(self, found: OpProfile | None) -> Sequence[str]:
        """Show the operations."""
        return () if found is None else self._show(found)

    def _show(self, found: OpProfile) -> Sequence[str]:
        self._found = shown = printable_fields(found)
        self.query_one(ProfileSummary).show(shown)
        self.query_one(ResultTables).show(list(op_profile.profile_tables(shown, MOST_ROWS)))
        self.refresh_bindings()
        return op_profile.profile_headline(shown), *op_profile.profile_notes(shown)
