"""Details of the current run, below the list of runs."""

from textual.content import Content
from textual.widgets import Static

from accel_engine.run import RunInfo, RunSummary, Status
from accel_engine.text import printable, printable_fields
from accel_tui.formatting.runs import how_lost


class SelectedRun(Static):
    """Title, note and tags, outcome, command, and directory of a run."""

    DEFAULT_CSS = """
    SelectedRun {
        height: auto;
        min-height: 4;
        max-height: 6;
        padding: 0 1;
        border-top: solid $border;
    }
    """

    def __init__(self) -> None:
        super().__init__(markup=False)

    def show_run(self, run: RunSummary | None) -> None:
        """Show the details of a run."""
        self.update(_detail(printable_fields(run)))


def _detail(run: RunSummary | None) -> Content:
    if run is None:
        return Content("")
    where = Content.styled(printable(str(run.directory)), "$text-disabled")
    if run.info is None:
        return Content("\n").join([Content.styled(run.problem, "$text-warning"), where])
    info, plan = run.info, run.info.plan
    lines = [
        Content.assemble(
            (info.title, "bold"),
            (f"  {run.membership}" if run.membership else "", "$text-warning"),
            (f"  on {info.host}" if info.host else "", "$text-muted"),
            ("".join(f"  #{tag}" for tag in info.annotations.tags), "$accent"),
            (f"  {info.annotations.note}" if info.annotations.note else "", ""),
        )
    ]
    if info.waiting:
        lines.append(Content.styled(info.waiting.waiting, "$text-warning"))
    elif info.status is Status.LOST:
        lines.append(Content.styled(_lost(info, run.checkpoint), "$text-error"))
    elif run.reason:
        lines.append(Content.styled(run.reason, "$text-error" if info.status is Status.FAILED else "$text-muted"))
    again = ("$ " + plan.command(), "") if plan else ("the plan cannot be read on this machine", "$text-warning")
    if info.script:
        again = (f"$ {info.script}", "")
    if info.source:
        again = (f"imported from {info.source.path} ({info.source.format})", "$text-muted")
    if info.bench:
        again = (f"{info.made}, {info.bench}", "$text-muted")
    return Content("\n").join([*lines, Content.assemble(again), where])


def _lost(info: RunInfo, checkpoint: int) -> str:
    onwards = f" R continues from the checkpoint at step {checkpoint:,}." if info.plan and checkpoint else ""
    if info.script:
        onwards = " To continue, run the script again."
    return f"Lost: {how_lost(info)}.{onwards}"
