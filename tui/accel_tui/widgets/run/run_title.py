"""Which run this is."""

from textual.content import Content

from accel_tui.formatting.names import base_name
from accel_tui.run.state import RunState
from accel_tui.widgets.run.run_text import RunText, row


class RunTitle(RunText):
    """One line: the run's id, what it trains, and where."""

    DEFAULT_CSS = """
    RunTitle {
        height: 1;
        padding: 0 1;
        background: $surface;
    }
    """

    def parts(self, state: RunState) -> tuple[object, ...]:
        """What is told, and the room for it."""
        return state.info, self.width

    def words(self, state: RunState) -> Content:
        """The run's id and what it trains at the left, the machine at the right."""
        info = state.info
        if info is None:
            return Content("")
        values = info.values
        # A name that is fit for one is the id's second half already.
        name = info.name if not info.id.endswith(f"-{info.name}") else ""
        model, data = (base_name(str(values.get(field))) for field in ("model", "data"))
        trains = f"{model} on {data}, {values.get('strategy')}"
        left = Content.assemble(
            ("accel-tui", "bold $accent"),
            (f"  {info.id}", "bold"),
            f"  {name}" if name else "",
            (f"  {trains}", "$text-muted"),
        )
        where = f"{info.host}, process {info.pid}" if info.pid and info.status.live else info.host
        return row(left, Content.styled(where, "$text-muted"), self.width)
