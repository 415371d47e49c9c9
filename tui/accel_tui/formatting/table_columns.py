"""Columns of a table of items."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

SortKey = tuple[float, str]
"""A number, then a text for equal numbers."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """A column of a table.

    Attributes:
        title: Its header.
        width: In cells.
        text: Its cell of an item, given the present time.
        sort_key: The sort key of an item; ``None`` for an item without a value, which comes last.
        right: Whether it is aligned to the right.
        descending: Whether its default order is descending.
        colour: The theme colour of an item's cell; empty for none.
        drop_priority: The highest is hidden first where there is no room; 0 never.
    """

    title: str
    width: int
    text: Callable[[T, float], str]
    sort_key: Callable[[T], SortKey | None]
    right: bool = False
    descending: bool = False
    colour: Callable[[T], str] = lambda _: ""
    drop_priority: int = 0


def ordered(items: Iterable[T], column: Column[T], *, is_reversed: bool) -> tuple[T, ...]:
    """Items by a column; the order is stable, and items without a value come last."""
    keyed = [(column.sort_key(item), item) for item in items]
    known = [(key, item) for key, item in keyed if key is not None]
    known.sort(key=lambda pair: pair[0], reverse=column.descending is not is_reversed)
    return (*(item for _, item in known), *(item for key, item in keyed if key is None))
