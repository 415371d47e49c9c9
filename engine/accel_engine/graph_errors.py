"""Finds the cause in TensorFlow's long messages, which have it behind all frames of the graph; without TensorFlow."""

import re
from collections.abc import Iterator

_MARKS = ("Graph execution error:", "{{node ", "{{function_node ", " root error(s) found.")
"""Parts of messages of errors in a graph."""

_NOISE = (
    (re.compile(r"\{\{function_node [^}]*\}\} ?"), ""),
    (re.compile(r"\n?\s*\[\[\{\{node [^}]*\}\}\]\]"), ""),
    (re.compile(r"\n\s*\[\[[^\]\s]*\]\]"), ""),
    (re.compile(r" ?\[Op:\w+\](?: name: ?\S*)?"), ""),
    (re.compile(r"Graph execution error:\s*"), "\n"),
)
"""What says where TensorFlow was, in its own terms."""

_FIRST_ROOT = re.compile(r"\d+ root error\(s\) found\.\s*\(0\) (?:[A-Z_]+:\s*)?(.*?)\n\s*\(1\) .*", re.DOTALL)
_NODE = re.compile(r"Detected at node (\S+) defined at \(most recent call last\):\s*")
_FRAME = re.compile(r'\s*File "[^"]+", line \d+')
_TRACEBACK = "Traceback (most recent call last):"


def cause_first(text: str) -> str:
    """The message of an error in a graph without the frames of the code that built it; other texts unchanged.

    Args:
        text: The message, perhaps with the name of its type before it.

    Returns:
        The cause, and behind it the name of the graph's node, if the message tells it.
    """
    if not any(mark in text for mark in _MARKS):
        return text
    node = _NODE.search(text)
    found = _FIRST_ROOT.sub(r"\1", _NODE.sub("\n", text))
    for pattern, by in _NOISE:
        found = pattern.sub(by, found)
    lines = dict.fromkeys(_without_frames(found))
    cause = "\n".join(lines).strip().replace(": \n", ": ", 1)
    return f"{cause} (at {node[1]})" if node else cause


def frames_in(text: str) -> list[tuple[str, int]]:
    """The files and lines of the code that built the failed part of a graph, outermost first."""
    return [(file, int(line)) for file, line in re.findall(r'File "([^"\n]+)", line (\d+)', text)]


def _without_frames(text: str) -> Iterator[str]:
    is_frame = False
    for line in text.splitlines():
        is_start = bool(_FRAME.match(line)) or _TRACEBACK in line
        is_frame = is_start or (is_frame and (not line.strip() or line[0].isspace()))
        if not is_frame and line.strip():
            yield line
