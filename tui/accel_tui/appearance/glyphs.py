"""ASCII replacements of all characters that are painted."""

import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from accel_tui.settings.user_settings import Settings

UTF = ("utf8", "utf16", "utf32")
"""Prefixes of encodings that have every character."""

SIGNS = {
    "★": "*",
    "●": "*", "◌": "o", "○": "o", "■": "#", "□": "o", "◆": "*", "◇": "o", "▲": "^", "△": "^", "▶": ">", "▸": ">",
    "►": ">", "◄": "<", "◉": "@",
    "▼": "v", "▾": "v", "◀": "<", "◂": "<", "✓": "+", "✔": "+", "✗": "x", "✘": "x", "‖": "=", "•": "*", "·": ".",
    "↑": "^", "↓": "v", "←": "<", "→": ">", "↔": "-", "↕": "|", "⏎": "<", "␣": "_", "⌫": "<", "↹": ">", "⇥": ">",
    "↵": "<", "↻": "@", "⚑": "!", "⚠": "!", "⋮": ":", "∅": "0",
    "…": "~", "—": "-", "–": "-", "−": "-", "×": "x", "÷": "/", "°": "'", "±": "~", "≈": "~", "≤": "<",  # noqa: RUF001
    "≥": ">", "‘": "'", "’": "'", "«": "<", "»": ">", "“": '"', "”": '"', "§": "S", "µ": "u", "Δ": "d", "∞": "8",  # noqa: RUF001
    "▁": "_", "▂": ".", "▃": ":", "▄": "-", "▅": "=", "▆": "+", "▇": "*", "█": "#", "▀": '"', "▔": "-",
    "░": ".", "▒": ":", "▓": "%", "━": "=", "╸": "-", "╺": "-", "┈": " ", "┊": ":", "┆": ":", "┃": "#",
}  # fmt: skip
"""Replacements of single characters: marks, arrows, blocks."""

_SHAPES = {
    " ": "........",
    ".": "......x. .......x ......xx",
    "'": "x....... .x...... xx......",
    "-": "..xx.... ....xx.. ..x..... ...x.... ....x... .....x.. ..x..x.. ...xx...",
    "|": "x.x.x.x. .x.x.x.x xxxxxxxx x.x.x... ..x.x.x. .x.x.x.. ...x.x.x xxxxxx.. ..xxxxxx",
    ":": "x..xx..x x.....x. .x.....x x...x... .x...x.. ..x...x. ...x...x xx....xx xx..xx.. ..xx..xx",
    "/": ".x.xx.x. ...xx... .x.xx... ...xx.x. .xx..... ....xxx. .x.x..x. .x..x.x. .xx.x.x. .x.x.xx. ..xx.xx.",
    "\\": "x.x..x.x ..x..x.. x.x..x.. ..x..x.x x..x.... ....x..x x.x....x x....x.x x..x.x.x x.x.x..x",
}
"""Shapes of ASCII characters as braille dots: two columns, four rows, from the top."""

_BITS = (0x01, 0x08, 0x02, 0x10, 0x04, 0x20, 0x40, 0x80)


def resolve_glyphs(settings: Settings, environment: Mapping[str, str], encoding: str) -> Settings:
    """The settings, with the glyphs that the terminal can show if none were set.

    Args:
        settings: User settings.
        environment: The environment.
        encoding: Encoding of the terminal's output.
    """
    if settings.glyphs != "auto":
        return settings
    supports_unicode = (
        has_unicode(environment, encoding) and environment.get("TERM") != "linux"
    )  # its font has no braille
    return replace(settings, glyphs="unicode" if supports_unicode else "ascii")


def has_unicode(environment: Mapping[str, str], encoding: str) -> bool:
    """Whether the terminal's encoding and locale can represent every character."""
    language = environment.get("LANG", "")
    kind = environment.get("LC_CTYPE", "")
    if language in ("C", "POSIX") and kind == "C.UTF-8":
        kind = ""  # Python's UTF-8 mode in the C locale, whatever the terminal supports (PEP 538)
    locale = environment.get("LC_ALL") or kind or language
    return _is_utf(encoding) and (not locale or _is_utf(locale.partition(".")[2].partition("@")[0]))


def _is_utf(encoding: str) -> bool:
    return encoding.lower().replace("-", "").startswith(UTF)


def to_ascii(text: str) -> str:
    """The text in ASCII, of the same width."""
    return text if text.isascii() else "".join(map(_ascii, text))


@lru_cache(maxsize=2048)
def _ascii(character: str) -> str:
    if character.isascii():
        return character
    if character in SIGNS:
        return SIGNS[character]
    code = ord(character)
    if 0x2800 <= code <= 0x28FF:
        return _nearest(code - 0x2800)
    if 0x2500 <= code <= 0x257F:
        return _box(unicodedata.name(character))
    if 0x2580 <= code <= 0x259F:
        return "|" if "LEFT" in unicodedata.name(character) or "RIGHT" in unicodedata.name(character) else "#"
    from rich.cells import cell_len  # imported late, since reading settings should not wait for it

    width = cell_len(character)
    plain = "".join(each for each in unicodedata.normalize("NFKD", character) if each.isascii() and each.isprintable())
    return plain if plain and len(plain) == width else "?" * width


def _box(name: str) -> str:
    """ASCII replacement of a box-drawing character, by its Unicode name."""
    words = name.split()
    across = any(word in words for word in ("HORIZONTAL", "LEFT", "RIGHT"))
    along = any(word in words for word in ("VERTICAL", "UP", "DOWN"))
    if "DIAGONAL" in name:
        return "/" if "UPPER RIGHT TO LOWER LEFT" in name else "\\"
    if across and along:
        return "+"
    return "|" if along else "=" if "DOUBLE" in name or "HEAVY" in name else "-"


def _nearest(dots: int) -> str:
    """The character that looks most like a braille pattern; a blank only for a blank."""
    found = min(
        ((dots ^ shape).bit_count(), index, character)
        for index, (character, shapes) in enumerate(_patterns().items())
        for shape in shapes
        if bool(shape) == bool(dots)
    )
    return found[2]


@lru_cache(maxsize=1)
def _patterns() -> dict[str, tuple[int, ...]]:
    return {
        character: tuple(
            sum(bit for bit, dot in zip(_BITS, shape, strict=True) if dot == "x") for shape in shapes.split()
        )
        for character, shapes in _SHAPES.items()
    }
