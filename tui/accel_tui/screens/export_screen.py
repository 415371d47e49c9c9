"""Export screen: writes the trained model of a run in other formats, and shows what each of them costs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from accel_engine.formats import format_named, target_name
from accel_engine.model_export import export_options
from accel_engine.plan.options import specs_of
from accel_engine.requests.export_model import Export, ExportRequest, ExportTarget, MeasuredModel, WritingFormat
from accel_engine.requests.protocol.model_reference import ModelReference, check_steps
from accel_engine.requests.protocol.request import ExamplesDone
from accel_engine.run.directory.run_paths import run_name
from accel_engine.user_paths import absolute_path, user_path
from accel_tui.app_protocol import Screens, open_screen
from accel_tui.formatting import model_export
from accel_tui.formatting.runs import device_warnings
from accel_tui.formatting.table_columns import ResultTable
from accel_tui.plan.form import FieldChoice
from accel_tui.screens.asking import QuestionScreen, overwrite_question
from accel_tui.screens.job import Job
from accel_tui.screens.job_screen import JobScreen
from accel_tui.widgets.jobs.option_form import OptionForm
from accel_tui.widgets.jobs.option_inputs import Checklist
from accel_tui.widgets.text_table import ResultTables

_AWAITED = """Each format with its metrics on the same examples, its difference
from the trained model, its size and its latency."""

_COLOURS = {
    **dict.fromkeys((model_export.FASTEST, model_export.FASTEST_EXPORT, model_export.WRITTEN), "success"),
    model_export.NOT_WRITTEN: "error",
    **dict.fromkeys(("waiting", "to be compared"), "note"),
    **dict.fromkeys(("writing", "comparing", "measuring"), "accent"),
}
"""Colours of the last column."""


@dataclass(frozen=True, slots=True)
class PreparedExport:
    """The request to the engine, and the files that exist already."""

    request: ExportRequest
    there: tuple[Path, ...]


class ExportScreen(JobScreen):
    """Exports the trained model of a run, in an engine process.

    Args:
        directory: The run's directory.
    """

    NOUN = "the export"
    KEPT = "What is written already stays."
    BINDING_GROUP_TITLE = "Export"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("D", "deploy", "Deploy", id="export.deploy", tooltip="Serve the trained model on this machine"),
    ]

    def __init__(self, directory: Path) -> None:
        super().__init__(f"Export {run_name(directory)}")
        self._directory = directory
        self._progress, self._targets = model_export.ExportProgress(()), tuple[ExportTarget, ...]()

    def make_form(self) -> OptionForm:
        """A list of formats, and where to write them."""
        precisions = {target_name(*kind): format_named(kind[0]).precision(kind[1]) for kind in export_options.FORMATS}
        formats = [FieldChoice(name, each.missing or each.about, not each.missing) for name, each in precisions.items()]
        specs = specs_of(export_options.ExportOptions)
        return OptionForm(
            export_options.ExportOptions,
            ("formats", "checkpoint", "output", "tolerance", "target_latency", "device"),
            texts={"output": export_options.default_folder(self._directory.name)},
            specs={
                "formats": replace(
                    specs["formats"], doc="What to write.", choices=tuple(precisions), is_required=False
                ),
                "output": replace(specs["output"], doc="Where to.", is_required=True),
            },
            editors={"formats": Checklist(formats)},
            directories=(self._directory,),
        )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Lead to its deployment once nothing is written."""
        if action == "deploy":
            return not self.has_class("-form") and not self.is_working
        return super().check_action(action, parameters)

    def action_deploy(self) -> None:
        """Deploy the run."""
        open_screen(self, Screens.DEPLOY, self._directory)

    def compose_result(self) -> ComposeResult:
        yield ResultTables(colours=_COLOURS, awaited=_AWAITED, id="result")

    def prepare(self, options: export_options.ExportOptions) -> PreparedExport:
        """The targets, each with a path that can be written."""
        check_steps((self._directory,), options.checkpoint)
        folder = absolute_path(user_path(options.output))
        chosen = [kind for kind in export_options.FORMATS if target_name(*kind) in options.formats]
        targets = tuple(export_options.all_targets(self._directory.name, folder, options.tolerance, chosen))
        for target in targets:
            export_options.check_target(target)
        request = ExportRequest(
            ModelReference.of(self._directory),
            targets,
            options.checkpoint,
            options.target_latency,
            wanted_device=options.device,
            folder=export_options.existing_folder(folder),
        )
        return PreparedExport(request, tuple(path for target in targets for path in export_options.overwritten(target)))

    def question(self, prepared: PreparedExport) -> QuestionScreen | None:
        """Whether files are overwritten."""
        more = "A file is replaced only by a model within the tolerance."
        return overwrite_question(prepared.there, more) if prepared.there else None

    def run(self, job: Job, prepared: PreparedExport) -> Export:
        """Write the formats, compare and measure them."""
        self.warn(device_warnings(("cpu",), can_choose=False))
        return job.ask(prepared.request)

    def begin(self, prepared: PreparedExport) -> None:
        """Show that all formats wait."""
        self._targets = prepared.request.targets
        self._progress = model_export.ExportProgress(tuple(target.name for target in self._targets))
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
        self.progress.show(self._progress.phase)

    @property
    def _tables(self) -> ResultTables:
        return self.query_one(ResultTables)

    def draw(self) -> None:
        """Show what was measured."""
        models = self._progress.models
        metrics = tuple(models[0].metrics) if models else ()
        self._tables.show([ResultTable(model_export.model_header(metrics), list(self._progress.rows(metrics)))])

    async def finish(self, found: Export | None) -> Sequence[str]:
        """Show the exports, and why some were not written."""
        if found is None:
            written = [each.name for each in self._progress.models[1:] if not each.problem]
            return (f"written before: {', '.join(written)}" if written else "nothing written",)
        self._tables.show(model_export.drawn_export_tables(found, self._targets))
        return model_export.export_headline(found), *found.notes
