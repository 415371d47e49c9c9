"""Export screen: writes the trained model of a run in other formats, and shows what each of them costs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import ScrollableContainer
from textual.content import Content
from textual.widgets import Static

from accel_engine.formats import format_named, target_name
from accel_engine.model_export.export_targets import (
    FORMATS,
    ExportOptions,
    all_targets,
    check_target,
    default_folder,
    existing_folder,
    overwritten,
)
from accel_engine.plan.options import specs_of
from accel_engine.requests.export_model import Export, ExportRequest, MeasuredModel, WritingFormat
from accel_engine.requests.protocol.model_reference import ModelReference, check_steps
from accel_engine.requests.protocol.request import ExamplesDone
from accel_engine.text import printable
from accel_engine.user_paths import user_path
from accel_tui.formatting.model_export import (
    FASTEST,
    FASTEST_EXPORT,
    NOT_WRITTEN,
    SIGNATURE,
    WRITTEN,
    ExportProgress,
    export_headline,
    model_header,
    model_rows,
    problems,
    signature_rows,
    written_to,
)
from accel_tui.formatting.runs import device_warnings
from accel_tui.plan.form import FieldChoice
from accel_tui.screens.job import Job
from accel_tui.screens.job_screen import JobScreen
from accel_tui.screens.question_screen import QuestionScreen, overwrite_question
from accel_tui.widgets.jobs.checklist import Checklist
from accel_tui.widgets.jobs.option_form import OptionForm
from accel_tui.widgets.text_table import table_content

_MARKS = {
    FASTEST: "bold $text-success",
    FASTEST_EXPORT: "bold $text-success",
    WRITTEN: "$text-success",
    NOT_WRITTEN: "$text-error",
}
_STATES = dict.fromkeys(("waiting", "to be compared"), "$text-muted") | dict.fromkeys(
    ("writing", "comparing", "measuring"), "$text-accent"
)
_STYLES = _MARKS | _STATES
"""Colours of the last column."""


@dataclass(frozen=True, slots=True)
class PreparedExport:
    """What is asked of the engine, and the files that are there already."""

    request: ExportRequest
    there: tuple[Path, ...]


class ExportScreen(JobScreen):
    """Exports the trained model of a run, in an engine process of its own.

    Args:
        directory: The run's directory.
    """

    NOUN = "the export"
    KEPT = "What is written already stays."
    BINDING_GROUP_TITLE = "Export"

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = directory
        self._progress = ExportProgress(())

    @property
    def heading(self) -> str:
        """The title in the top bar."""
        return f"Export {self._directory.name}"

    def make_form(self) -> OptionForm:
        """A list of formats, and where to write them."""
        precisions = {target_name(*kind): format_named(kind[0]).precision(kind[1]) for kind in FORMATS}
        formats = [FieldChoice(name, each.missing or each.about, not each.missing) for name, each in precisions.items()]
        specs = specs_of(ExportOptions)
        return OptionForm(
            ExportOptions,
            ("formats", "checkpoint", "output", "tolerance", "target_latency"),
            texts={"output": default_folder(self._directory.name)},
            specs={
                "formats": replace(
                    specs["formats"], doc="What to write.", choices=tuple(precisions), is_required=False
                ),
                "output": replace(specs["output"], doc="Where to.", is_required=True),
            },
            editors={"formats": Checklist(formats)},
            directories=(self._directory,),
        )

    def compose_result(self) -> ComposeResult:
        """Compose the room for the tables."""
        with ScrollableContainer(id="result"):
            yield Static(classes="table")

    def prepare(self, options: ExportOptions) -> PreparedExport:
        """The targets, each with a path that can be written."""
        check_steps((self._directory,), options.checkpoint)
        folder = user_path(options.output).absolute()
        chosen = [kind for kind in FORMATS if target_name(*kind) in options.formats]
        targets = tuple(all_targets(self._directory.name, folder, options.tolerance, chosen))
        for target in targets:
            check_target(target)
        request = ExportRequest(
            ModelReference.of(self._directory),
            targets,
            options.checkpoint,
            options.target_latency,
            folder=existing_folder(folder),
        )
        return PreparedExport(request, tuple(path for target in targets for path in overwritten(target)))

    def question(self, prepared: PreparedExport) -> QuestionScreen | None:
        """Whether files are overwritten."""
        more = "A file is replaced only by a model within the tolerance."
        return overwrite_question(prepared.there, more) if prepared.there else None

    def run(self, job: Job, prepared: PreparedExport) -> Export:
        """Write the formats, compare and measure them."""
        self.warn(device_warnings(("cpu",), can_choose=False))
        found: Export = job.ask(prepared.request)
        return found

    def begin(self, prepared: PreparedExport) -> None:
        """Show that all formats wait."""
        self._progress = ExportProgress(tuple(target.name for target in prepared.request.targets))
        self.draw()

    def take(self, part: ExamplesDone | WritingFormat | MeasuredModel) -> None:
        """Take note of what is going on."""
        match part:
            case ExamplesDone():
                self._progress = replace(self._progress, examples=(part.done, part.of))
            case WritingFormat():
                self._progress = replace(self._progress, writing=part.name, examples=None)
            case MeasuredModel():
                self._progress = replace(self._progress, models=(*self._progress.models, part))
        self.progress.tell(self._progress.phase)

    def draw(self) -> None:
        """Show what was measured."""
        models = self._progress.models
        metrics = tuple(models[0].metrics) if models else ()
        self._fill(table_content(model_header(metrics), list(self._progress.rows(metrics)), _STYLES))

    async def finish(self, found: Export | None) -> Sequence[str]:
        """Show the exports, and why some were not written."""
        if found is None:
            written = [each.name for each in self._progress.models[1:] if not each.problem]
            return (f"written before: {', '.join(written)}" if written else "nothing written",)
        metrics = tuple(found.original.metrics)
        signature = list(signature_rows((found.written or (found.original,))[0]))
        self._fill(
            table_content(model_header(metrics), model_rows(found, metrics), _STYLES),
            _listed("Not written", list(problems(found)), "$text-error"),
            table_content(SIGNATURE, signature, {}),
            _listed(*written_to(found), "$text-muted"),
        )
        return export_headline(found), *found.notes

    def _fill(self, *parts: Content) -> None:
        """Show parts one below the other; a part without text has no line."""
        self.query_one(".table", Static).update(Content("\n\n").join([part for part in parts if part]))


def _listed(title: str, lines: Sequence[str], style: str) -> Content:
    """Lines under a title; nothing without lines."""
    if not lines:
        return Content("")
    return Content("\n").join(
        [Content.styled(title, "bold"), *(Content.styled(printable(line), style) for line in lines)]
    )
