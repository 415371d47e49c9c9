"""The line of keys: what is in it, what is left out, what a click does."""

import pytest
from textual.app import App, ComposeResult
from textual.binding import Binding

from accel_tui.widgets.key_bar import KeyBar
from tui.stand_ins import until


class Keys(App[None]):
    """An app with a key of each kind."""

    BINDINGS = [  # noqa: RUF012 (as the base class has it)
        Binding("a,f2", "add", "Add", tooltip="Count one more"),
        Binding("d", "detach", "Detach", tooltip="Leave"),
        Binding("x", "forbid", "Forbidden", tooltip="Never"),
        Binding("h", "hide", "Hidden", show=False),
    ]

    ENABLE_COMMAND_PALETTE = False
    count = 0

    def compose(self) -> ComposeResult:
        yield KeyBar()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return None if action == "forbid" else True

    def action_add(self) -> None:
        self.count += 1

    def action_forbid(self) -> None:
        raise AssertionError


@pytest.fixture
def app() -> Keys:
    return Keys()


def said(app: Keys) -> str:
    return app.query_one(KeyBar).render().plain


async def test_each_action_that_is_to_be_shown_has_its_first_key(app: Keys) -> None:
    async with app.run_test(size=(60, 4)) as pilot:
        await pilot.pause()
        assert said(app).startswith(" a Add  d Detach  x Forbidden ")
        assert "Hidden" not in said(app)


async def test_where_there_is_no_room_the_spare_ones_are_left_out(app: Keys) -> None:
    async with app.run_test(size=(24, 4)) as pilot:
        await pilot.pause()
        assert "Detach" not in said(app)
        assert "Forbidden" in said(app)
        await pilot.resize_terminal(60, 4)
        await until(pilot, lambda: "Detach" in said(app), "the spare one")


async def test_a_click_is_as_good_as_a_key_where_the_key_works(app: Keys) -> None:
    async with app.run_test(size=(60, 4)) as pilot:
        await pilot.pause()
        await pilot.click(KeyBar, offset=(4, 0))
        assert app.count == 1
        await pilot.click(KeyBar, offset=(20, 0))
        await pilot.click(KeyBar, offset=(58, 0))
        assert app.count == 1
        assert [each.title for each in app._notifications] == ["Forbidden"]
        await pilot.hover(KeyBar, offset=(4, 0))
        assert app.query_one(KeyBar).tooltip == "Count one more"
