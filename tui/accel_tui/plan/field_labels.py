"""Labels and placeholders of plan fields."""

import re

from accel_engine.errors import Words, join_words
from accel_engine.plan import SPECS, WORDS

_OPTION = re.compile(r"--([a-z][a-z-]*[a-z])")

_OTHERS = {"target_latency": "target p99 (s)", "seconds": "time limit (s)"}
"""Labels of settings of benches, which are not fields of a plan."""


def label(name: str) -> str:
    """The label of a field, also of one that only another version has; the name of a script's own setting has a dot."""
    known = WORDS[name].label if name in WORDS else _OTHERS.get(name)
    return known or (name if "." in name else name.replace("_", " "))


def placeholder(name: str) -> str:
    """The value that an empty field stands for; empty if there is none."""
    if name not in SPECS:
        return ""
    return WORDS[name].placeholder or (SPECS[name].none_word if SPECS[name].optional else "")


def in_form(text: str) -> str:
    """A text that names options of the command line, with the labels of fields in their place."""
    return _OPTION.sub(lambda found: label(name) if (name := found[1].replace("-", "_")) in SPECS else found[0], text)


def word(reason: Words) -> str:
    """Join a message about plan fields, with the labels of the form."""
    return join_words(
        reason, lambda at: label(at.field) + (f" set to {at.value}" if at.value.isdigit() else f" {at.value}".rstrip())
    )
