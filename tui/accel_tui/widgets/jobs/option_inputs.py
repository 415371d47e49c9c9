"""Inputs of a form: a path with completion, and a list of items with a mark each."""

import asyncio
import os
from collections.abc import Sequence
from itertools import compress
from typing import ClassVar

from rich.cells import cell_len
from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from accel_engine.text import printable_line
from accel_engine.user_paths import user_path
from accel_tui.formatting.text import fit
from accel_tui.plan.form import FieldChoice
from accel_tui.widgets.line_input import LineInput


class PathInput(LineInput):
    """Suggests the rest of a path, which tab accepts.

    Args:
        value: Initial text.
        suffixes: Suffixes of the files that are suggested; empty for folders only.
        placeholder: Shown while there is no text.
    """

    BINDING_GROUP_TITLE = "In a path"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete", "Complete", id="path.complete", tooltip="Complete the path")
    ]

    def __init__(
        self,
        value: str = "",
        *,
        suffixes: Sequence[str] = (),
        placeholder: str = "",
    ) -> None:
        self._paths = PathSuggester(suffixes)
        super().__init__(value, placeholder=placeholder, suggester=self._paths, compact=True)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Completing needs a suggestion; without one, tab goes to the next field."""
        if action == "complete":
            return bool(self._paths.suggestion_for(self.value))
        return super().check_action(action, parameters)

    def action_complete(self) -> None:
        if suggestion := self._paths.suggestion_for(self.value):
            self.value = suggestion
            self.cursor_position = len(suggestion)


class PathSuggester(Suggester):
    """Suggests paths of files and folders.

    Args:
        suffixes: See :func:`complete_path`.
    """

    def __init__(self, suffixes: Sequence[str]) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._suffixes = tuple(suffixes)
        self._asked = ""
        self._suggestion: str | None = None

    def suggestion_for(self, value: str) -> str | None:
        """The suggestion for a text, if it was the last one to be completed."""
        return self._suggestion if self._asked == value else None

    async def get_suggestion(self, value: str) -> str | None:
        """The completed path; ``None`` if there is none."""
        self._asked, self._suggestion = value, None
        suggestion = await asyncio.to_thread(complete_path, value, self._suffixes)
        if self._asked == value:  # the thread of an earlier text may end later
            self._suggestion = suggestion
        return suggestion


def complete_path(text: str, suffixes: Sequence[str] = ()) -> str | None:
    """The text with the rest of the first name that begins with what was typed; ``None`` if there is none.

    Args:
        text: The beginning of a path; a folder is completed with a separator.
        suffixes: Suffixes of the files that count; folders count always.
    """
    folder, typed = os.path.split(text)
    if not text or not typed:
        return None
    try:
        with os.scandir(user_path(folder or ".")) as entries:
            found = sorted(_name(entry) for entry in entries if _counts(entry, typed, suffixes))
    except (OSError, ValueError):
        return None
    completed = os.path.join(folder, found[0]) if found else text
    return completed if completed != text else None


def _name(entry: "os.DirEntry[str]") -> str:
    return entry.name + (os.sep if entry.is_dir() else "")


def _counts(entry: "os.DirEntry[str]", typed: str, suffixes: Sequence[str]) -> bool:
    if not entry.name.startswith(typed) or entry.name != printable_line(entry.name):
        return False
    return entry.is_dir() or entry.name.lower().endswith(tuple(suffixes) or "\0")


class Checklist(OptionList):
    """Items with a mark each; space or enter chooses the highlighted one, or not.

    Textual's ``SelectionList`` tells what is chosen by colour only.

    Args:
        items: The items.
        chosen: Whether each is chosen at first; by default those that can be.
    """

    BINDING_GROUP_TITLE = "In the list"
    DEFAULT_CSS = """
    Checklist { width: 1fr; height: auto; background: $background; border: none; padding: 0; }
    Checklist:focus { border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,enter", "select", "Choose", id="checklist.choose", tooltip="Choose this item, or not")
    ]

    class Changed(Message):
        """Other items are chosen than before."""

    def __init__(self, items: Sequence[FieldChoice], chosen: Sequence[bool] | None = None) -> None:
        self._items = tuple(items)
        self.chosen = [item.possible for item in items] if chosen is None else list(chosen)
        """Whether each item is chosen."""
        self._width = max((cell_len(item.value) for item in items), default=0)
        options = (Option(self._content(at), disabled=not item.possible) for at, item in enumerate(items))
        super().__init__(*options, compact=True)

    @property
    def value(self) -> str:
        """The chosen items in the order of the list, with commas between them."""
        return ",".join(item.value for item in compress(self._items, self.chosen))

    def _content(self, at: int) -> Content:
        item, mark = self._items[at], "[x]" if self.chosen[at] else "[ ]"
        style = "$text-muted" if item.possible else "$text-error"
        return Content.assemble(f"{mark} {fit(item.value, self._width)}  ", (item.note, style))

    @on(OptionList.OptionSelected)
    def _toggle(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        at = event.option_index
        self.chosen[at] = not self.chosen[at]
        self.replace_option_prompt_at_index(at, self._content(at))
        self.post_message(self.Changed())
