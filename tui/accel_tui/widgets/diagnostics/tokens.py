"""Text of tokens."""

from collections.abc import Sequence

_CHARACTERS = 1.5  # mean length up to which tokens are characters


def are_characters(tokens: Sequence[str]) -> bool:
    """Whether tokens are characters, which are joined without blanks, rather than words."""
    return sum(map(len, tokens)) <= _CHARACTERS * len(tokens)


def joined(tokens: Sequence[str]) -> str:
    """The text of some tokens."""
    return ("" if are_characters(tokens) else " ").join(tokens)
