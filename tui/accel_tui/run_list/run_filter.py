"""Filters of runs, such as ``cnn status:failed tag:paper``; a run matches if it matches every term."""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from accel_engine.plan import DEFAULTS, RUN_TEXTS
from accel_engine.run import RunSummary, Status
from accel_engine.run.directory.run_paths import host_of_run
from accel_engine.text import suggestion
from accel_tui.run_list.columns import plan_value

_TERM = re.compile(r'(?:(\w+):)?(?:"([^"]*)"?|(\S+))')


@dataclass(frozen=True, slots=True)
class Term:
    """A term of a filter."""

    text: str
    """The text to find, in lower case."""
    key: str = ""
    """The field to search; empty for all of them."""


def parse_filter(text: str) -> tuple[Term, ...]:
    """Parse a filter; a term with an unknown key is searched for as text.

    ``"two words"`` in quotation marks are one term, also after a key.
    """
    terms = []
    for match in _TERM.finditer(text):
        key, quoted, plain = match.groups()
        sought = (plain if quoted is None else quoted).lower()
        key = _resolve(key or "")
        if key and not _is_key(key):
            key, sought = "", match.group().lower()
        if sought and not (sought.endswith(":") and _is_key(_resolve(sought[:-1]))):  # its value is not yet typed
            terms.append(Term(sought, key))
    return tuple(terms)


def key_error(text: str) -> str:
    """Return an error message if a filter has an unknown key or status, with the known ones; or an empty text."""
    for match in _TERM.finditer(text):
        key, quoted, plain = match.groups()
        status = (plain if quoted is None else quoted).lower()
        if _resolve(key or "") == "status" and not any(known.startswith(status) for known in _STATUSES):
            return f"no status {status!r}; known: {', '.join(_STATUSES)}"
        # A dataset such as synthetic:8x8 and an address such as http://host are texts.
        if not key or _is_key(_resolve(key)) or key.lower() in _PREFIXES or (plain or "").startswith("//"):
            continue
        quoted_text = "" if quoted is not None else f'; to search for the text, quote it: "{match.group()}"'
        return f"no key {key!r}; {suggestion(key.lower(), (*KEYS, *_ALIASES, *DEFAULTS))}{quoted_text}"
    return ""


def searched_text(run: RunSummary) -> str:
    """All texts of a run in which a term without a key is sought; none contains what separates them."""
    return "\0".join([text for texts in _TEXTS.values() for text in texts(run)])


def matches(run: RunSummary, terms: Iterable[Term], text_of: Callable[[RunSummary], str] = searched_text) -> bool:
    """Whether a run matches all terms.

    Args:
        run: The run.
        terms: What is sought.
        text_of: Returns its :func:`searched_text`, which a list of thousands remembers.
    """
    return all(_matches(run, term) if term.key else term.text in text_of(run) for term in terms)


def _matches(run: RunSummary, term: Term) -> bool:
    if term.key in _PREFIX_MATCHED:
        return any(text.startswith(term.text) for text in _TEXTS[term.key](run))
    if term.key in _TEXTS:
        return any(term.text in text for text in _TEXTS[term.key](run))
    if run.info is None:
        return False
    if run.info.has_engine:
        return _equal(run.info.plan_values.get(term.key, DEFAULTS[term.key]), term.text)
    value = run.info.setting(term.key)
    return value is not None and _equal(value, term.text)


def _resolve(word: str) -> str:
    return _ALIASES.get(word.lower(), word.lower())


def _is_key(word: str) -> bool:
    return word in _TEXTS or word in DEFAULTS


def _equal(value: object, text: str) -> bool:
    """Whether a plan field equals a text, as numbers where both are: ``0.001`` is ``1e-3``."""
    if isinstance(value, int | float):
        with suppress(ValueError):
            return float(text) == value
    return ",".join(map(str, value)).lower() == text if isinstance(value, list | tuple) else str(value).lower() == text


def _plan(field: str) -> Callable[[RunSummary], tuple[str, ...]]:
    return lambda run: (plan_value(run, field).lower(),)


_TEXTS: Mapping[str, Callable[[RunSummary], tuple[str, ...]]] = {
    "id": lambda run: (run.id.lower(),),
    "kind": lambda run: (run.info.kind if run.info else "",),
    **{field: _plan(field) for field in (*RUN_TEXTS, "strategy")},
    "name": lambda run: (run.info.name.lower() if run.info else "",),
    "status": lambda run: (str(run.status or "unreadable"),),
    "tag": lambda run: tuple(tag.lower() for tag in run.info.annotations.tags) if run.info else (),
    "note": lambda run: (run.info.annotations.note.lower() if run.info else "",),
    "script": lambda run: (run.info.script.lower() if run.info else "",),
    "host": lambda run: (host_of_run(run.directory).lower(), run.info.host.lower() if run.info else ""),
}
"""The searched texts of a run by key, in lower case."""

_PREFIX_MATCHED = frozenset({"kind", "status", "strategy", "tag"})
"""The keys whose texts must start with the term: they are single words."""

_STATUSES = (*map(str, Status), "unreadable")

_PREFIXES = frozenset({"synthetic", "cpu", "gpu", "tpu"})
"""Texts with a colon that are not keys: datasets and devices."""

_ALIASES = {"tags": "tag", "run": "id", "batch": "batch_size", "lr": "learning_rate"}

KEYS = tuple(_TEXTS)
"""The keys to show in help; every plan field is a key, too."""
