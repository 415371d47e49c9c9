"""All private names of Textual that the program uses, each with its reason.

Without the names that :func:`is_supported` checks, Textual paints frames in its own way. Without one of the others, the
program does not start, or raises an error when it uses the name: pyproject.toml bounds the versions.
"""

import codecs
import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from inspect import signature
from traceback import walk_tb
from typing import IO, Any, Self

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.control import Control
from textual._compositor import (
    ChopsUpdate,
    Compositor,
    CompositorMap,
    CompositorUpdate,
    ReflowResult,
)
from textual._compositor import LayoutUpdate as LayoutUpdate
from textual._context import active_message_pump
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.binding import Binding
from textual.color import Color
from textual.content import Content
from textual.css.model import RuleSet
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key, ScreenResume
from textual.geometry import Region, Size
from textual.keys import Keys
from textual.message_pump import MessagePump
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import ModalScreen, Screen
from textual.strip import Strip
from textual.types import CSSPathType
from textual.widget import MountError, Widget

# ruff: noqa: SLF001 (for that reason)


def is_supported() -> bool:
    """Whether this version of Textual has the private names with which frames are painted."""
    return (
        all(
            hasattr(kind, name)
            for kind, names in {
                App: ("_display", "_background_screens"),
                Screen: ("_refresh_layout", "_compositor_refresh"),
                Compositor: ("reflow", "render_partial_update", "visible_widgets"),
            }.items()
            for name in names
        )
        and all(hasattr(Widget.virtual_size, name) for name in ("_layout", "_repaint"))
        and {"strips", "region"} <= signature(LayoutUpdate).parameters.keys()
        and {"chops", "spans", "chop_ends"} <= signature(ChopsUpdate).parameters.keys()
    )


SUPPORTED = is_supported()


class FrameUpdate(CompositorUpdate):
    """A screen update that gives its own escape sequences."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render nothing: apps use :meth:`render_segments`."""
        return ()


class StripsUpdate(FrameUpdate):
    """A screen update of single strips.

    Attributes:
        strips: Row, column of the first cell, and the strip.
    """

    def __init__(self, strips: list[tuple[int, int, Strip]]) -> None:
        self.strips = strips

    def render_segments(self, console: Console) -> str:
        """Escape sequences that paint the strips, without knowledge of the terminal's content."""
        return "".join(f"{Control.move_to(x, y).segment.text}{strip.render(console)}" for y, x, strip in self.strips)


ScreenUpdate = LayoutUpdate | ChopsUpdate | StripsUpdate
"""Screen updates whose strips are known."""


def strips_of(update: CompositorUpdate) -> Iterator[tuple[int, int, Strip]]:
    """Rows, first columns and strips of an update, cropped to what changes."""
    if isinstance(update, LayoutUpdate):
        for y, strips in enumerate(update.strips, update.region.y):
            x = update.region.x
            for strip in strips:
                yield y, x, strip
                x += strip.cell_length
    elif isinstance(update, StripsUpdate):
        yield from update.strips
    elif isinstance(update, ChopsUpdate):
        for y, first, last in update.spans:
            for end, (x, chop) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
                start, stop = max(x, first), min(end, last)
                if chop is not None and start < stop:
                    yield y, start, chop.crop(start - x, stop - x)


class PartialCompositor(Compositor):
    """Renders dirty regions by :meth:`render_regions`.

    Textual renders all lines of every widget between the topmost and the lowest, and discards most of the result.
    """

    def __init__(self) -> None:
        super().__init__()
        self._last_map: CompositorMap = {}

    def render_regions(self, regions: set[Region]) -> Iterable[tuple[int, int, Strip]]:
        """Row, first column and strip of all that is visible in the regions."""
        raise NotImplementedError

    def add_dirty(self, regions: Iterable[Region]) -> None:
        """Add regions to the dirty ones."""
        self._dirty_regions.update(regions)

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        """Lay out, and mark what has moved since it was painted.

        Textual compares with the last query instead: a widget queried before it was painted stayed invisible.
        """
        self._full_map = self._last_map
        result = super().reflow(parent, size)
        self._last_map = self._full_map
        return result

    def render_partial_update(self) -> StripsUpdate | None:  # type: ignore[override]
        """Render the dirty regions."""
        strips = list(self.render_regions(self._dirty_regions))
        self._dirty_regions.clear()
        return StripsUpdate(strips) if strips else None


class PartialScreen(Screen[None]):
    """A screen with another compositor, which can paint without messages and timers.

    Args:
        compositor: Takes the place of Textual's.
    """

    def __init__(self, compositor: PartialCompositor) -> None:
        super().__init__()
        self._styled_for: object = None
        if SUPPORTED:
            self._compositor = compositor

    def _on_screen_suspend(self) -> None:
        self._styled_for = self._style_context

    def _on_screen_resume(self, event: ScreenResume) -> None:
        """Keep the styles, unless what all depend on has changed since: a new screen has them already."""
        event.refresh_styles &= self._styled_for not in (None, self._style_context)

    @property
    def _style_context(self) -> tuple[object, ...]:
        return self.app.current_theme, self.app.app_focus

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        """Repaint or lay out; a layout repaints what has moved, while Textual does both for every mount."""
        return super().refresh(
            *regions, repaint=repaint and not (SUPPORTED and layout), layout=layout, recompose=recompose
        )

    @property
    def can_paint(self) -> bool:
        """Whether this screen may be painted now: in front, laid out, and not within a batch of updates."""
        batched = self.app._batch_count or self._layout_required
        return SUPPORTED and self.app.screen is self and not batched

    def paint(self) -> None:
        """Paint what is dirty."""
        self._compositor_refresh()

    def _compositor_refresh(self) -> None:
        if SUPPORTED:  # Textual clears the list of dirty widgets after this, so they are painted now
            self._compositor.update_widgets(self._dirty_widgets)
            if self._is_behind_dialog():
                self._paint_behind(self.app.screen)
                return
        super()._compositor_refresh()

    def _is_behind_dialog(self) -> bool:
        """Whether this screen is seen around a single dialog."""
        front = self.app.screen
        is_between = front is not self and self.app._background_screens == [self] and not self.app.is_inline
        return is_between and isinstance(front, ModalScreen) and not front._layout_required

    def _paint_behind(self, dialog: "Screen[object]") -> None:
        """Paint what is dirty and not below the dialog, tinted as the dialog does it.

        Textual renders all of both screens for each change of this one, which took five times as long as the change.
        """
        update = self._compositor.render_partial_update()
        self._dirty_widgets.clear()
        if not isinstance(update, StripsUpdate):
            return
        places = dialog._compositor.visible_widgets
        outer = [each for each in places if each is not dialog and (each.parent is dialog or each.parent not in places)]
        covered = [place.intersection(clip) for place, clip in map(places.__getitem__, outer)]
        tint = dialog.styles.background
        self.app._display(dialog, StripsUpdate([_tinted(piece, tint) for piece in _uncovered(update.strips, covered)]))
        dialog._set_dirty()  # it keeps a picture of this screen, which is old now

    def _refresh_layout(self, size: Size | None = None, scroll: bool = False) -> None:
        with _without_layout_requests():
            super()._refresh_layout(size, scroll)


_Piece = tuple[int, int, Strip]
"""A row, the column of the first cell, and the strip."""


def _uncovered(pieces: Iterable[_Piece], covered: Sequence[Region]) -> Iterator[_Piece]:
    """The parts of strips outside regions."""
    for y, x, strip in pieces:
        first, end = x, x + strip.cell_length
        for region in sorted(region for region in covered if region.y <= y < region.bottom):
            if first < (until := min(region.x, end)):
                yield y, first, strip.crop(first - x, until - x)
            first = max(first, region.right)
        if first < end:
            yield y, first, strip.crop(first - x)


def _tinted(piece: _Piece, tint: Color) -> _Piece:
    y, x, strip = piece
    return y, x, Strip(BackgroundScreen.process_segments(strip, tint), strip.cell_length)


@contextmanager
def _without_layout_requests() -> Iterator[None]:
    """Suppress the layout and repaint requests that widgets make when a layout resizes them.

    The layout itself paints what has changed, and scrolling requests its own repaint.
    """
    if not SUPPORTED:
        yield
        return
    descriptor = Widget.virtual_size
    saved = descriptor._layout, descriptor._repaint
    descriptor._layout = descriptor._repaint = False
    try:
        yield
    finally:
        descriptor._layout, descriptor._repaint = saved


# Whatever gets styles is looked for among all rules: this is the same identity, without a call of Python for each.
RuleSet.__hash__ = object.__hash__  # type: ignore[method-assign]

SHEETS = 1024
"""Maximum number of parsed sheets."""


class FrameApp(App[None]):
    """An app that decides about each frame, and ignores errors of widgets that are being removed.

    Textual mounts no children in a widget that is removed while it is mounted, but still sends ``Mount``, whose handler
    fails to find them; so do callbacks after refresh, which the screen in front runs by then.
    """

    def __init__(self, css_path: CSSPathType | None = None, *, ansi_color: bool | None = None) -> None:
        super().__init__(css_path=css_path, ansi_color=ansi_color)
        # There are more sheets, a widget's own among them, than Textual keeps: it would parse all for each new one.
        self.stylesheet._parse_cache.grow(SHEETS)

    def _load_screen_css(self, screen: "Screen[Any]") -> None:
        """Parse what is new; Textual parses all again, and restyles every screen, though a sheet is about one kind."""
        for path in screen.css_path:
            if not self.stylesheet.has_source(str(path)):
                self.stylesheet.read(path)
        self.stylesheet.parse()
        super()._load_screen_css(screen)

    def frame(self, screen: "Screen[object]", update: ScreenUpdate) -> RenderableType | None:
        """The update to send to the terminal instead; ``None`` to send nothing."""
        return update

    def send(self, words: str) -> None:
        """Write a control sequence to the terminal, between two frames."""
        if self._driver:
            self._driver.write(words)

    @property
    def queued_writes(self) -> int:
        """Number of writes in the queue of Textual's writer thread; 0 for drivers without one."""
        queue = getattr(getattr(self._driver, "_writer_thread", None), "_queue", None)
        return queue.qsize() if queue else 0

    def _display(self, screen: "Screen[object]", renderable: RenderableType | None) -> None:
        # Every screen update passes through this.
        if not SUPPORTED or not isinstance(renderable, ScreenUpdate):
            super()._display(screen, renderable)
        elif (update := self.frame(screen, renderable)) is not None:
            super()._display(screen, update)

    @property
    def _background_screens(self) -> "list[Screen[Any]]":
        # Textual's list of screens to repaint includes screens that are fully covered.
        covers = bool(self._screen_stack) and self.screen.styles.background.a == 1
        return [] if covers else super()._background_screens

    def pop_screen(self) -> AwaitComplete:
        """Close the screen on top, but not because of a screen that is closed: Enter may come twice."""
        pump = active_message_pump.get(None)
        nodes = pump.ancestors_with_self if isinstance(pump, DOMNode) else ()
        if any(isinstance(node, Screen) and node not in self.screen_stack for node in nodes):
            return AwaitComplete()
        return super().pop_screen()

    def _handle_exception(self, error: Exception) -> None:
        if isinstance(error, NoMatches | MountError) and self._is_leaving(_failing_pump(error, self)):
            self.log.debug("missed while it was taken away", error)
        else:
            super()._handle_exception(error)

    def _is_leaving(self, pump: MessagePump) -> bool:
        """Whether the node or the app is closing."""
        return pump._closing or is_being_removed(pump) or self._exit or not self.is_running


def _failing_pump(error: Exception, otherwise: MessagePump) -> MessagePump:
    """The node that failed; for a deferred callback it is taken from the traceback."""
    pump = active_message_pump.get(otherwise)
    for frame, _ in walk_tb(error.__traceback__):
        if frame.f_code.co_name == "_invoke_and_clear_callbacks":
            pump = frame.f_locals.get("message_pump", pump)
    return pump


def is_being_removed(pump: MessagePump) -> bool:
    """Whether a widget is being removed with its children; it still counts as attached."""
    return isinstance(pump, Widget) and pump._pruning


def show_border_title(widget: Widget, title: Content) -> None:
    """Set the title in the upper border, and repaint that line; Textual repaints the widget and all in it."""
    before: Content | None = getattr(widget, "_border_title", None)
    if before is None or not title.is_same(before):
        widget._border_title = title
        offset = widget.content_offset
        widget.refresh(Region(-offset.x, -offset.y, widget.outer_size.width, 1))


def bind(node: DOMNode, binding: Binding) -> None:
    """Add a key to a single node; Textual takes them from classes only."""
    node._bindings.bind(binding.key, binding.action, binding.description, show=binding.show)


def bindings_of(node: DOMNode, key: str) -> list[Binding]:
    """The bindings of a key of a single node, with the user's keys applied."""
    return node._bindings.key_to_bindings.get(key, [])


def _replacing_decoder(encoding: str) -> Callable[[], codecs.IncrementalDecoder]:
    """The incremental decoder of an encoding that replaces bytes which it cannot decode."""
    return partial(codecs.getincrementaldecoder(encoding), errors="replace")


# A byte that is not UTF-8, as a terminal with another encoding sends, would end Textual's thread of input, and the app.
linux_driver.getincrementaldecoder = _replacing_decoder  # type: ignore[attr-defined,assignment]


def _ignoring_impossible_keys(parse: Callable[[XTermParser, str], list[Key] | None]) -> Callable[..., list[Key] | None]:
    """Parse a key of the Kitty protocol; one that Textual ignores where its number is not a character's."""

    def parse_key(self: XTermParser, sequence: str) -> list[Key] | None:
        try:
            return parse(self, sequence)
        except (OverflowError, ValueError):
            return [Key(Keys.Ignore, sequence)]

    return parse_key


# Such a number would end Textual's thread of input, and the app, too.
XTermParser._parse_extended_key = _ignoring_impossible_keys(XTermParser._parse_extended_key)  # type: ignore[assignment,method-assign]


class DisconnectSafeDriver(LinuxDriver):
    """Linux driver that does not block or fail when the terminal is gone."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._file: Any = BestEffortWriter(self._file)

    def _sigcont_application(self, *args: Any) -> None:
        # SIGCONT also comes with a hang-up, on which Textual would start a thread that nobody stops.
        if self._must_signal_resume:
            super()._sigcont_application(*args)


class BestEffortWriter:
    """A writer that ignores errors of a disconnected terminal.

    Args:
        terminal: The file to write to.
    """

    def __init__(self, terminal: IO[str]) -> None:
        self._terminal = terminal

    def write(self, text: str) -> None:
        """Write text; ignores a disconnected terminal."""
        with contextlib.suppress(OSError):
            self._terminal.write(text)

    def flush(self) -> None:
        """Flush; ignores a disconnected terminal."""
        with contextlib.suppress(OSError):
            self._terminal.flush()

    def fileno(self) -> int:
        """File descriptor of the terminal."""
        return self._terminal.fileno()
