"""Fills in the files of a folder; every text from a run is cleaned, and quoted for the language of the file."""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from accel_engine.text import printable_line

TEMPLATES = Path(__file__).parent / "templates"
"""The files of folders; ``@{name}`` stands for a value."""

_PLACEHOLDER = re.compile(r"@\{(\w+)\}")
_ALONE = re.compile(r"(\s*)@\{(\w+)\}\n")
_BLANK = re.compile(r"\n{3,}")
"""Blank lines of Markdown, of which an empty block leaves several."""

_MARKDOWN = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])")


@dataclass(frozen=True, slots=True)
class Block:
    """Text that is right in the language of the file, and is not quoted: of this program, or quoted already."""

    text: str


Value: TypeAlias = str | int | float | Block
"""The value of a placeholder."""


def clean(text: str) -> str:
    """One line of a text, without control characters, and with U+FFFD for Unicode's noncharacters."""
    return "".join("\ufffd" if ord(each) & 0xFFFE == 0xFFFE else each for each in printable_line(text))


def yaml_text(text: str) -> str:
    """A text as a scalar of YAML, and of JSON."""
    return json.dumps(clean(text), ensure_ascii=False)


def compose_text(text: str) -> str:
    """A text as a scalar of a Compose file, which replaces ``$NAME`` by variables."""
    return yaml_text(text).replace("$", "$$")


def dockerfile_text(text: str) -> str:
    """A text as a word of a Dockerfile's ``LABEL`` or ``ENV``, which replace ``$NAME`` by variables."""
    escaped = re.sub(r'[\\"$]', lambda found: f"\\{found[0]}", clean(text))
    return f'"{escaped}"'


def shell_text(text: str) -> str:
    """A text as a word of a shell."""
    return shlex.quote(clean(text))


def markdown_text(text: str) -> str:
    """A text within a line of Markdown, or a cell of a table, which is shown as it is."""
    escaped = _MARKDOWN.sub(lambda found: f"\\{found[0]}", clean(text))
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def cpp_text(text: str) -> str:
    """A text as a string of C++, without what old compilers take for a trigraph."""
    return yaml_text(text).replace("?", "\\?")


def dns_label(name: str) -> str:
    """A name as a label of DNS (RFC 1123), with at most 40 characters."""
    words = re.sub(r"[^a-z0-9]+", "-", clean(name).lower()).strip("-")[:40].strip("-")
    if not words:
        return "model"
    return words if words[0].isalpha() else f"model-{words}"


_QUOTES: Mapping[str, Callable[[str], str]] = {
    "Dockerfile": dockerfile_text,
    "compose.yaml": compose_text,
    ".yaml": yaml_text,
    ".md": markdown_text,
    ".sh": shell_text,
    ".config": yaml_text,  # protobuf's text format, with C's escapes in strings, which JSON has, too
    ".cc": cpp_text,
}
"""How texts are quoted, by the name of a file or its suffix."""


def quoted(file: str, value: Value) -> str:
    """A value in the language of a file, which its name tells."""
    if isinstance(value, Block):
        return value.text
    if isinstance(value, str):
        path = PurePosixPath(file)
        return (_QUOTES.get(path.name) or _QUOTES[path.suffix])(value)
    return str(value)


def rendered(file: str, values: Mapping[str, Value], template: str = "") -> str:
    """A file of :data:`TEMPLATES` with its values.

    A line that has only a placeholder becomes all lines of its block, each as far to the right, or none if it is empty.

    Args:
        file: The name of the file, which tells how texts are quoted.
        values: By the names of the placeholders.
        template: Its path in :data:`TEMPLATES`; ``file`` by default.

    Raises:
        KeyError: The template has a placeholder without a value.
    """
    text = (TEMPLATES / (template or file)).read_text("utf-8")
    found = "".join(part for line in text.splitlines(keepends=True) for part in _filled(file, line, values))
    return _BLANK.sub("\n\n", found) if file.endswith(".md") else found


def _filled(file: str, line: str, values: Mapping[str, Value]) -> Iterator[str]:
    """A line of a template with its values, which may be several lines, or none."""
    if alone := _ALONE.fullmatch(line):
        for each in quoted(file, values[alone[2]]).split("\n") if quoted(file, values[alone[2]]) else ():
            yield f"{alone[1]}{each}".rstrip() + "\n"
        return
    yield _PLACEHOLDER.sub(lambda found: quoted(file, values[found[1]]), line)
