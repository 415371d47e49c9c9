from typing import Any

import pytest
from textual.events import Key

from accel_tui.widgets.plan.field_finder import FieldFinder
from tui.stand_ins import StubApp, until


class TypedAheadApp(StubApp):
    """Keys arrive before the first screen has widgets."""

    def __init__(self, *keys: Key) -> None:
        super().__init__()
        self._keys = keys

    def get_default_screen(self) -> Any:
        for key in self._keys:
            self.post_message(key)
        return super().get_default_screen()


@pytest.mark.parametrize("key", [Key("slash", "/"), Key("f3", None)], ids=["slash", "f3"])
async def test_keys_before_the_first_frame_are_answered_in_their_order(key: Key) -> None:
    async with TypedAheadApp(key, *(Key(letter, letter) for letter in "decay")).run_test(size=(80, 24)) as pilot:
        finder = pilot.app.screen.query_one(FieldFinder)
        await until(pilot, lambda: finder.is_open and finder.selected == "weight_decay", "the field")
