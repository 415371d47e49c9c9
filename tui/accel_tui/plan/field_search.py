"""Finds fields of the form by their name, their help, and words of Keras and others; without widgets."""

from collections.abc import Container, Iterator
from dataclasses import dataclass

from accel_engine.plan import SPECS, WORDS
from accel_tui.formatting import field_labels
from accel_tui.plan.form_groups import ORDER
from accel_tui.plan.relevance import needs


@dataclass(frozen=True, slots=True)
class FoundField:
    """A field that was found.

    Attributes:
        name: The field.
        note: Its description; for an irrelevant field, what it needs.
        is_relevant: Whether the form shows it.
    """

    name: str
    note: str
    is_relevant: bool = True


def find_fields(text: str, relevant: Container[str]) -> tuple[FoundField, ...]:
    """Find the fields that match all words of a text, best first; irrelevant ones come last.

    Args:
        text: What is typed.
        relevant: The fields that fit the plan.
    """
    words = text.lower().replace("_", " ").replace("-", " ").split()
    ranked = [(rank, name) for name in ORDER if (rank := _rank(name, words)) is not None]
    ordered = [name for _, name in sorted(ranked, key=lambda pair: (pair[1] not in relevant, pair[0]))]
    return tuple(
        FoundField(name, SPECS[name].doc) if name in relevant else FoundField(name, needs(name), is_relevant=False)
        for name in ordered
    )


def _rank(name: str, words: list[str]) -> int | None:
    """How well a field matches, 0 for best, parts of words last; ``None`` if a word does not match."""
    texts = tuple(f" {text}" for text in _texts(name))
    starts, anywhere = enumerate(texts), enumerate(texts, len(texts))
    places = (*((rank, text, " ") for rank, text in starts), *((rank, text, "") for rank, text in anywhere))
    ranks = [next((rank for rank, text, before in places if before + word in text), None) for word in words]
    known = [rank for rank in ranks if rank is not None]
    return sum(known) if len(known) == len(ranks) else None


def _texts(name: str) -> Iterator[str]:
    """The texts of a field in which words are searched for, the most telling first."""
    yield f"{field_labels.label(name)} {name.replace('_', ' ')}".lower()
    synonyms = " ".join(WORDS[name].synonyms).lower()
    yield f"{synonyms} {synonyms.replace('_', ' ')}"
    yield WORDS[name].group.lower()
    yield SPECS[name].doc.lower()
