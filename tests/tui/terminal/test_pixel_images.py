"""Pictures in real pixels, in a stand-in for a terminal that decodes what it gets; and which terminals have them."""

import base64
import io
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pytest
from PIL import Image
from rich.console import Console
from textual.strip import Strip

from accel_tui.terminal import pixel_images
from accel_tui.terminal.canvas import Canvas
from accel_tui.terminal.pixel_images import (
    PLACEHOLDER,
    QUERY,
    PixelImages,
    ask_terminal,
    find_pixels,
    has_placeholders,
    may_have_pixels,
)

KITTY = "\x1b_Gi=1;OK\x1b\\\x1bP>|kitty(0.35.2)\x1b\\\x1b[?62;c"
GHOSTTY = "\x1b_Gi=1;OK\x1b\\\x1bP>|ghostty 1.1.0\x1b\\\x1b[?62;22c"


@dataclass
class Terminal:
    """Keeps pictures by their number, as Kitty's protocol has it."""

    pictures: dict[int, np.ndarray] = field(default_factory=dict)
    sizes: dict[int, tuple[int, int]] = field(default_factory=dict)
    received: int = 0
    _pending: dict[str, str] = field(default_factory=dict)
    _data: str = ""

    def write(self, words: str) -> None:
        assert re.fullmatch(r"(\x1b_G[^\x1b]*\x1b\\)+", words)
        for control, payload in re.findall(r"\x1b_G([^;\x1b]*);?([^\x1b]*)\x1b\\", words):
            keys = dict(pair.split("=") for pair in control.split(","))
            if keys.get("a") == "d":
                del self.pictures[int(keys["i"])]
                continue
            assert len(payload) <= 4096
            self._pending = self._pending or keys
            self._data += payload
            if keys["m"] == "0":
                self._take(self._pending, base64.b64decode(self._data))
                self._pending, self._data = {}, ""

    def _take(self, keys: dict[str, str], png: bytes) -> None:
        assert (keys["a"], keys["U"], keys["f"], keys["q"]) == ("T", "1", "100", "2")
        number = int(keys["i"])
        self.received += 1
        self.sizes[number] = int(keys["c"]), int(keys["r"])
        with Image.open(io.BytesIO(png)) as image:
            self.pictures[number] = np.asarray(image.convert("RGB"))


def shown(painted: str) -> dict[int, set[tuple[int, int]]]:
    """The parts, row and column, of each picture that painted cells show."""
    accents = pixel_images._accents()
    found: dict[int, set[tuple[int, int]]] = {}
    number = 0
    for red, green, blue, row, column in re.findall(rf"\x1b\[38;2;(\d+);(\d+);(\d+)m|{PLACEHOLDER}(.)(.)", painted):
        if row:
            found.setdefault(number, set()).add((accents.index(row), accents.index(column)))
        else:
            number = int(red) << 16 | int(green) << 8 | int(blue)
    return found


def painted(strips: list[Strip], canvas: Canvas) -> str:
    console = Console(color_system="truecolor", force_terminal=True)
    return canvas.paint([(y, 0, strip) for y, strip in enumerate(strips)], console)


def picture(width: int = 8, height: int = 6, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def test_a_picture_is_sent_once_and_its_cells_show_all_of_it() -> None:
    terminal, canvas, pixels = Terminal(), Canvas(), picture()
    images = PixelImages(terminal.write)
    strips = images.strips(pixels, 16, 6, smooth=True)
    assert strips is not None
    assert [strip.cell_length for strip in strips] == [16] * 6
    ((number, parts),) = shown(painted(strips, canvas)).items()
    assert parts == {(row, column) for row in range(6) for column in range(16)}
    assert terminal.sizes[number] == (16, 6)
    enlarged = terminal.pictures[number]
    assert enlarged.shape == (120, 160, 3)  # few pixels are made larger, so that the terminal does not blur them
    np.testing.assert_array_equal(enlarged[::20, ::20], pixels)
    assert painted(images.strips(pixels, 16, 6, smooth=True) or [], canvas) == ""  # nothing changes
    assert terminal.received == 1


def test_a_part_of_a_picture_that_was_covered_is_painted_again_alone() -> None:
    images, canvas = PixelImages(lambda _: None), Canvas()
    strips = images.strips(picture(), 10, 4, smooth=True)
    assert strips is not None
    painted(strips, canvas)
    painted([Strip.blank(3)], canvas)
    (parts,) = shown(painted(strips, canvas)).values()
    assert parts == {(0, 0), (0, 1), (0, 2)}


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_many_pixels_are_sent_in_chunks_as_they_are(channels: int) -> None:
    terminal = Terminal()
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, channels), np.uint8)
    assert PixelImages(terminal.write).strips(pixels, 20, 10, smooth=True)
    (found,) = terminal.pictures.values()
    assert found.shape == (64, 64, 3)
    if channels == 3:
        np.testing.assert_array_equal(found, pixels)


def test_a_mask_is_never_blended_and_huge_pictures_are_thinned() -> None:
    terminal = Terminal()
    images = PixelImages(terminal.write)
    images.strips(picture(50, 50), 20, 10, smooth=False)
    images.strips(picture(2000, 1000), 20, 5, smooth=True)
    mask, large = terminal.pictures.values()
    assert mask.shape == (200, 200, 3)
    assert large.shape == (200, 400, 3)


def test_the_protocol_has_limits() -> None:
    images = PixelImages(lambda _: None)
    assert len(pixel_images._accents()) == len({*pixel_images._accents()}) == 129
    assert images.strips(picture(), 130, 4, smooth=True) is None
    assert len(images.strips(picture(), 129, 129, smooth=True) or []) == 129


def test_the_terminal_forgets_old_pictures_and_all_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pixel_images, "MOST_PICTURES", 2)
    terminal = Terminal()
    images = PixelImages(terminal.write)
    for seed in range(4):
        images.strips(picture(seed=seed), 4, 2, smooth=True)
    assert len(terminal.pictures) == 2
    images.send_again()
    assert terminal.received == 6
    images.close()
    assert not terminal.pictures


@pytest.mark.parametrize(
    ("answer", "has"),
    [
        (KITTY, True),
        (GHOSTTY, True),
        (KITTY.replace("0.35", "0.27"), False),
        (KITTY.replace("OK", "ENOTSUP"), False),
        (KITTY.replace("kitty(", "WezTerm("), False),
        ("\x1b[?62;c", False),
        ("", False),
    ],
)
def test_only_an_answer_is_believed(answer: str, has: bool) -> None:
    assert has_placeholders(answer) is has


@pytest.mark.parametrize(
    ("environment", "may"),
    [
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "xterm-ghostty"}, True),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "ghostty"}, True),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, True),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "tmux-256color", "TMUX": "/tmp/tmux", "KITTY_WINDOW_ID": "1"}, False),
        ({"TERM": "screen", "STY": "1.pts", "KITTY_WINDOW_ID": "1"}, False),
    ],
)
def test_which_terminals_are_asked(environment: dict[str, str], may: bool) -> None:
    assert may_have_pixels(environment) is may
    if not may:
        assert find_pixels(environment) is False


@contextmanager
def terminal_that_says(answer: str) -> Iterator[int]:
    """The descriptor of a terminal that answers the query, a few bytes at a time."""
    outer, inner = os.openpty()

    def work() -> None:
        asked = b""
        while not asked.endswith(QUERY.encode()):
            asked += os.read(outer, 1024)
        for start in range(0, len(answer), 7):
            os.write(outer, answer[start : start + 7].encode())

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield inner
        thread.join(120)
    finally:
        os.close(outer)
        os.close(inner)


def test_a_terminal_is_asked_and_its_answer_is_not_typed() -> None:
    import termios

    with terminal_that_says(KITTY) as inner:
        before = termios.tcgetattr(inner)
        assert ask_terminal(inner, inner, seconds=10.0) == KITTY
        assert termios.tcgetattr(inner) == before


def test_a_terminal_that_says_nothing_is_not_waited_for() -> None:
    with terminal_that_says("") as inner:
        assert ask_terminal(inner, inner, seconds=0.01) == ""
