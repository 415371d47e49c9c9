"""What people type to find runs: ``cnn status:failed tag:paper``. A run is found that fits every word of it."""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from accel_engine.plan import DEFAULTS
from accel_engine.run import RunSummary
from accel_tui.runs.columns import plan_value

_TERM = re.compile(r'(?:(\w+):)?(?:"([^"]*)"?|(\S+))')


@dataclass(frozen=True, slots=True)
class Term:
    """One word of a filter.

    Attributes:
        text: What is looked for, in lower case.
        key: Where; empty for anywhere.
    """

    text: str
    key: str = ""


def parse(words: str) -> tuple[Term, ...]:
    """Read what was typed. All text means something: what looks like a key but is none is looked for as it stands.

    ``"two words"`` in quotation marks belong together, also after a key.
    """
    terms = []
    for match in _TERM.finditer(words):
        key, quoted, plain = match.groups()
        text = (plain if quoted is None else quoted).lower()
        key = _key(key or "")
        if key and not _is_key(key):
            key, text = "", match.group().lower()
        if text and not (text.endswith(":") and _is_key(_key(text[:-1]))):  # what comes after it is still to be typed
            terms.append(Term(text, key))
    return tuple(terms)


def fits(run: RunSummary, terms: Iterable[Term]) -> bool:
    """Whether a run has all that is looked for."""
    return all(_has(run, term) for term in terms)


def _has(run: RunSummary, term: Term) -> bool:
    if not term.key:
        return any(term.text in text for place in _PLACES.values() for text in place(run))
    if term.key in _BEGINNINGS:
        return any(text.startswith(term.text) for text in _PLACES[term.key](run))
    if term.key in _PLACES:
        return any(term.text in text for text in _PLACES[term.key](run))
    return run.info is not None and _equal(run.info.values.get(term.key, DEFAULTS[term.key]), term.text)


def _key(word: str) -> str:
    return _ALIASES.get(word.lower(), word.lower())


def _is_key(word: str) -> bool:
    return word in _PLACES or word in DEFAULTS


def _equal(value: object, text: str) -> bool:
    """Whether a field of the plan is what was typed: ``0.001`` is ``1e-3``."""
    if isinstance(value, int | float):
        with suppress(ValueError):
            return float(text) == value
    return ",".join(value).lower() == text if isinstance(value, list | tuple) else str(value).lower() == text


def _plan(field: str) -> Callable[[RunSummary], tuple[str, ...]]:
    return lambda run: (plan_value(run, field).lower(),)


_PLACES: Mapping[str, Callable[[RunSummary], tuple[str, ...]]] = {
    "id": lambda run: (run.id.lower(),),
    "name": lambda run: (run.info.name.lower() if run.info else "",),
    "model": _plan("model"),
    "data": _plan("data"),
    "strategy": _plan("strategy"),
    "status": lambda run: (str(run.status or "unreadable"),),
    "tag": lambda run: tuple(tag.lower() for tag in run.info.annotations.tags) if run.info else (),
    "note": lambda run: (run.info.annotations.note.lower() if run.info else "",),
    "host": lambda run: (run.info.host.lower() if run.info else "",),
}
"""What can be looked in: a run's texts in lower case."""

_BEGINNINGS = frozenset({"status", "strategy", "tag"})
"""Where a text must begin with what is looked for, as these are words and no sentences."""

_ALIASES = {"tags": "tag", "run": "id", "batch": "batch_size", "lr": "learning_rate"}

KEYS = tuple(_PLACES)
"""The keys that are worth telling; every field of the plan is one too."""
