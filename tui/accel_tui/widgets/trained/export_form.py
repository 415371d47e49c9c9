"""The form of an export: formats, checkpoint, folder, tolerance, latency of a SavedModel."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import Input, Label, OptionList, Static
from textual.widgets.option_list import Option

from accel_engine.errors import UsageError
from accel_engine.formats import named, target_name
from accel_engine.model_export.export_targets import FORMATS, all_targets, check_target, default_folder
from accel_engine.requests.export_model import ExportTarget
from accel_engine.run.directory.run_paths import checkpoint_steps
from accel_engine.user_paths import user_path
from accel_tui.plan.bench_choices import latency
from accel_tui.plan.checkpoint_choice import checked_checkpoint
from accel_tui.widgets.line_input import LineInput
from accel_tui.widgets.trained.checkpoint_picker import CheckpointPicker
from accel_tui.widgets.trained.path_input import PathInput

_LATENCY = "of a request to TensorFlow Serving at most, such as 20ms; or empty"


@dataclass(frozen=True, slots=True)
class _ChecklistItem:
    """An item of a list.

    Attributes:
        id: Its name.
        about: What it is.
        problem: Why it cannot be chosen; empty if it can.
    """

    id: str
    about: str
    problem: str = ""


class Checklist(OptionList):
    """Items with a mark each; those that can be chosen are chosen at first.

    Textual's ``SelectionList`` tells what is chosen by colour only.

    Args:
        items: The items.
        id: The widget's id.
    """

    BINDING_GROUP_TITLE = "In the list"
    DEFAULT_CSS = """
    Checklist { height: auto; background: $background; border: none; padding: 0; }
    Checklist:focus { border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,enter", "select", "Choose", id="checklist.choose", tooltip="Choose this item, or not")
    ]

    @dataclass
    class Changed(Message):
        """Other items are chosen than before."""

        checklist: "Checklist"

        @property
        def control(self) -> "Checklist":
            """The sender, for :func:`textual.on`."""
            return self.checklist

    def __init__(
        self,
        items: Sequence[_ChecklistItem],
        *,
        id: str | None = None,  # noqa: A002 (Textual's own name)
    ) -> None:
        self._items = tuple(items)
        self._chosen = {item.id for item in items if not item.problem}
        self._width = max((len(item.id) for item in items), default=0)
        options = (Option(self._content(item), disabled=bool(item.problem)) for item in items)
        super().__init__(*options, id=id, compact=True)

    @property
    def chosen(self) -> tuple[str, ...]:
        """The ids of the chosen items, in the order of the list."""
        return tuple(item.id for item in self._items if item.id in self._chosen)

    def _content(self, item: _ChecklistItem) -> Content:
        mark = "[x]" if item.id in self._chosen else "[ ]"
        style = "$text-error" if item.problem else "$text-muted"
        return Content.assemble(f"{mark} {item.id:<{self._width}}  ", (item.problem or item.about, style))

    @on(OptionList.OptionSelected)
    def _toggle(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        item = self._items[event.option_index]
        self._chosen ^= {item.id}
        self.replace_option_prompt_at_index(event.option_index, self._content(item))
        self.post_message(self.Changed(self))


@dataclass(frozen=True, slots=True)
class ChosenExport:
    """What a user chose to export, as text.

    Attributes:
        directory: The run's directory.
        formats: Names of the formats.
        checkpoint_text: The checkpoint.
        folder_text: Where to.
        tolerance: The tolerance; empty for one by format.
        latency: How long a request to TensorFlow Serving may take; empty for any.
    """

    directory: Path
    formats: tuple[str, ...]
    checkpoint_text: str
    folder_text: str
    tolerance: str
    latency: str

    @property
    def folder(self) -> Path:
        """Where to."""
        return user_path(self.folder_text.strip()).absolute()

    @property
    def checkpoint(self) -> str:
        """``auto``, ``best``, ``last`` or a step, if :meth:`targets` raises no error."""
        return self.checkpoint_text.strip() or "auto"

    @property
    def target_latency(self) -> float | None:
        """Seconds that a request to TensorFlow Serving may take; ``None`` for any, and without a SavedModel.

        Raises:
            UsageError: It is no latency.
        """
        return latency(self.latency) if _are_served(self.formats) and self.latency.strip() else None

    def targets(self) -> list[ExportTarget]:
        """What is to be written.

        Raises:
            UsageError: What is wrong with the choice.
        """
        if not self.formats:
            raise UsageError("no format is chosen: choose one with space")
        if not self.folder_text.strip():
            raise UsageError("give a folder to write to")
        checked_checkpoint(self.checkpoint_text, checkpoint_steps(self.directory))
        chosen = [kind for kind in FORMATS if target_name(*kind) in self.formats]
        targets = all_targets(self.directory.name, self.folder, _tolerance(self.tolerance), chosen)
        for target in targets:
            check_target(target)
        return targets


class ExportForm(VerticalScroll):
    """Asks what to export, and where to.

    Args:
        directory: The run's directory.
    """

    problem: reactive[str] = reactive("", init=False)
    """What is wrong with the choice; empty if nothing is known."""

    def __init__(self, directory: Path) -> None:
        super().__init__(id="form", can_focus=False)
        self._directory = directory

    def compose(self) -> ComposeResult:
        """Compose a list of formats, and a line for each field."""
        yield Label("Formats", classes="heading")
        yield Checklist(list(map(_item, FORMATS)), id="formats")
        with Horizontal(classes="field"):
            yield Label("Checkpoint")
            yield CheckpointPicker((self._directory,))
        with Horizontal(classes="field"):
            yield Label("Folder")
            yield PathInput(default_folder(self._directory.name), id="folder")
        with Horizontal(classes="field"):
            yield Label("Tolerance")
            yield LineInput(placeholder="by format", id="tolerance", compact=True)
        with Horizontal(classes="field of-served"):
            yield Label("Latency")
            yield LineInput(placeholder=_LATENCY, id="latency", compact=True)
        yield Static(id="problem", markup=False)

    def on_mount(self) -> None:
        """Show the fields that the formats have."""
        self._show_fields()

    @on(Checklist.Changed)
    def _show_fields(self) -> None:
        """Show the fields that the formats have."""
        self.query_one(".of-served").display = _are_served(self.query_one(Checklist).chosen)

    def watch_problem(self) -> None:
        """Show what is wrong."""
        self.query_one("#problem", Static).update(self.problem)

    @property
    def choice(self) -> ChosenExport:
        """What is chosen now."""
        texts = (self.query_one(name, Input).value for name in ("#folder", "#tolerance", "#latency"))
        chosen, checkpoint = self.query_one(Checklist).chosen, self.query_one(CheckpointPicker).value
        return ChosenExport(self._directory, chosen, checkpoint, *texts)

    def focus_first(self) -> None:
        """Focus the list of formats."""
        self.query_one(Checklist).focus()


def _item(kind: tuple[str, str]) -> _ChecklistItem:
    precision = named(kind[0]).precision(kind[1])
    return _ChecklistItem(target_name(*kind), precision.about, precision.missing)


def _are_served(formats: Sequence[str]) -> bool:
    """Whether TensorFlow Serving takes one of the formats, each with its precision."""
    return any(named(kind).is_served for kind, precision in FORMATS if target_name(kind, precision) in formats)


def _tolerance(text: str) -> float | None:
    """A tolerance; ``None`` for one by format.

    Raises:
        UsageError: It is no number from 0.
    """
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise UsageError(f"the tolerance {text.strip()!r} is no number from 0 up: leave it empty for one by format")
    return value
