"""Shows pictures in real pixels, in terminals with Kitty's graphics protocol and its Unicode placeholders.

The terminal gets a picture once, by number. A cell then shows a part of it: it has a placeholder, two accents that
stand for the part's row and column, and the number as its colour. So pictures are cells as all others, which scroll,
are covered and painted only where they change. See https://sw.kovidgoyal.net/kitty/graphics-protocol/.
"""

import base64
import os
import re
import select
import sys
import termios
import threading
import time
import tty
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

if TYPE_CHECKING:  # the dashboard asks the terminal before its first paint, which needs no NumPy
    import numpy as np
    import numpy.typing as npt

    Pixels = npt.NDArray[np.uint8]

PLACEHOLDER = "\U0010eeee"
"""The character of a cell with a part of a picture; of Unicode's private use."""

_ACCENTS = (
    "305 30d-30e 310 312 33d-33f 346 34a-34c 350-352 357 35b 363-36f 483-487 592-595 597-599 59c-5a1 5a8-5a9 5ab-5ac "
    "5af 5c4 610-617 657-65b 65d-65e 6d6-6dc 6df-6e2 6e4 6e7-6e8 6eb-6ec 730 732-733 735-736 73a 73d 73f-741 743 745 "
    "747 749-74a 7eb-7f1 7f3 816-819 81b-823 825-827 829-82d"
)
"""Code points of the accents that stand for 0, 1, ...: those above a character that no precomposed character has. The
protocol has more, for larger pictures."""

MOST_PICTURES = 512
"""Pictures that the terminal keeps for this program; more than a screen shows."""

_CHUNK = 4096  # bytes of base64 in a sequence, as the protocol limits it
_SMALL = 40  # pixels of the longer side up to which pixels are made larger here: a terminal would blur them
_CELL = 10  # pixels of the width of a cell, about

QUERY = "\x1b_Gi=1,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[>q\x1b[c"
"""Asks for the graphics protocol, for name and version, and for what every terminal answers, at last."""

QUERY_SECONDS = 0.3
"""How long the terminal has for its answer."""

_LAST = re.compile(r"\x1b\[\?[\d;]*c")
_VERSION = re.compile(r"\x1bP>\|(kitty|ghostty)\D{0,2}(\d+)\.(\d+)", re.IGNORECASE)
_FIRST_VERSIONS = {"kitty": (0, 28), "ghostty": (1, 0)}
"""The versions from which terminals have placeholders."""


class PixelImages:
    """The pictures that the terminal has.

    Args:
        write: Writes a control sequence to the terminal; from any thread.
    """

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._sent: OrderedDict[bytes, tuple[int, str]] = OrderedDict()
        self._lock = threading.Lock()
        self._last = (os.getpid() & 0xFF) << 16  # so that two programs in one terminal have different numbers

    def strips(self, pixels: "Pixels", columns: int, lines: int, *, smooth: bool) -> list[Strip] | None:
        """The lines of cells that show a picture; ``None`` if it is larger than the protocol can show.

        Args:
            pixels: uint8 ``[height, width, channels]`` with 1, 3 or 4 channels.
            columns: Width in cells.
            lines: Height in cells.
            smooth: Whether the terminal may blend pixels, which would be wrong in a mask.
        """
        accents = _accents()
        if max(columns, lines) > len(accents):
            return None
        number = self._number(pixels, columns, lines, smooth=smooth)
        style = Style(color=Color.from_rgb(number >> 16, number >> 8 & 255, number & 255))
        return [
            Strip([Segment("".join(f"{PLACEHOLDER}{row}{column}" for column in accents[:columns]), style)], columns)
            for row in accents[:lines]
        ]

    def send_again(self) -> None:
        """Send all pictures once more: the terminal may have lost them."""
        with self._lock:
            for _, sequence in self._sent.values():
                self._write(sequence)

    def close(self) -> None:
        """Let the terminal forget them."""
        with self._lock:
            for number, _ in self._sent.values():
                self._write(_deletion(number))
            self._sent.clear()

    def _number(self, pixels: "Pixels", columns: int, lines: int, *, smooth: bool) -> int:
        """The number of a picture, which is sent if the terminal does not have it."""
        import hashlib  # which the first paint does not need, either

        from accel_engine.image_files import encode_png

        key = hashlib.sha256(repr((pixels.shape, columns, lines, smooth)).encode() + pixels.tobytes()).digest()
        with self._lock:
            if key in self._sent:
                self._sent.move_to_end(key)
                return self._sent[key][0]
            self._last += 1
            sequence = _transmission(self._last, encode_png(_fitted(pixels, columns, smooth=smooth)), columns, lines)
            self._sent[key] = self._last, sequence
            self._write(sequence)
            if len(self._sent) > MOST_PICTURES:
                _, (oldest, _) = self._sent.popitem(last=False)
                self._write(_deletion(oldest))
            return self._last


def _fitted(pixels: "Pixels", columns: int, *, smooth: bool) -> "Pixels":
    """A picture of few pixels, or a mask, with several for each; one of many without those that nobody would see."""
    height, width = pixels.shape[:2]
    if (step := width // (2 * columns * _CELL)) > 1:
        return pixels[::step, ::step]
    factor = max(1, columns * _CELL // width)
    if smooth and max(height, width) > _SMALL:
        factor = 1
    return pixels.repeat(factor, axis=0).repeat(factor, axis=1)


def _transmission(number: int, png: bytes, columns: int, lines: int) -> str:
    """The sequences that give the terminal a picture, to be shown by placeholders, without an answer."""
    data = base64.standard_b64encode(png).decode()
    chunks = [data[start : start + _CHUNK] for start in range(0, len(data), _CHUNK)]
    about = f"a=T,U=1,f=100,i={number},c={columns},r={lines},q=2,"
    return "".join(
        f"\x1b_G{'' if index else about}m={int(index < len(chunks) - 1)};{chunk}\x1b\\"
        for index, chunk in enumerate(chunks)
    )


def _deletion(number: int) -> str:
    return f"\x1b_Ga=d,d=I,i={number},q=2\x1b\\"


@lru_cache(1)
def _accents() -> tuple[str, ...]:
    """The accents that stand for 0, 1, ..."""
    found = list[str]()
    for part in _ACCENTS.split():
        first, _, last = part.partition("-")
        found += map(chr, range(int(first, 16), int(last or first, 16) + 1))
    return tuple(found)


def may_have_pixels(environment: Mapping[str, str]) -> bool:
    """Whether it is worth asking the terminal: it calls itself one that has placeholders, and nothing is in between."""
    term = environment.get("TERM", "")
    if environment.get("TMUX") or environment.get("STY") or term.startswith(("tmux", "screen")):
        return False
    names = (term.removeprefix("xterm-"), environment.get("TERM_PROGRAM", "").lower())
    return "KITTY_WINDOW_ID" in environment or any(name in _FIRST_VERSIONS for name in names)


def has_placeholders(answer: str) -> bool:
    """Whether the answer to :data:`QUERY` is one of a terminal with the protocol and its placeholders."""
    version = _VERSION.search(answer)
    if not version or "\x1b_Gi=1;OK\x1b\\" not in answer:
        return False
    return (int(version[2]), int(version[3])) >= _FIRST_VERSIONS[version[1].lower()]


def ask_terminal(source: int, sink: int, seconds: float = QUERY_SECONDS) -> str:
    """Ask the terminal :data:`QUERY` and return its answer; nothing of it is shown.

    Before the dashboard reads keys. What comes later than :data:`QUERY_SECONDS` is taken for keys.

    Args:
        source: Descriptor that the terminal's answers come from.
        sink: Descriptor that the query is written to.
        seconds: How long to wait for the answer.
    """
    modes, answer = termios.tcgetattr(source), ""
    try:
        tty.setcbreak(source)
        os.write(sink, QUERY.encode())
        until = time.monotonic() + seconds
        while not _LAST.search(answer) and select.select([source], [], [], max(0.0, until - time.monotonic()))[0]:
            answer += os.read(source, 4096).decode(errors="replace")
    finally:
        termios.tcsetattr(source, termios.TCSADRAIN, modes)
    return answer


def find_pixels(environment: Mapping[str, str]) -> bool:
    """Whether the terminal of this program shows real pixels: it is asked, where that is worth it."""
    if not may_have_pixels(environment):
        return False
    with suppress(OSError, ValueError, termios.error):  # it is closed
        return has_placeholders(ask_terminal(sys.__stdin__.fileno(), sys.__stdout__.fileno()))  # type: ignore[union-attr]
    return False
