"""Former ids of key bindings, which settings files may still have."""

from collections.abc import Mapping
from types import MappingProxyType

OLD_KEY_IDS: Mapping[str, str] = MappingProxyType(
    {
        "ask.back": "question.back",
        "ask.next": "question.next",
        "ask.previous": "question.previous",
        "charts-choice.default": "select-charts.default",
        "charts-choice.done": "select-charts.done",
        "charts-choice.tick": "select-charts.toggle",
        "charts.choose": "charts.select",
        "charts.fill": "charts.full-screen",
        "confusion.shares": "confusion.percent",
        "gallery.before": "gallery.previous",
        "inside.back": "diagnostics.back",
        "diagnostics.confusion": "diagnostics.tab-1",
        "diagnostics.layers": "diagnostics.tab-3",
        "diagnostics.samples": "diagnostics.tab-2",
        "inside.confusion": "diagnostics.tab-1",
        "inside.layers": "diagnostics.tab-3",
        "inside.pictures": "diagnostics.tab-2",
        "inside.quit": "diagnostics.quit",
        "inside.validate": "diagnostics.validate",
        "labels.back": "edit-run.back",
        "labels.next": "edit-run.next",
        "labels.previous": "edit-run.previous",
        "log.page_down": "log.page-down",
        "log.page_up": "log.page-up",
        "picker.page_down": "picker.page-down",
        "picker.page_up": "picker.page-up",
        "picker.take": "picker.accept",
        "plan.copy": "new-run.copy",
        "plan.defaults": "new-run.defaults",
        "plan.down": "new-run.down",
        "plan.leave": "new-run.leave",
        "plan.page-down": "new-run.page-down",
        "plan.page-up": "new-run.page-up",
        "plan.runs": "new-run.runs",
        "plan.start": "new-run.start",
        "plan.up": "new-run.up",
        "run.go-on": "run.pause",
        "run.inside": "run.diagnostics",
        "run.resume": "run.continue",
        "runs.label": "runs.edit",
        "runs.mark": "runs.select",
        "runs.mark-down": "runs.select-down",
        "runs.mark-up": "runs.select-up",
        "runs.open_early": "runs.open-newest",
        "runs.order": "runs.sort",
        "runs.order-before": "runs.sort-previous",
        "runs.plan": "runs.duplicate",
        "runs.resume": "runs.continue",
        "runs.to-plan": "runs.new-run",
        "runs.turn": "runs.reverse",
    }
)
"""The current id of the binding of each former id."""

MERGED_KEY_IDS = frozenset({"run.go-on"})
"""Former ids of bindings that now belong to another one; its keys are those of both."""
