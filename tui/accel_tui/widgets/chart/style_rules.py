"""CSS rules of the styles of a chart's cells, for each widget that draws charts."""

from accel_tui.widgets.chart.cell_frame import COLOURS


def style_rules(owner: str, prefix: str) -> str:
    """CSS rules for the component classes ``PREFIX--STYLE`` of a widget.

    Args:
        owner: The widget's CSS type.
        prefix: Of its component classes.
    """
    rules = {
        "title": "color: $text; text-style: bold;",
        "note": "color: $text-muted;",
        "label": "color: $text-muted;",
        "axis": "color: $foreground 30%;",
        "grid": "color: $foreground 15%;",
    }
    for colour in COLOURS:
        rules |= {colour: f"color: ${colour};", f"{colour}-band": f"color: ${colour} 45%;"}
    ansi = dict.fromkeys(("note", "label", *(f"{colour}-band" for colour in COLOURS)), "text-style: dim;")
    ansi |= dict.fromkeys(("axis", "grid"), "color: ansi_bright_black;")
    return "".join(
        f"{owner}{state} > .{prefix}--{name} {{ {rule} }}\n"
        for state, named in (("", rules), (":ansi", ansi))
        for name, rule in named.items()
    )
