"""The lines of names in TOML and JSON files, and of syntax errors; the parsers of Python give no lines of names."""

import json
import re
import tomllib

_HEADER = re.compile(r"\s*\[\[?\s*(?P<name>[^]]+?)\s*\]")
_KEY = re.compile(r"\s*(?P<name>(?:\"[^\"]*\"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:\"[^\"]*\"|'[^']*'|[\w-]+))*)\s*=")
_PART = re.compile(r"\"([^\"]*)\"|'([^']*)'|([\w-]+)")
_LONG_TEXT = re.compile(r"(\"\"\"|''').*?(?:\1|\Z)", re.DOTALL)
_JSON_TOKEN = re.compile(r"\"(?:[^\"\\]|\\.)*\"|[{}\[\]:]")
_AT = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")

_CAUSES = {
    "Invalid value": "quote texts, e.g. {example}, but not true or false",
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
    """Find the number of the line, from 1, of each name of a JSON object, without those of objects within it."""
    lines: dict[str, int] = {}
    depth, before = 0, ""
    start = 0
    for token in _JSON_TOKEN.finditer(text):
        if token[0] == ":" and depth == 1 and before:
            lines[json.loads(before)] = text.count("\n", 0, start) + 1
        depth += (token[0] in "{[") - (token[0] in "}]")
        before, start = (token[0], token.start()) if token[0][0] == '"' else ("", 0)
    return lines


def explain_toml_error(error: tomllib.TOMLDecodeError, text: str, example: str) -> tuple[int, str]:
    """The line of a syntax error, and what is wrong with the usual cause.

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
    return ".".join("".join(part.groups("")) for part in _PART.finditer(name))
