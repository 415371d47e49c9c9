"""Reads TOML and JSON files of the user; limits their size, nesting, digits and names."""

import errno
import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accel_engine.files import regular
from accel_engine.words import numbers

MAX_BYTES = 1 << 18
"""Maximum size of a file."""

MAX_DEPTH = 20
"""Maximum number of tables or lists within each other, and of parts of a dotted name."""

MAX_NAMES = 1000
"""Maximum number of names in a file."""

MAX_NAME_LENGTH = 200
"""Maximum number of characters of a name."""

_PART = r"""(?:"[^"\n]*+"|'[^'\n]*+'|(?<![\w-])[\w-]++)[ \t]*+"""
_DEEP_NAME = re.compile(rf"(?:{_PART}\.[ \t]*+){{{MAX_DEPTH}}}")
"""A dotted name of many parts, for which the parser of Python takes a time that grows with their square."""

_LONG_NUMBER = re.compile(r"[\d_]{4301}")
"""An integer with more digits than Python converts."""


class SourceError(ValueError):
    """A text that cannot be parsed.

    Attributes:
        line: The line, from 1; ``None`` if it is not known.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line

    def at(self, path: Path) -> str:
        """The message, with the file and the line."""
        return f"{path}:{self.line}: {self}" if self.line else f"{path}: {self}"


def read_source(path: Path, *, or_pipe: bool = False) -> str:
    """Read a text file.

    Args:
        path: The file.
        or_pipe: Whether it may be a pipe.

    Raises:
        OSError: The file cannot be read, is not a regular file, or is too large.
        SourceError: The text is not UTF-8.
    """
    with regular(path, or_pipe=or_pipe).open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise OSError(errno.EFBIG, f"it is larger than {numbers.size(MAX_BYTES)}", str(path))
    try:
        return content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise SourceError(f"is not UTF-8: {error.reason} at byte {error.start}") from error


def parse_toml(text: str, example: str) -> dict[str, Any]:
    """Parse TOML.

    Args:
        text: The text.
        example: A correct line with a quoted text, for messages.

    Raises:
        SourceError: The text is invalid or nested too deeply, or has too many or too long names or too long numbers.
    """
    if deep := _DEEP_NAME.search(text):
        raise SourceError(f"a name has more than {MAX_DEPTH} parts", _line(text, deep))
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line, message = _explain_toml_error(error, text, example)
        raise SourceError(message, line) from error
    except (ValueError, RecursionError) as error:
        raise _too_much(error, text) from error
    _check_size(values)
    return values


def parse_json(text: str) -> Any:
    """Parse JSON.

    Raises:
        SourceError: The text is invalid or nested too deeply, or has too many or too long names or too long numbers.
    """
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise SourceError(f"invalid JSON: {error.msg} at column {error.colno}", error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise _too_much(error, text) from error
    _check_size(values)
    return values


def _too_much(error: Exception, text: str) -> SourceError:
    """Convert an error of a parser that is not an error of syntax."""
    if isinstance(error, RecursionError):
        return SourceError(f"tables or lists are nested more than {MAX_DEPTH} deep")
    number = _LONG_NUMBER.search(text)
    return SourceError("a number has more than 4,300 digits" if number else str(error), _line(text, number))


def _line(text: str, found: re.Match[str] | None) -> int | None:
    return text.count("\n", 0, found.start()) + 1 if found else None


def _check_size(values: Any) -> None:
    names = 0
    level = [values]
    for _ in range(MAX_DEPTH + 1):
        for table in level:
            names += len(table) if isinstance(table, Mapping) else 0
            for name in table if isinstance(table, Mapping) else ():
                if len(name) > MAX_NAME_LENGTH:
                    raise SourceError(f"a name has {len(name):,} characters: {name[:20]}…")
        if names > MAX_NAMES:
            raise SourceError(f"it has more than {MAX_NAMES:,} names")
        level = [inner for each in level for inner in _inner(each) if isinstance(inner, Mapping | list)]
        if not level:
            return
    raise SourceError(f"tables or lists are nested more than {MAX_DEPTH} deep")


def _inner(value: Any) -> Any:
    return value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()


_HEADER = re.compile(r"\s*\[\[?\s*(?P<name>[^]]+?)\s*\]")
_KEY = re.compile(r"\s*(?P<name>(?:\"[^\"]*\"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:\"[^\"]*\"|'[^']*'|[\w-]+))*)\s*=")
_NAME_PART = re.compile(r"\"([^\"]*)\"|'([^']*)'|([\w-]+)")
_LONG_TEXT = re.compile(r"(\"\"\"|''').*?(?:\1|\Z)", re.DOTALL)
_JSON_TOKEN = re.compile(r"\"(?:[^\"\\]|\\.)*\"|[{}\[\]:]")
_AT = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")

_CAUSES = {
    "Invalid value": "quote texts, e.g. {example}; write true, false and numbers without quotes",
    "Illegal character '\\n'": "a quote is not closed",
    "Cannot overwrite": "the name is already set",
    "Cannot declare": "the table already exists; put all its names below one header",
    "Expected '=' after a key": "write name = value",
}
"""Usual causes of the messages of the TOML parser."""


def toml_lines(text: str) -> dict[str, int]:
    """Find the number of the line, from 1, that first sets each name of a TOML file; names are dotted."""
    lines: dict[str, int] = {}
    table = ""
    text = _LONG_TEXT.sub(lambda found: '""' + "\n" * found[0].count("\n"), text)  # may hold what looks like names
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = _dotted(header["name"])
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            name = _dotted(key["name"])
            lines.setdefault(f"{table}.{name}" if table else name, number)
    return lines


def json_lines(text: str) -> dict[str, int]:
    """Find the number of the line, from 1, of each name of a JSON object, without names of objects within it."""
    lines: dict[str, int] = {}
    depth, before = 0, ""
    start = 0
    for token in _JSON_TOKEN.finditer(text):
        if token[0] == ":" and depth == 1 and before:
            lines[json.loads(before)] = text.count("\n", 0, start) + 1
        depth += (token[0] in "{[") - (token[0] in "}]")
        before, start = (token[0], token.start()) if token[0][0] == '"' else ("", 0)
    return lines


def _explain_toml_error(error: tomllib.TOMLDecodeError, text: str, example: str) -> tuple[int, str]:
    """The line and the message of a syntax error, with its usual cause.

    Args:
        error: What the parser raised.
        text: The file.
        example: A correct line with a quoted text.
    """
    at = _AT.search(str(error))
    line = int(at[1]) if at and at[1] else max(len(text.rstrip().splitlines()), 1)
    message = _AT.sub("", str(error))
    cause = next((f"; {cause}" for start, cause in _CAUSES.items() if message.startswith(start)), "")
    return line, f"invalid TOML: {message}{cause.format(example=example)}"


def _dotted(name: str) -> str:
    return ".".join("".join(part.groups("")) for part in _NAME_PART.finditer(name))
