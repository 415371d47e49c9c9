"""Whole numbers that a dialog asks for."""

from accel_engine.errors import UsageError

MAX_COUNT = 100_000
"""The largest, as of a search's trials."""


def parse_count(text: str, noun: str) -> int:
    """Parse a number from 1.

    Args:
        text: The text; commas and blanks between digits are ignored.
        noun: What is counted, in the plural.

    Raises:
        UsageError: It is none.
    """
    try:
        count = int(text.strip().removeprefix("+").replace(",", "").replace(" ", ""))
    except ValueError:
        count = 0
    if not 1 <= count <= MAX_COUNT:
        raise UsageError(f"must be a number of {noun}, from 1 to {MAX_COUNT:,}")
    return count
