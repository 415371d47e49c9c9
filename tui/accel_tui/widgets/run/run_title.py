"""The title line of a run."""

from textual.content import Content

from accel_tui.formatting.text import base_name
from accel_tui.run_state.state import RunState
from accel_tui.widgets.run.run_text import RunText, row


class RunTitle(RunText):
    """Run id, model and data, and machine."""

    DEFAULT_CSS = """
    RunTitle {
        height: 1;
        padding: 0 1;
        background: $surface;
    }
    """

    def inputs(self, state: RunState) -> tuple[object, ...]:
        """All that the text depends on."""
        return state.info, self.width

    def build(self, state: RunState) -> Content:
        """Run id, name, model and data at the left, machine at the right."""
        info = state.info
        if info is None:
            return Content("")
        values = info.plan_values
        # a valid name is part of the id already, and that of a script of the data
        name = info.name if not info.id.endswith(f"-{info.name}") and info.name != values.get("data") else ""
        trains = " on ".join(base_name(str(value)) for field in ("model", "data") if (value := values.get(field)))
        strategy = values.get("strategy")
        trains += f", strategy {strategy}" if strategy not in (None, "", "default") else ""
        if info.source:
            trains = f"imported from {base_name(info.source.path)}"
        if info.bench:
            trains = f"inference, {info.bench}"
        left = Content.assemble(
            ("accel-tui", "bold $accent"),
            (f"  {info.id}", "bold"),
            f"  {name}" if name else "",
            (f"  {trains}", "$text-muted"),
        )
        where = f"{info.host}, process {info.pid}" if info.pid and info.status.live else info.host
        return row(left, Content.styled(where, "$text-muted"), self.width)
