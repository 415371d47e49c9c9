"""The list of data that can be chosen: files and folders, recent data, built-in datasets."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Focus, Resize
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from accel_engine.text import printable_line
from accel_engine.user_paths import current_directory, resolved_path
from accel_tui.formatting.text import fit, shorten_start
from accel_tui.plan import data_places
from accel_tui.plan.data_places import DataPlace, Listing
from accel_tui.widgets.list_keys import ItemList

_KIND, _SIZE = 8, 7


class DataList(ItemList):
    """The data of a folder, which a typed text filters; ``enter`` takes it, left and right change the folder."""

    DEFAULT_CSS = """
    DataList {
        height: 1fr;
        padding: 0;
        border: none;
        background: transparent;
        scrollbar-size-vertical: 1;
        scrollbar-gutter: stable;
        &:focus { border: none; background: transparent; }
        & > .option-list--option-disabled { color: $text-disabled; }
        & > .option-list--option-highlighted { background: transparent; color: $foreground; text-style: none; }
        &:focus > .option-list--option-highlighted {
            background: $block-cursor-background;
            color: $block-cursor-foreground;
        }
    }
    """

    BINDING_GROUP_TITLE = "In the list of data"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select", id="data.take", tooltip="Take the data, or open the folder"),
        Binding("right", "open_folder", id="data.open", tooltip="Open the folder"),
        Binding("left", "open_parent", id="data.up", tooltip="Open the folder above"),
    ]

    @dataclass
    class Taken(Message):
        """Data was chosen."""

        text: str
        """For the field ``data``."""

    class Listed(Message):
        """Another folder is shown, or other places of it."""

    def __init__(self) -> None:
        super().__init__(compact=True)
        self._listing = Listing(current_directory())
        self._wanted = self._listing.folder
        self._is_listed = False
        self._typed = ""
        self._chosen = ""
        self._recent: tuple[str, ...] = ()
        self._shown: tuple[DataPlace, ...] = ()

    def on_mount(self) -> None:
        self._fill()
        self.call_after_refresh(lambda: self._list(self._wanted))

    @property
    def folder(self) -> Path:
        """The folder whose files are listed."""
        return self._listing.folder

    @property
    def places(self) -> tuple[DataPlace, ...]:
        return self._shown

    def refresh_folder(self, recent: Sequence[str]) -> None:
        """List the folder again: files may have changed.

        Args:
            recent: The data of runs, newest first.
        """
        self._recent = tuple(recent)
        self._list(self._wanted)

    def show_chosen(self, text: str) -> None:
        """Mark the data of the plan."""
        if text != self._chosen:
            self._chosen = text
            self._fill()

    def filter(self, typed: str) -> None:
        """List what a typed text may become; all of the folder for an empty one."""
        folder, _ = data_places.typed_parts(typed)
        self._typed = typed
        if folder is not None and folder != self._wanted:
            self._list(folder)
        self._fill()

    def action_open_folder(self) -> None:
        if (place := self._current) and place.folder:
            self._go_to(place.folder)

    def action_open_parent(self) -> None:
        self._go_to(resolved_path(self.folder).parent)

    @on(OptionList.OptionSelected)
    def _select(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        place = self._shown[int(event.option.id or 0)]
        if place.folder and not place.is_data:
            self._go_to(place.folder)
        else:
            self.post_message(self.Taken(place.text))

    def action_move(self, lines: int) -> None:
        """Highlight the next place, or the previous one; at an end, leave the list."""
        places = [index for index, option in enumerate(self.options) if not option.disabled]
        if not places or self.highlighted == (places[-1] if lines > 0 else places[0]):
            self.screen.run_worker(self.screen.run_action(f"move({lines})"), exit_on_error=False)
        else:
            super().action_move(lines)

    def on_focus(self, event: Focus) -> None:
        if self.highlighted is None:
            self.action_first()

    def on_resize(self, event: Resize) -> None:
        self._fill()

    @property
    def _current(self) -> DataPlace | None:
        option = self.highlighted_option
        return self._shown[int(option.id)] if option and option.id else None

    def _go_to(self, folder: Path) -> None:
        self._typed = ""
        self._list(folder)

    def _list(self, folder: Path) -> None:
        self._wanted = folder
        self._read(folder)

    @work(thread=True, exclusive=True, exit_on_error=False, group="folder")
    def _read(self, folder: Path) -> None:
        self.call_later(self._take, data_places.list_folder(folder))

    def _take(self, listing: Listing) -> None:
        if listing.folder != self._wanted:  # a slow one that was left
            return
        if listing != self._listing or not self._is_listed:
            self._is_listed = True
            is_other, self._listing = listing.folder != self._listing.folder, listing
            self._fill()
            if is_other and self.has_focus:
                self.action_first()

    def _fill(self) -> None:
        if not self.size.width:
            return
        at = self._current
        groups = list(self._groups())
        self._shown = tuple(place for _, places in groups for place in places)
        options: list[Option] = []
        for title, places in groups:
            if title:
                options.append(Option(Content.styled(title, "$text-disabled"), disabled=True))
            options += [Option(self._row(place), id=str(self._shown.index(place))) for place in places]
        self.set_options(options)
        texts = {place.text: str(number) for number, place in enumerate(self._shown)}
        if (wanted := texts.get(at.text if at else "") or texts.get(self._chosen)) is not None:
            self.highlighted = self.get_option_index(wanted)
        self.post_message(self.Listed())

    def _groups(self) -> Iterator[tuple[str, tuple[DataPlace, ...]]]:
        folder, name = data_places.typed_parts(self._typed)
        listing = self._listing
        above = tuple(data_places.parent(resolved_path(listing.folder))) if not self._typed else ()
        found = data_places.matching(listing.places, name)
        is_there = folder is None or folder == listing.folder
        yield "", (*found, *above) if is_there else ()
        if listing.problem:
            yield f"{listing.folder}: {listing.problem}", ()
        elif not listing.places and not self._typed:
            yield "no data in this folder" if self._is_listed else "…", ()
        if folder is None:
            recent = data_places.matching(data_places.recent(self._recent, listing.places), name)
            if recent:
                yield "trained on before", recent
            if known := data_places.matching(data_places.built_in(), name):
                yield "built in", known
        if listing.others and is_there and not self._typed:
            yield f"{listing.others:,} other {'file' if listing.others == 1 else 'files'}", ()

    def _row(self, place: DataPlace) -> Content:
        room = max(self.scrollable_content_region.width - _KIND - _SIZE - 4, 8)
        is_chosen = place.text.rstrip("/") == self._chosen.rstrip("/")
        name = printable_line(place.name)
        name = shorten_start(name, room) if place.kind == "recent" else name  # a path, whose end matters more
        return Content.assemble(
            ("▸ " if is_chosen else "  ", "$accent bold"),
            (fit(name, room), "bold" if is_chosen else "" if place.is_data else "$text-muted"),
            (f" {'' if place.name == '../' else place.kind:<{_KIND}}", "$text-muted"),
            (f"{place.size:>{_SIZE}} ", "$text-muted"),
        )
