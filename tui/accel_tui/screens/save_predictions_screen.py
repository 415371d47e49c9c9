"""Dialog that asks for the file to save predictions to."""

from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Label

from accel_engine.errors import UsageError
from accel_engine.text import printable_line
from accel_engine.user_paths import exists, user_path
from accel_tui.predictions.files import SUFFIXES, check_output
from accel_tui.screens.asking import Dialog
from accel_tui.widgets.jobs.path_input import PathInput

HINT = "[@click=screen.save]enter $does[/], [@click=screen.back]esc cancels[/]"


class SavePredictionsScreen(Dialog[Path]):
    """Asks for a file; returns ``None`` when cancelled.

    Args:
        name: The file's name at first.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self._file = name
        self._overwrites = ""  # the path that was said to exist

    def compose(self) -> ComposeResult:
        """Compose a field, and a line for what is wrong."""
        with Vertical(classes="dialog"):
            yield Label("Save predictions", classes="question")
            formats = f"{', '.join(SUFFIXES)}: the suffix tells the format. A folder, without one, is for images."
            yield Label(formats, classes="detail", markup=False)
            yield PathInput(self._file, suffixes=SUFFIXES, id="file")
            yield Label(id="verdict")

    @on(Input.Changed, "#file")
    def _validate(self, event: Input.Changed) -> None:
        self._overwrites = ""
        self._show_verdict(event.value)

    def action_save(self) -> None:
        """Return the path if it can be written; of a file that exists, when asked again."""
        self._take(self.query_one("#file", Input).value)

    @on(Input.Submitted, "#file")
    def _submit(self, event: Input.Submitted) -> None:
        self._take(event.value)  # keys that came with enter may have changed the field since

    def _take(self, text: str) -> None:
        if self._problem(text):
            self.app.bell()
        elif exists(user_path(text.strip())) and self._overwrites != text:
            self._overwrites = text
            self._show_verdict(text)
        else:
            self.dismiss(user_path(text.strip()).absolute())

    def _show_verdict(self, text: str) -> None:
        verdict, problem = self.query_one("#verdict", Label), self._problem(text)
        verdict.set_class(bool(problem), "wrong")
        if problem:
            verdict.update(Content(problem))
        elif self._overwrites:
            name = printable_line(Path(text.strip()).name)
            verdict.update(Content.from_markup(HINT, does=f"overwrites {name}, which already exists"))
        else:
            verdict.update(Content.from_markup(HINT, does="saves"))

    def _problem(self, text: str) -> str:
        if not text.strip():
            return "give a file"
        try:
            check_output(user_path(text.strip()))
        except UsageError as error:
            return printable_line(str(error))
        return ""
