"""Details of the current run, below the list of the queue."""

import time

from textual.content import Content
from textual.widgets import Static

from accel_tui.formatting import numbers
from accel_tui.formatting.queued_runs import waits
from accel_tui.run_list.queue_rows import QueueRow


class QueueDetail(Static):
    """Title, why it waits in full, command, and what it asks for."""

    DEFAULT_CSS = """
    QueueDetail {
        height: auto;
        min-height: 4;
        max-height: 7;
        padding: 0 1;
        border-top: solid $border;
    }
    """

    def __init__(self) -> None:
        super().__init__(markup=False)

    def show_row(self, row: QueueRow | None) -> None:
        """Show the details of a run."""
        self.update(_detail(row) if row else Content(""))


def _detail(row: QueueRow) -> Content:
    entry, plan = row.entry, row.info.plan if row.info else None
    since = f"  queued {numbers.ago(time.time() - entry.added)}" if entry.added else ""
    lines = [Content.assemble((row.info.title if row.info else entry.run, "bold"), (since, "$text-muted"))]
    if entry.is_started:
        where = f" on {', '.join(entry.devices)}" if entry.devices else ""
        lines.append(Content(f"{row.status or 'cannot be read'}{where}, {numbers.counted(row.steps, 'step')}"))
    else:
        lines.append(Content.styled(_sentence(row), "$text-warning" if entry.is_held else ""))
    asks = [f"after {', '.join(entry.request.after)}"] if entry.request.after else []
    if entry.request.group:
        most = f", at most {entry.request.at_once} at once" if entry.request.at_once else ""
        asks.append(f"of {entry.request.group}{most}")
    if asks:
        lines.append(Content.styled("; ".join(asks), "$text-muted"))
    lines.append(Content(f"$ {plan.command()}" if plan else "the plan cannot be read on this machine"))
    return Content("\n").join(lines)


def _sentence(row: QueueRow) -> str:
    text = waits(row.entry)
    if row.entry.is_held:
        return text[:1].upper() + text[1:]
    return f"Waits: {text}" if row.entry.reason else "Waits"
