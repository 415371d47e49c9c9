"""A terminal of which tests see text, colours and attributes."""

import pyte
from textual.geometry import Size


class Emulator:
    """A terminal of which text, colours and attributes are seen."""

    def __init__(self, size: Size) -> None:
        self._screen = pyte.Screen(size.width, size.height)
        self._stream = pyte.Stream(self._screen)
        self.feed("\x1b[?7l")  # no line is wrapped, as Textual has it

    def feed(self, data: str) -> None:
        self._stream.feed(data)

    def resize(self, size: Size) -> None:
        self._screen.resize(size.height, size.width)

    def text(self) -> str:
        return "\n".join(self._screen.display)

    def picture(self) -> list[list[tuple[object, ...]]]:
        rows, columns = range(self._screen.lines), range(self._screen.columns)
        return [[_seen(self._screen.buffer[row][column]) for column in columns] for row in rows]


def _seen(cell: pyte.screens.Char) -> tuple[object, ...]:
    lines = (cell.underscore, cell.strikethrough, cell.reverse)
    if cell.data == " ":
        return (" ", cell.bg, *lines, cell.fg if any(lines) else None)
    return (cell.data, cell.fg, cell.bg, *lines, cell.bold, cell.italics)
