"""The table of all screens: its cursor, order, selection, mouse, and which lines it repaints."""

from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import ClassVar

import pytest
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.pilot import Pilot

from accel_tui.formatting.table_columns import ALL_ROOM, Column, SortOrder, column_widths
from accel_tui.widgets.table import Table
from accel_tui.widgets.text_table import TextRow, TextTable


@dataclass(frozen=True)
class Fruit:
    name: str
    price: float | None
    note: str = ""


FRUITS = (Fruit("pear", 3.0), Fruit("apple", 1.0, "green"), Fruit("fig", None), Fruit("kiwi", 2.0))
COLUMNS: tuple[Column[Fruit], ...] = (
    Column("name", 6, lambda row, _: row.name, lambda row: (0.0, row.name)),
    Column(
        "price",
        5,
        lambda row, _: "" if row.price is None else f"{row.price:g}",
        lambda row: None if row.price is None else (row.price, ""),
        right=True,
        descending=True,
    ),
    Column("note", 8, lambda row, _: row.note, drop_priority=5),
)


class Fruits(Table[Fruit]):
    painted: ClassVar[list[Region]] = []

    def key_of(self, row: Fruit) -> Hashable:
        return row.name

    def refresh(self, *regions: Region, **options: bool) -> "Fruits":
        self.painted.extend(regions)
        super().refresh(*regions, **options)
        return self


class Market(App[None]):
    def __init__(self, table: Fruits) -> None:
        super().__init__()
        self.table, self.opened = table, list[str]()

    def compose(self) -> ComposeResult:
        yield self.table

    def on_mount(self) -> None:
        self.table.show_rows(FRUITS, COLUMNS)
        self.table.focus()

    def on_table_opened(self, event: Table.Opened) -> None:
        self.opened.append(event.row.name)


@asynccontextmanager
async def market(height: int = 10, *, selectable: bool = True) -> AsyncIterator[tuple[Pilot[None], Fruits, Market]]:
    app = Market(Fruits("no fruit", selectable=selectable))
    async with app.run_test(size=(40, height)) as pilot:
        await pilot.pause()
        yield pilot, app.table, app


def names(table: Fruits) -> list[str]:
    return [row.name for row in table.shown]


def lines(table: Fruits) -> list[str]:
    return [table.render_line(y).text.rstrip() for y in range(len(table.shown) + 1)]


@pytest.mark.parametrize(
    ("keys", "at"),
    [
        ("j j k", "apple"),
        ("down down up", "apple"),
        ("up", "pear"),
        ("end", "kiwi"),
        ("end down", "kiwi"),
        ("end home", "pear"),
        ("pagedown", "fig"),
        ("pagedown pagedown pageup", "apple"),
    ],
)
async def test_keys_move_the_cursor_and_scroll(keys: str, at: str) -> None:
    async with market(height=4) as (pilot, table, _):
        await pilot.press(*keys.split())
        assert table.current
        assert table.current.name == at
        assert any(at in table.render_line(y).text for y in range(1, 4)), "its line is visible"


async def test_enter_opens_the_row_and_so_does_a_click_on_it() -> None:
    async with market() as (pilot, table, app):
        await pilot.press("down", "enter")
        await pilot.click(table, offset=(6, 4))
        assert app.opened == ["apple"], "the first click moves the cursor"
        await pilot.click(table, offset=(6, 4))
        await pilot.click(table, offset=(6, 8))  # below the last row
        assert app.opened == ["apple", "kiwi"]


async def test_rows_are_sorted_by_keys_and_by_clicks_on_headers() -> None:
    async with market() as (pilot, table, _):
        assert names(table) == [row.name for row in FRUITS]
        await pilot.press("greater_than_sign")
        assert names(table) == ["apple", "fig", "kiwi", "pear"]
        await pilot.press("greater_than_sign")
        assert names(table) == ["pear", "kiwi", "apple", "fig"], "the highest first, and without a value last"
        assert lines(table)[0].split() == ["name", "▼price", "note"]
        await pilot.press("!")
        assert names(table) == ["apple", "kiwi", "pear", "fig"]
        await pilot.press("less_than_sign")
        assert table.order == SortOrder("name")
        await pilot.click(table, offset=(13, 0))
        assert table.order == SortOrder("price")
        await pilot.click(table, offset=(13, 0))
        assert table.order == SortOrder("price", reversed=True)
        await pilot.click(table, offset=(20, 0))
        assert table.order.column == "price", "no order is by the notes"


async def test_rows_are_selected_one_by_one_and_in_ranges() -> None:
    async with market() as (pilot, table, _):
        await pilot.press("space")
        assert table.selected == {"pear"}
        assert table.current == FRUITS[1], "the cursor goes on"
        await pilot.press("shift+down")
        assert [row.name for row in table.selected_rows] == ["pear", "apple", "fig"]
        assert [line[1] for line in lines(table)[1:]] == ["◆", "◆", "◆", " "]
        await pilot.press("space")
        assert table.selected == {"pear", "apple"}
        await pilot.press("end", "shift+up")
        assert table.selected == {row.name for row in FRUITS}


async def test_the_mouse_selects_rows() -> None:
    async with market() as (pilot, table, app):
        await pilot.click(table, offset=(6, 2), control=True)
        await pilot.click(table, offset=(1, 1))  # on the mark
        assert table.selected == {"apple", "pear"}
        await pilot.click(table, offset=(6, 1), control=True)
        await pilot.click(table, offset=(6, 4), shift=True)
        assert table.selected == {row.name for row in FRUITS}
        assert not app.opened


async def test_a_table_without_selection_has_no_marks() -> None:
    async with market(selectable=False) as (pilot, table, app):
        await pilot.press("space", "shift+down")
        await pilot.click(table, offset=(6, 2), shift=True)
        assert not table.selected
        assert lines(table)[1].startswith(" pear")
        assert table.check_action("select", ()) is False
        assert table.check_action("open", ()) is True
        assert not app.opened


async def test_the_cursor_and_the_selection_stay_on_their_rows() -> None:
    async with market() as (pilot, table, _):
        await pilot.press("space", "down")
        assert table.current == FRUITS[2]
        table.show_rows([Fruit("plum", 9.0), *FRUITS[1:]])
        assert table.current == FRUITS[2]
        assert not table.selected, "its row is gone"
        table.show_rows(FRUITS[:2])
        assert table.current == FRUITS[1], "the nearest line"
        table.show_rows([])
        assert table.current is None
        assert [table.render_line(y).text.strip() for y in range(3, 6)] == ["", "no fruit", ""], "and no header"


async def test_only_changed_lines_are_repainted() -> None:
    async with market() as (pilot, table, _):
        for line in range(10):
            table.render_line(line)
        table.painted.clear()
        table.show_rows([FRUITS[0], Fruit("apple", 1.5, "green"), *FRUITS[2:]])
        assert {region.y for region in table.painted} == {2}
        table.render_line(2)
        table.painted.clear()
        table.repaint_changed()
        assert not table.painted
        await pilot.press("down")
        assert {region.y for region in table.painted} == {1, 2}, "the cursor moves from line to line"


async def test_the_last_text_has_the_room_of_empty_columns_and_is_cut_elsewhere() -> None:
    async with market() as (_, table, _):
        table.show_rows([Fruit("a persimmon", None), Fruit("a persimmon too", 4.0)])
        assert [line.split("  ")[-1].strip() for line in lines(table)[1:]] == ["a persimmon", "4"]
        assert "a per…" in lines(table)[2]


def test_columns_that_grow_share_equally_those_that_would_be_hidden_last_first() -> None:
    def column(width: int, widest: int = 0, drop_priority: int = 0) -> Column[str]:
        return Column("", width, lambda row, _: row, widest=widest, drop_priority=drop_priority)

    bars = [column(5), *[column(6, 24, 1)] * 3]
    assert column_widths(bars, 60) == [5, 16, 16, 17]
    assert column_widths([column(8, 24, 2), column(17, 40, 1)], 50) == [8, 40]
    assert column_widths([column(14, 24), column(12, 30, 6), column(21, ALL_ROOM, 5)], 100) == [24, 30, 42]


class Shares(App[None]):
    def compose(self) -> ComposeResult:
        yield TextTable()

    def on_mount(self) -> None:
        shares = ("9.9%", "under 0.01%", "15%", "over 99.99%")
        self.query_one(TextTable).show_texts(["share"], [TextRow(at, (text,)) for at, text in enumerate(shares)])


async def test_shares_with_bounds_in_words_are_numbers() -> None:
    app = Shares()
    async with app.run_test() as pilot:
        await pilot.pause()
        table = app.query_one(TextTable)
        column = table.columns[0]
        assert column.right
        assert column.sort_key
        shares = sorted(table.shown, key=column.sort_key)
        assert [row.texts[0] for row in shares] == ["under 0.01%", "9.9%", "15%", "over 99.99%"]


async def test_values_that_are_no_numbers_leave_a_column_one_of_numbers_and_are_its_last() -> None:
    app = Shares()
    async with app.run_test() as pilot:
        await pilot.pause()
        table = app.query_one(TextTable)
        losses = ("10.2", "nan", "9.8", "inf", "-inf")
        table.show_texts(["loss"], [TextRow(at, (text,)) for at, text in enumerate(losses)])
        assert table.columns[0].right
        for is_reversed, known in ((False, ["9.8", "10.2"]), (True, ["10.2", "9.8"])):
            table.order = SortOrder("loss", reversed=is_reversed)
            assert [row.texts[0] for row in table.shown] == [*known, "nan", "inf", "-inf"]
