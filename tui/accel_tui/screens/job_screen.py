"""Base of the screens with a long job: its options, its progress and what it has found."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from accel_engine.errors import AccelError, UsageError
from accel_engine.measure.remaining_time import RemainingTime
from accel_engine.requests.protocol.request import Doing, ExamplesDone
from accel_engine.text import printable
from accel_engine.words import numbers
from accel_tui.screens.asking import (
    BACK,
    CANCEL,
    QuestionScreen,
    WorkingScreen,
    ask_user,
    awaiting,
    tell_question_first,
)
from accel_tui.screens.job import Job, reported
from accel_tui.widgets.jobs.option_form import OptionForm
from accel_tui.widgets.key_bar import KeyBar, TopBar
from accel_tui.widgets.text_table import ResultTables

LEAST_SECONDS = 2.0
"""Seconds of examples after which the time for the rest is shown."""


SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
"""The states of the character that shows that a job runs."""

SPINNER_SECONDS = 0.1
"""How long each of them is shown."""


class JobProgress(Static):
    """Lines about a job: while it runs how long it has, what it does and how far it is; then how it has ended."""

    _examples_done = 0
    _doing = ""
    _words = ""
    _began: float | None = None  # while the job runs

    def on_mount(self) -> None:
        """Count the seconds."""
        self.set_interval(SPINNER_SECONDS, self._show_running)

    def begin(self, words: str) -> None:
        """Show that the job is started, whose examples are counted anew."""
        self._examples_done, self._doing = 0, ""
        self._began = time.monotonic()
        self.show(words)

    def show(self, words: str, seconds_left: float | None = None) -> None:
        """Show how far the job is, and about how long the rest takes if that is known."""
        left = f", about {numbers.duration(seconds_left)} left" if seconds_left and round(seconds_left) else ""
        self._words = f"{words}{left}"
        self._show_running()

    def _show_running(self) -> None:
        if self._began is not None:
            seconds = time.monotonic() - self._began
            is_still = self.app.animation_level == "none"
            state = SPINNER[0 if is_still else int(seconds / SPINNER_SECONDS) % len(SPINNER)]
            self._show_lines((f"{state} {numbers.duration(int(seconds))}  {self._words}",), "$text-accent")

    def show_doing(self, what: str) -> None:
        """Show what is being done, of which examples are counted anew."""
        self._examples_done, self._doing = 0, what
        self.show(what)

    def show_examples(self, part: ExamplesDone, lead: str = "") -> None:
        """Show how many examples are done."""
        if not lead and self._doing:
            lead = f"{self._doing}: "
        if part.done < self._examples_done or not self._examples_done:
            self._remaining = RemainingTime()
            self._remaining.begin()
        self._examples_done = part.done
        self._remaining.count(part.done)
        left = self._remaining.seconds_left(part.of) if part.of and self._remaining.current > LEAST_SECONDS else None
        self.show(f"{lead}{numbers.examples_done(part.done, part.of)}", left)

    def show_end(self, lines: Sequence[str], problem: str, *, was_cancelled: bool) -> None:
        """Show what was found, below why the rest was not."""
        self._began = None
        if was_cancelled:
            self._show_lines((" ".join(("Ended.", *lines[:1])), *lines[1:]), "$text-muted")
        elif problem:
            self._show_lines((problem, *lines), "$text-error")
        else:
            self._show_lines(lines, "$text-success")

    def _show_lines(self, lines: Sequence[str], style: str) -> None:
        """Show lines, the first one in a style."""
        first, *others = (printable(line) for line in (*lines, "")[: len(lines) or 1])
        content = Content("\n").join([Content.styled(first, style), *map(Content, others)])
        if self.content != content:
            self.update(content)


DRAW_SECONDS = 0.1
"""Seconds between two drawings of what is found, at least."""


class JobScreen(WorkingScreen):
    """A form of options; then the progress of the job with them, in a thread; then what it has found.

    The job *runs* from its start until its thread has ended. The user may *cancel* it, then what is found so far stays
    on the screen. Leaving the screen *closes* it: it is cancelled, and nothing is shown any more.

    Args:
        heading: The title in the top bar.
        first_options: Options to start with when the screen is opened; ``None`` if the form is shown first.
    """

    CSS_PATH: ClassVar[Any] = "job_screen.tcss"
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "s,ctrl+s", "start", "Start", id="job.start", tooltip="Start with these options; in a field, enter does"
        ),
        Binding("s,ctrl+s", "again", "Again", id="job.start", tooltip="Start once more with the same options"),
        Binding("e", "options", "Options", id="job.options", tooltip="Edit the options; ends a job that runs"),
        Binding("down", "app.focus_next", id="job.next", tooltip="Next option"),
        Binding("up", "app.focus_previous", id="job.previous", tooltip="Previous option"),
        Binding("escape", "end", "End", id="screen.back", tooltip="End the job; what is found stays"),
        BACK,
    ]

    NOUN: ClassVar[str]
    """The job in questions, such as ``the race``."""
    KEPT: ClassVar[str] = ""
    """What ending the job means, in a sentence; empty if what is found is only on the screen."""
    STAYS: ClassVar[str] = "What is found so far stays on the screen."
    """What it means then while the screen stays."""
    FIRST_WORDS: ClassVar[str] = "starting an engine"
    """The progress before the first part."""

    progress = getters.query_one(JobProgress)

    def __init__(self, heading: str, first_options: Any | None = None) -> None:
        super().__init__()
        self._heading, self._first_options = heading, first_options
        self._job: Job | None = None
        self._found: Any = None
        self.options: Any = None
        """The options of the last start; ``None`` before one."""
        self._drawn_at, self._is_checking = 0.0, False

    def make_form(self) -> OptionForm | None:
        """The form; ``None`` if :meth:`set_form` follows."""
        raise NotImplementedError

    def compose_result(self) -> ComposeResult:
        """Compose what is shown below the progress."""
        raise NotImplementedError

    def prepare(self, options: Any) -> Any:
        """Prepare the argument of :meth:`run`, before the form is left; in a thread.

        Raises:
            AccelError: The job cannot be done with these options.
        """
        return options

    def question(self, prepared: Any) -> QuestionScreen | None:
        """The question before the job starts; ``None`` for none. All answers but Cancel start it."""
        return None

    def run(self, job: Job, prepared: Any) -> Any:
        """Do the job, in a thread; returns what is found. It ends soon once the job is cancelled.

        Raises:
            AccelError: The job failed, or was cancelled.
        """
        raise NotImplementedError

    def begin(self, prepared: Any) -> None:
        """Forget what was found before, and remove its tables."""
        self._found = None
        for tables in self.query(ResultTables):
            tables.show(())

    def take(self, part: Any) -> None:
        """Take note of a part of the answer, and show the progress."""
        raise NotImplementedError

    def draw(self) -> None:
        """Show what was found so far; not after each part if there are many."""

    async def finish(self, found: Any) -> Sequence[str]:
        """Show what was found at the end, ``None`` if the job has failed or was cancelled; returns lines about it."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        yield TopBar(self._heading)
        if form := self.make_form():
            yield form
        yield JobProgress(id="about", markup=False)
        yield from self.compose_result()
        yield KeyBar()

    def on_mount(self) -> None:
        """Show the form, or start."""
        if self._first_options is None:
            self._show_form()
        else:
            self.start(self._first_options)

    def on_unmount(self) -> None:
        """End the job, of which nothing more is shown."""
        job, self._job = self._job, None
        if job:
            job.cancel()

    async def set_form(self, form: OptionForm) -> None:
        """Show a form that was made later."""
        await self.mount(form, before="#about")
        self._show_form()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Start from the form, or again once the job has ended; end it while it runs."""
        is_form = self.has_class("-form")
        match action:
            case "start":
                return is_form and bool(self.query(OptionForm))
            case "again":
                return not is_form and not self.is_working and self.options is not None
            case "options":
                return not is_form
            case "end":
                return self.is_working
            case "back":
                return not self.is_working
        return True

    @property
    def is_working(self) -> bool:
        """Whether a job has been started that has neither ended nor been cancelled."""
        return self._job is not None and not self._job.is_cancelled

    @property
    def work_in_progress(self) -> str:
        """The job, while it runs."""
        return self.NOUN if self.is_working else ""

    def work_detail(self, *, closes: bool) -> str:
        """How far the job is, and what is kept of it."""
        return self.KEPT or ("What is found so far is lost." if closes else self.STAYS)

    def action_start(self) -> None:
        self.query_one(OptionForm).submit()

    def action_again(self) -> None:
        """Start with the options of before."""
        self.start(self.options)

    @awaiting
    async def action_options(self) -> None:
        """Show the form; ends a job that runs, which asks first."""
        if await self.may_end():
            self._show_form()

    def go_back(self) -> None:
        """Show what was found again, if the form was opened above it; else the screen below."""
        if self.has_class("-form") and self.options is not None:
            self._show_result()
        else:
            super().go_back()

    @awaiting
    async def action_end(self) -> None:
        """End the job, which asks first."""
        await self.may_end()

    async def may_end(self, *, closes: bool = False, quits: bool = False) -> bool:
        """Ask, if the job runs, whether to cancel it, and do so; returns whether to go on."""
        if not await super().may_end(closes=closes, quits=quits):
            return False
        self.cancel()
        return True

    def cancel(self) -> None:
        """End the job; what was found so far is shown once its thread has ended."""
        if self._job and not self._job.is_cancelled:
            self.progress.show("ending")
            self._job.cancel()
            self.refresh_bindings()

    def warn(self, warnings: Iterable[str]) -> None:
        """Notify of warnings, from any thread."""
        for warning in filter(None, warnings):
            self.app.notify(warning, severity="warning", markup=False)

    @on(OptionForm.Submitted)
    def _submitted(self, event: OptionForm.Submitted) -> None:
        event.stop()
        self.start(event.options)

    def start(self, options: Any) -> None:
        """Check the options, ask what is to be asked, and start the job."""
        if self._is_checking or self.is_working:
            self.app.bell()
            return
        self._is_checking = True
        self._check(options)

    @awaiting
    async def _check(self, options: Any) -> None:
        try:
            prepared = await asyncio.to_thread(self.prepare, options)
        except AccelError as error:
            self._is_checking = False
            for form in self.query(OptionForm):
                self._show_form()
                form.show_problem(error if isinstance(error, UsageError) else str(error))
            return
        question = self.question(prepared)
        if question and not self.is_active:  # it would come over another screen
            self._is_checking = False
            tell_question_first(self, self._heading)
            return
        may_start = question is None or await ask_user(self, question) not in (None, CANCEL.id)
        self._is_checking = False
        if may_start:
            self._start(options, prepared)

    def _start(self, options: Any, prepared: Any) -> None:
        self.options = options
        job = Job(lambda: self.call_later(self._take_later, job))
        self._job = job
        self.begin(prepared)
        self.progress.begin(self.FIRST_WORDS)
        self._show_result()
        self._work(job, prepared)

    def _show_result(self) -> None:
        """Show what is found, in place of the form."""
        self.remove_class("-form")
        widgets = self.query("#result, #result *").results(Widget)
        self.set_focus(next((each for each in widgets if each.focusable), None))
        self.refresh_bindings()

    @work(thread=True, exit_on_error=False, group="job")
    def _work(self, job: Job, prepared: Any) -> None:
        found, problems = None, list[str]()
        try:
            with reported(problems.append):
                found = self.run(job, prepared)
        finally:
            if job is self._job:
                self.call_later(self._finish, job, found, "".join(problems))

    def _take_later(self, job: Job) -> None:
        """Take the parts now, or when the last drawing was long enough ago."""
        wait = self._drawn_at + DRAW_SECONDS - time.monotonic()
        if wait > 0:
            self.set_timer(wait, lambda: self._take(job))
        else:
            self._take(job)

    def _take(self, job: Job) -> None:
        if job is self._job:
            for part in job.take_parts():
                if isinstance(part, Doing):
                    self.progress.show_doing(part.what)
                else:
                    self.take(part)
            self.draw()
            self._drawn_at = time.monotonic()

    async def _finish(self, job: Job, found: Any, problem: str) -> None:
        if job is not self._job:
            return
        self._take(job)
        self._job = None
        self.withdraw_question()
        lines = await self.finish(found)
        self.progress.show_end(lines, problem, was_cancelled=job.is_cancelled)
        self.refresh_bindings()

    def _show_form(self) -> None:
        self.add_class("-form")
        for form in self.query(OptionForm):
            form.focus_first()
        self.refresh_bindings()
