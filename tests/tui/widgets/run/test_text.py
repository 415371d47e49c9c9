"""Paragraphs about a run, in a running app."""

from dataclasses import replace

import pytest
from textual.app import App, ComposeResult
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from accel_tui.run.state import RunState
from accel_tui.widgets.run.text import RunText


class Steps(RunText):
    DEFAULT_CSS = "Steps { height: auto; }"

    def words(self, state: RunState) -> Content:
        return Content("\n".join(str(state.step) for _ in range(len(str(state.step)))))


class Page(App[None]):
    def compose(self) -> ComposeResult:
        yield Steps()
        yield Static("below")


def on_screen(app: Page) -> list[str]:
    return [strip.text.rstrip() for strip in app.screen._compositor.render_strips()][:4]


async def test_the_screen_is_laid_out_again_only_for_more_or_fewer_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    laid_out: list[Screen[object]] = []
    refresh = Screen._refresh_layout
    monkeypatch.setattr(
        Screen, "_refresh_layout", lambda self, *size, **how: laid_out.append(self) or refresh(self, *size, **how)
    )
    app = Page()
    async with app.run_test(size=(20, 8)) as pilot:
        steps = app.query_one(Steps)
        for step, shown, again in (
            (10, ["10", "10", "below", ""], True),
            (11, ["11", "11", "below", ""], False),
            (9, ["9", "below", "", ""], True),
            (100, ["100", "100", "100", "below"], True),
        ):
            laid_out.clear()
            steps.take(replace(RunState(), step=step))
            await pilot.pause()
            assert on_screen(app) == shown
            assert bool(laid_out) == again
