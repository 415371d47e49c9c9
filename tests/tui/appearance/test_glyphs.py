"""Whatever is painted has a form in ASCII that takes as many cells."""

import re
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len
from textual._border import BORDER_CHARS

import accel_tui
from accel_tui.appearance import glyphs
from accel_tui.formatting.text import sparkline
from accel_tui.settings.user_settings import Settings
from accel_tui.widgets.chart import raster

SOURCES = sorted(path for path in Path(accel_tui.__path__[0]).rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_every_character_of_the_program_has_a_form(path: Path) -> None:
    for character in set(re.findall(r"[^\x00-\x7f]", path.read_text(encoding="utf-8"))):
        plain = glyphs.to_ascii(character)
        assert plain.isascii()
        assert len(plain) == cell_len(character), character
        assert "?" not in plain, unicodedata.name(character)


def test_every_frame_of_textual_has_a_form() -> None:
    drawn = {character for rows in BORDER_CHARS.values() for row in rows for character in row}
    for character in drawn - {" "}:
        assert re.fullmatch(r"[-+|=#'\"_.:*]", glyphs.to_ascii(character)), character


@pytest.mark.parametrize("text", ["", "loss 0.1", "日本語 é", "e\u0301", "👍 good", "\u200b", "ﬁ", "ß"])
def test_text_takes_as_many_cells(text: str) -> None:
    plain = glyphs.to_ascii(text)
    assert plain.isascii()
    assert len(plain) == cell_len(text)


def test_an_accent_is_left_out_and_what_has_no_form_is_a_question() -> None:
    assert glyphs.to_ascii("café 日") == "cafe ??"


def drawn(line: list[float], rows: int) -> list[str]:
    values = np.repeat(np.array(line), 2)
    patterns = raster.trace(values, values, rows)
    return [glyphs.to_ascii("".join(chr(raster.BLANK + int(pattern)) for pattern in row)).rstrip() for row in patterns]


def test_lines_look_like_what_they_are() -> None:
    assert drawn([0.0] * 4, 2) == ["", "----"]  # in the middle of the row of its label
    assert drawn([1.0] * 4, 2) == ["----", ""]
    assert drawn([0.0] * 4, 1) == ["...."]
    assert drawn([1.0] * 4, 1) == ["''''"]
    assert drawn([0.5] * 4, 1) == ["----"]
    steep = "".join(drawn([0.0, 1.0], 6))
    assert "|" in steep
    assert set(steep) <= set("|:'./\\- ")


def test_every_pattern_of_dots_is_seen() -> None:
    seen = [glyphs.to_ascii(chr(raster.BLANK + dots)) for dots in range(256)]
    assert seen[0] == " "
    assert set(seen[1:]) == set(".'-|:/\\")


def test_levels_of_a_history_differ() -> None:
    levels = glyphs.to_ascii(sparkline([100 * level / 7 for level in range(8)], 8))
    assert levels == "_.:-=+*#"


@pytest.mark.parametrize(
    ("environment", "encoding", "able"),
    [
        ({}, "utf-8", True),
        ({"LANG": "de_DE.UTF-8"}, "utf-8", True),
        ({"LANG": "C.utf8"}, "utf-8", True),
        ({"LANG": "en_US.UTF-8@euro"}, "UTF-8", True),
        ({"LANG": "C"}, "utf-8", False),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, "utf-8", False),
        ({"LANG": "C", "LC_CTYPE": "en_US.UTF-8"}, "utf-8", True),
        ({"LC_CTYPE": "C.UTF-8"}, "utf-8", True),
        ({"LC_ALL": "POSIX", "LANG": "de_DE.UTF-8"}, "utf-8", False),
        ({"LANG": "de_DE.ISO-8859-1"}, "utf-8", False),
        ({"LANG": "de_DE.UTF-8"}, "iso8859-1", False),
    ],
)
def test_unicode_is_there_where_locale_and_encoding_have_it(
    environment: dict[str, str], encoding: str, able: bool
) -> None:
    assert glyphs.has_unicode(environment, encoding) is able
    assert glyphs.resolve_glyphs(Settings(), environment, encoding).glyphs == ("unicode" if able else "ascii")
    assert glyphs.resolve_glyphs(Settings(glyphs="unicode"), environment, encoding).glyphs == "unicode"


def test_the_linux_console_gets_ascii_since_its_font_has_no_braille() -> None:
    assert glyphs.resolve_glyphs(Settings(), {"TERM": "linux", "LANG": "C.UTF-8"}, "utf-8").glyphs == "ascii"
