"""Predict screen: what the trained model of a run says about examples, or the text that it writes."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.geometry import Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from accel_engine.errors import AccelError, PlanError, UsageError
from accel_engine.image_files import check_image, read_pixels
from accel_engine.plan.options import specs_of
from accel_engine.requests.predict import ExamplePredictions, PredictionOptions, PredictionRequest
from accel_engine.requests.protocol.model_reference import check_steps
from accel_engine.requests.protocol.request import ExamplesDone
from accel_engine.requests.write_text import WritingOptions, WritingRequest, WrittenPart, WrittenText
from accel_engine.run.diagnostics import DataFormat, read
from accel_engine.run.directory.run_paths import run_name
from accel_engine.text import printable, printable_line
from accel_engine.trained.prediction_files import ARRAYS, SUFFIXES, check_example_files
from accel_engine.user_paths import absolute_path, exists, user_path
from accel_engine.words import numbers
from accel_tui.formatting.table_columns import ResultTable
from accel_tui.formatting.text import shorten_middle, wrapped
from accel_tui.predictions.files import SavingOptions, files_of, is_image_output, pixels, write_predictions
from accel_tui.predictions.rows import drawn_prediction_tables, most_examples
from accel_tui.screens.asking import OVERWRITE, ask_user, awaiting, overwrite_question
from accel_tui.screens.entry_screen import OptionsScreen
from accel_tui.screens.job import Job, reported
from accel_tui.screens.job_screen import JobScreen
from accel_tui.widgets.diagnostics.pixels import draw_image, size_within
from accel_tui.widgets.jobs.option_form import OptionForm
from accel_tui.widgets.text_page import TextPage
from accel_tui.widgets.text_table import ResultTables, TextTable


class GrowingText(ScrollView):
    """A text that is wrapped to the width, and scrolled to its end; of what is added, only that is wrapped.

    Args:
        id: The widget's id.
    """

    DEFAULT_CSS = "GrowingText { scrollbar-gutter: stable; }"

    def __init__(
        self,
        *,
        id: str | None = None,  # noqa: A002 (Textual's own name)
    ) -> None:
        super().__init__(id=id)
        self._pieces = list[str]()
        self._lines = [""]
        self._width = 0  # that the lines are wrapped to

    def begin(self, text: str) -> None:
        """Show another text."""
        self._pieces, self._lines = [], [""]
        self.append(text)

    def append(self, text: str) -> None:
        """Add a text at the end."""
        part = printable(text)
        self._pieces.append(part)
        if self._width:
            self._extend(part)

    def on_resize(self) -> None:
        width = self.scrollable_content_region.width
        if width and width != self._width:
            self._width, self._lines = width, [""]
            self._extend("".join(self._pieces))

    def render_line(self, y: int) -> Strip:
        row = y + self.scroll_offset.y
        line = Text(self._lines[row] if row < len(self._lines) else "", self.rich_style)
        if self.text_selection and (span := self.text_selection.get_span(row)):
            start, end = span
            style = self.screen.get_component_rich_style("screen--selection")
            line.stylize(style, start, len(line) if end == -1 else end)
        strip = Strip(line.render(self.app.console)).adjust_cell_length(self.size.width, self.rich_style)
        return strip.apply_offsets(0, row)

    def get_selection(self, selection: Selection) -> tuple[str, str]:
        """The lines that are selected, as they are wrapped, and how they end."""
        return selection.extract("\n".join(self._lines)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Show what is selected."""
        self.refresh()

    def _extend(self, part: str) -> None:
        self._lines[-1:] = wrapped(self._lines[-1] + part, self._width)
        self.virtual_size = Size(self._width, len(self._lines))
        self.scroll_end(animate=False)
        self.refresh()


_SIDE = 512
"""Pixels of a shown picture's longer side at most."""


class ShownExample(NamedTuple):
    """A picture of an example, or one that was predicted."""

    title: str
    pixels: npt.NDArray[np.uint8]
    """``[height, width, channels]``."""
    is_mask: bool = False


class ExamplePictures(TextPage):
    """The picture of the current example, above the picture that was predicted of it."""

    pictures: reactive[tuple[ShownExample, ...]] = reactive((), repaint=False)
    """The examples whose pictures are shown."""

    def watch_pictures(self) -> None:
        self.rebuild()

    def build_page(self, width: int, height: int) -> Iterator[Strip]:
        """Build a title and a picture for each, as large as fits."""
        for title, shown, is_mask in self.pictures:
            columns, lines = size_within(shown, width, max(1, height // len(self.pictures) - 2))
            yield self.line((shorten_middle(title, width), "faint"))
            yield from draw_image(
                shown,
                columns,
                lines,
                blocks=self.has_blocks,
                dark=self.is_dark,
                background=self.background_rgb,
                style=self.rich_style,
                smooth=not is_mask,
                images=self.pixel_images,
            )
            yield self.line()


def pictures_of_prediction(found: ExamplePredictions, row: int) -> Iterator[ShownExample]:
    """The picture of an example that was predicted, if it is an image file, and the images that were predicted of it.

    Args:
        found: The predictions.
        row: Its place among the examples that were predicted.
    """
    path, name = found.names[found.readable[row]]
    if found.kind == "images" and path == name:
        with suppress(AccelError, OSError):  # it was read, and is gone since
            header = check_image(Path(path))
            scale = min(1.0, _SIDE / max(header.height, header.width))
            shape = (max(1, round(header.height * scale)), max(1, round(header.width * scale)), header.channels)
            yield ShownExample(printable_line(Path(name).name), read_pixels(Path(path), shape, np.dtype(np.uint8))[0])
    for output in found.outputs:
        if is_image_output(output):
            title = printable_line(output.name) or "prediction"
            yield ShownExample(title, pixels(output, row, found.limits), output.task == "segmentation")


MOST_ROWS = 1000
"""The most rows of a table; all are saved."""

_KINDS_OF_FILES = {"images": "images or folders of images", "audio": "sounds or folders of them"}


def writes_text(form: DataFormat | None) -> bool:
    """Whether a model of data of this form predicts its own vocabulary, so that it can continue a prompt."""
    if form is None or form.task != "sequence" or not form.vocabulary:
        return False
    return form.class_names in ((), form.vocabulary)


class PredictScreen(JobScreen):
    """Predicts examples with the trained model of a run, in an engine process.

    Args:
        directory: The run's directory.
    """

    NOUN = "the prediction"
    STAYS = "What is not predicted yet is lost."
    BINDING_GROUP_TITLE = "Predict"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("W", "save", "Save", id="predict.save", tooltip="Save the predictions to a file")
    ]

    def __init__(self, directory: Path) -> None:
        super().__init__(f"Predict {run_name(directory)}")
        self._directory = directory
        self._format: DataFormat | None = None
        self._found: ExamplePredictions | None = None
        self._parts = list[str]()  # of the text, which are not shown yet

    def make_form(self) -> None:
        """The form follows from the run's data, which is read first."""

    def compose_result(self) -> ComposeResult:
        with Container(id="result"):
            yield GrowingText(id="text")
            yield ResultTables(awaited="A row for each example, with its prediction.\n\nW saves all of them to a file.")
            yield ExamplePictures()

    def on_mount(self) -> None:
        """Read what examples the model takes, for the form."""
        self._read_format()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Save what was predicted."""
        if action == "save":
            has_found = self._found is not None and bool(self._found.outputs)
            return has_found and not self.is_working and not self.has_class("-form")
        return super().check_action(action, parameters)

    @property
    def work_in_progress(self) -> str:
        """The prediction; empty while a text is written, as the text so far stays on the screen."""
        return "" if self.has_class("-writing") else super().work_in_progress

    @awaiting
    async def action_save(self) -> None:
        """Ask for a file, and whether to overwrite it, then save the predictions."""
        path = await self._ask_where()
        if path and self._found:
            self._save(absolute_path(path), self._found)

    async def _ask_where(self) -> Path | None:
        """Where to save the predictions; ``None`` for nowhere."""
        form = OptionForm(
            SavingOptions,
            ("output",),
            texts={"output": f"{self._directory.name}-predictions.csv"},
            specs={"output": replace(specs_of(SavingOptions)["output"], is_required=True)},
            does="saves",
        )
        saving: SavingOptions | None = await ask_user(self, OptionsScreen("Save predictions", form))
        path = saving.path if saving else None
        if path is None or not exists(path):
            return path
        return path if await ask_user(self, overwrite_question([path])) == OVERWRITE.id else None

    @work(thread=True, exit_on_error=False, group="form")
    def _read_format(self) -> None:
        problem = ""
        try:
            self._format = read(self._directory).format
        except AccelError as error:
            problem = str(error)
        self.call_later(self._show_format, problem)

    async def _show_format(self, problem: str) -> None:
        form = self._form_of(self._format)
        await self.set_form(form)
        if problem:
            form.show_problem(problem)

    def _form_of(self, data: DataFormat | None) -> OptionForm:
        """A row for each field that data of a form has."""
        if writes_text(data):
            return OptionForm(WritingOptions, tuple(specs_of(WritingOptions)), directories=(self._directory,))
        kind = data.kind if data else ""
        suffixes = SUFFIXES.get(kind, ARRAYS)
        takes = f"{_KINDS_OF_FILES.get(kind, 'a file')}: {' '.join(suffixes)}"
        path = replace(specs_of(PredictionOptions)["path"], suffixes=suffixes)
        is_shown = {"texts": kind == "text", "top": data is None or bool(data.class_names)}
        names = [name for name in specs_of(PredictionOptions) if is_shown.get(name, True)]
        return OptionForm(PredictionOptions, names, takes, specs={"path": path}, directories=(self._directory,))

    def prepare(self, options: PredictionOptions | WritingOptions) -> PredictionRequest | WritingRequest:
        """The request, with the files of a folder."""
        check_steps((self._directory,), options.checkpoint)
        if isinstance(options, WritingOptions):
            return WritingRequest(self._directory, options)
        if not options.path and not options.texts:
            is_text = self._format is not None and self._format.kind == "text"
            raise UsageError("nothing to predict: give a path" + (" or a text" if is_text else ""))
        path = user_path(options.path) if options.path else None
        if path and not exists(path):
            raise PlanError("path", options.path, "no such file")
        files = files_of(path) if path else []
        if self._format:
            check_example_files(self._directory.name, self._format, files)
        return PredictionRequest(
            self._directory, tuple(files), options.texts, options.checkpoint, wanted_device=options.device
        )

    def run(self, job: Job, prepared: PredictionRequest | WritingRequest) -> tuple[Any, list[ResultTable]]:
        """Predict, or write."""
        found = job.ask(prepared)
        return found, [] if isinstance(found, WrittenText) else drawn_prediction_tables(
            found, self.options.top, MOST_ROWS
        )

    def begin(self, prepared: PredictionRequest | WritingRequest) -> None:
        """Begin with the prompt, or without tables."""
        super().begin(prepared)
        writes = isinstance(prepared, WritingRequest)
        self.set_class(writes, "-writing").set_class(not writes, "-predicting")
        if isinstance(prepared, WritingRequest):
            self._parts.clear()
            self.query_one(GrowingText).begin(prepared.options.prompt)

    def take(self, part: ExamplesDone | WrittenPart) -> None:
        """Tell the number of examples, or add to the text."""
        if isinstance(part, WrittenPart):
            self._parts.append(part.text)
        else:
            self.progress.show_examples(part)

    def draw(self) -> None:
        """Show what was written."""
        if self._parts:
            self.query_one(GrowingText).append("".join(self._parts))
            self._parts.clear()

    async def finish(self, found: tuple[Any, list[ResultTable]] | None) -> Sequence[str]:
        """Show the tables of what was predicted."""
        if found is None:
            return ()
        answer, shown = found
        if isinstance(answer, WrittenText):
            tokens = numbers.counted(answer.tokens, "token")
            return f"{answer.name} at step {answer.step:,}, {tokens}, {answer.device.text}", *answer.notes
        self._found = answer
        self.query_one(ResultTables).show(shown)
        self._show_pictures()
        return _summary(answer), *answer.notes

    @on(TextTable.Moved)
    def _show_pictures(self) -> None:
        """Show the pictures of the current example, if it has some."""
        tables = list(self.query(TextTable))
        table = next((each for each in tables if each.has_focus), tables[0]) if tables else None
        if self._found and table and table.current and tables.index(table) < len(self._found.outputs):
            self._read_pictures(self._found, table.current.number)

    @work(thread=True, exclusive=True, exit_on_error=False, group="pictures")
    def _read_pictures(self, found: ExamplePredictions, row: int) -> None:
        self.call_later(self._take_pictures, found, tuple(pictures_of_prediction(found, row)) if found.readable else ())

    def _take_pictures(self, found: ExamplePredictions, pictures: tuple[ShownExample, ...]) -> None:
        if found is self._found:
            self.set_class(bool(pictures), "-pictures")
            self.query_one(ExamplePictures).pictures = pictures

    @work(thread=True, exit_on_error=False, group="save")
    def _save(self, path: Path, found: ExamplePredictions) -> None:
        app = self.app
        with reported(partial(app.notify, title="Not saved", severity="error", markup=False)):
            write_predictions(path, found, self.options.top)
            app.notify(str(path), title="Saved", markup=False)


def _summary(found: ExamplePredictions) -> str:
    """A line on the predictions: the model, its step, the number of examples and the device."""
    total, shown = len(found.names), len(found.readable)
    step = f" at step {found.step:,}" if found.step else ""
    counts = numbers.counted(total, "example") if shown == total else f"{shown:,} of {total:,} examples predicted"
    limit = most_examples(found, MOST_ROWS)
    most = f"; the first {limit:,} are shown, W saves all" if shown > limit else ""
    return f"{found.name}{step}: {counts} {found.device.text}{most}"
