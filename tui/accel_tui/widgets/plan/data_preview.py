"""The preview of the plan's data, in which the target is chosen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Resize
from textual.message import Message
from textual.timer import Timer
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.text import printable_fields, printable_line
from accel_tui.app_protocol import settings_of
from accel_tui.plan import field_labels
from accel_tui.plan.data_text import DATA_FIELDS, SurveySubject, survey_subject
from accel_tui.widgets.list_keys import ItemList

if TYPE_CHECKING:  # these import NumPy, which the first frame does not need
    from accel_engine.data_profile.picture import ShownPicture
    from accel_tui.plan.data_reading import Preview, PreviewReading

IDLE_SECONDS = 0.3
"""Seconds without another choice before data is read."""

_PICTURE = 10
"""Cells of a picture's longer side."""


class DataPreview(ItemList):
    """Counts, columns, pictures, classes, and what is remarkable; ``enter`` on a column makes it the target."""

    DEFAULT_CSS = """
    DataPreview {
        height: 1fr;
        padding: 0;
        border: none;
        background: transparent;
        scrollbar-size-vertical: 1;
        scrollbar-gutter: stable;
        &:focus { border: none; background: transparent; }
        & > .option-list--option-disabled { color: $foreground; }
        & > .option-list--option-highlighted { background: transparent; text-style: none; }
        &:focus > .option-list--option-highlighted { background: $foreground 15%; }
    }
    """

    BINDING_GROUP_TITLE = "In the preview of data"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select", id="preview.target", tooltip="Predict this column"),
    ]

    @dataclass
    class TargetTaken(Message):
        """A column was chosen as the target."""

        column: str

    def __init__(self) -> None:
        super().__init__(compact=True)
        self._filled: ResolvedPlan | None = None
        self._subject: SurveySubject | None = None
        self._found: Preview | None = None
        self._reading: PreviewReading | None = None
        self._pause: Timer | None = None
        self._may_read = False
        self._columns: Sequence[str] = ()
        self.can_focus = False  # without columns there is nothing to choose

    def preview(self, filled: ResolvedPlan) -> None:
        """Show the data of a form, which is read once the user has stopped choosing."""
        self._filled = filled
        subject = survey_subject(filled.plan)
        if subject != self._subject:
            self._subject, self._found = subject, None
            if self._reading:
                self._reading.cancel()
        if self._pause:
            self._pause.stop()
        self._pause = self.set_timer(IDLE_SECONDS, self._begin)

    def begin(self) -> None:
        """Read data from now on; until then, the first frame and imports have priority."""
        if not self._may_read:
            self._may_read = True
            self._begin()

    def on_unmount(self) -> None:
        if self._reading:
            self._reading.cancel()

    def on_resize(self, event: Resize) -> None:
        self._show()

    def action_move(self, lines: int) -> None:
        """Highlight the next column, or the previous one; at an end, leave the preview."""
        at = self.highlighted_option
        if at is None and self._columns:
            self.action_first()
        elif at is None or at.id == self._columns[-1 if lines > 0 else 0]:
            self.screen.run_worker(self.screen.run_action(f"move({lines})"), exit_on_error=False)
        else:
            super().action_move(lines)

    @on(OptionList.OptionSelected)
    def _select(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option.id:
            self.post_message(self.TargetTaken(event.option.id))

    def _begin(self) -> None:
        filled = self._filled
        if filled is None or not self._may_read:
            return
        is_wrong = bool({"data", *DATA_FIELDS} & filled.errors.keys())
        if is_wrong or self._found is not None or self._reading is not None:
            self._show()
            return
        self._load(filled)

    def _load(self, filled: ResolvedPlan) -> None:
        from accel_tui.plan import data_reading, preview_lines  # noqa: F401 (see above)

        self._reading = data_reading.PreviewReading()
        self._show()
        self._read(self._reading, filled)

    @work(thread=True, exclusive=True, exit_on_error=False, group="preview")
    def _read(self, reading: "PreviewReading", filled: ResolvedPlan) -> None:
        subject = survey_subject(filled.plan)
        self.call_later(self._take, subject, reading.read(filled.plan, filled.data))

    def _take(self, subject: SurveySubject, found: "Preview") -> None:
        self._reading = None
        if subject == self._subject:
            self._found = printable_fields(found)
            self._show()
        else:
            self._begin()

    def _show(self) -> None:
        filled = self._filled
        if filled is None or not self.size.width or not self._may_read:
            return
        if wrong := [name for name in ("data", *DATA_FIELDS) if name in filled.errors]:
            self._columns, self.can_focus = (), False
            text = printable_line(f"{field_labels.label(wrong[0])}: {field_labels.word(filled.errors[wrong[0]])}")
            self.set_options([Option(Content.styled(text, "$text-error"), disabled=True)])
            return
        from accel_tui.plan.preview_lines import preview_lines

        width = self.scrollable_content_region.width
        pictures = self._pictures(width)
        lines = preview_lines(filled.data, self._found, width, pictures)
        at = self.options[self.highlighted].id if self.highlighted is not None else None
        self.set_options(Option(line.content, id=line.column or None, disabled=not line.column) for line in lines)
        self._columns = [line.column for line in lines if line.column]
        self.can_focus = bool(self._columns)
        self.highlighted = self.get_option_index(at) if at in self._columns else None

    def _pictures(self, width: int) -> list[Content]:
        """Some pictures side by side, each below its class."""
        shown = self._found.known.picture if self._found and self._found.known else None
        if shown is None or not (shown.pictures or shown.sounds):
            return []
        from accel_tui.formatting.data import sounds

        return [*self._drawn(shown.pictures[: max(1, width // (_PICTURE + 1))]), *sounds(shown.sounds, width)]

    def _drawn(self, pictures: "Sequence[ShownPicture]") -> list[Content]:
        if not pictures:
            return []
        from accel_tui.widgets.data_pictures import draw_pictures

        blocks = not self.app.no_color and settings_of(self).glyphs != "ascii"
        return draw_pictures(pictures, _PICTURE, blocks=blocks, dark=self.app.current_theme.dark)
