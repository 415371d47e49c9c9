"""A screen that is put together from its spots is the one that is put together as a whole, with less asking."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import RenderableType
from textual import _compositor
from textual.app import App
from textual.geometry import Region, Size
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from accel_engine.process import engine_process
from accel_engine.process.engine_process import Installation
from accel_tui.app_protocol import Screens
from accel_tui.screens.run_screen import RunScreen
from accel_tui.terminal import dirty_regions, textual_private
from accel_tui.terminal.canvas import Canvas
from accel_tui.widgets.plan.field import Field
from accel_tui.widgets.run.phase_line import PhaseLine
from accel_tui.widgets.visibility import is_covered
from tui.fake_engine import FakeEngine
from tui.stand_ins import StubApp, begun, shows, until

Update = textual_private.ScreenUpdate


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEngine]:
    monkeypatch.setattr(engine_process, "find_installation", lambda: Installation("tensorflow-cpu", "2.21.0"))
    engine = FakeEngine().begin().build().train(20)
    yield engine
    engine.close()


class SeenApp(StubApp):
    """Paints on a canvas of the test's; a headless app paints nowhere."""

    def __init__(self, directory: Path | None = None) -> None:
        super().__init__(directory)
        self.seen = Canvas()

    def _display(self, screen: "Screen[object]", renderable: RenderableType | None) -> None:
        if isinstance(renderable, Update) and not self._batch_count:
            self.paint_strips(list(textual_private.strips_of(renderable)))
        super()._display(screen, renderable)

    def paint_strips(self, strips: list[tuple[int, int, Strip]]) -> None:
        self.seen.paint(strips, self.console)

    def is_whole(self) -> bool:
        """Whether what was painted is what the whole screen would be."""
        whole = Canvas()
        strips = [[strip] for strip in self.screen._compositor.render_strips()]
        whole.paint(textual_private.strips_of(_compositor.LayoutUpdate(strips, self.size.region)), self.console)
        return _text(whole) == _text(self.seen) and _grounds(whole) == _grounds(self.seen)


def _text(canvas: Canvas) -> dict[int, str]:
    return {y: "".join(cell[0] if cell else "?" for cell in row) for y, row in canvas._rows.items()}


def _grounds(canvas: Canvas) -> dict[int, list[str]]:
    """What is behind the text."""
    return {y: [cell[1].background if cell else "?" for cell in row] for y, row in canvas._rows.items()}


async def test_spots_add_up_to_the_whole_screen(engine: FakeEngine) -> None:
    app = SeenApp(engine.directory)
    async with app.run_test(size=(110, 36)) as pilot:
        await shows(pilot, "epoch")
        for steps in (7, 90, 3):
            engine.train(steps)
            await until(pilot, app.is_whole, "all steps to be painted")
        for keys in (("i",), ("l",), ("plus", "plus", "left"), ("question_mark",), ("escape",)):
            await pilot.press(*keys)
            await until(pilot, app.is_whole, f"all that {keys} changes")


async def test_what_takes_or_gives_room_is_laid_out_once(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    laid_out: list[object] = []
    reflow = dirty_regions.DirtyRegionCompositor.reflow
    monkeypatch.setattr(
        dirty_regions.DirtyRegionCompositor,
        "reflow",
        lambda *arguments: laid_out.append(arguments) or reflow(*arguments),
    )
    app = SeenApp(engine.directory)
    async with app.run_test(size=(200, 50)) as pilot:
        await shows(pilot, "epoch", "Events")
        await begun(pilot)
        for key in ("i", "i", "f", "f"):
            laid_out.clear()
            await pilot.press(key)
            await until(pilot, app.is_whole, f"all that {key} changes")
            assert len(laid_out) == 1, key


async def test_a_screen_that_is_come_back_to_is_painted_once(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = SeenApp(engine.directory)
    async with app.run_test(size=(110, 36)) as pilot:
        await shows(pilot, "epoch")
        await begun(pilot)
        whole: list[object] = []
        paint = dirty_regions.DirtyRegionCompositor.render_full_update
        monkeypatch.setattr(
            dirty_regions.DirtyRegionCompositor,
            "render_full_update",
            lambda *arguments, **named: whole.append(arguments) or paint(*arguments, **named),
        )
        app.push_screen(Screen())
        await pilot.pause()
        assert not whole
        app.pop_screen()
        await until(pilot, app.is_whole, "the screen")
        assert len(whole) == 1


async def test_what_comes_often_is_painted_at_once_whatever_is_in_front(engine: FakeEngine) -> None:
    app = SeenApp(engine.directory)
    async with app.run_test(size=(110, 36), notifications=True) as pilot:
        await shows(pilot, "step 20")
        await begun(pilot)
        await until(pilot, app.is_whole, "the first frames")
        screen = app.screen
        assert isinstance(screen, RunScreen)

        def take(step: int) -> str:
            """Let a line say another step; what is seen right after that."""
            with screen.immediate_paint():
                screen.query_one(PhaseLine).set_state(replace(screen.state, step=step))
            return "\n".join(_text(app.seen).values())

        assert "step 21" in take(21)
        app.notify("x" * 2000)
        await until(pilot, lambda: "xxx" in take(22), "what covers the line")
        assert "step 23" not in take(23)
        assert app.is_whole()
        app.clear_notifications()
        await until(pilot, lambda: "step 24" in take(24), "the line again")
        await until(pilot, app.is_whole, "the whole")


async def test_around_a_dialog_only_what_changes_is_painted(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = SeenApp(engine.directory)
    async with app.run_test(size=(110, 36), notifications=True) as pilot:
        await shows(pilot, "step 20")
        await begun(pilot)
        screen = app.screen
        assert isinstance(screen, RunScreen)
        await pilot.press("a")
        await until(pilot, lambda: app.screen is not screen and app.is_whole(), "the dialog")
        rows: list[int] = []
        paint = SeenApp.paint_strips
        monkeypatch.setattr(
            SeenApp, "paint_strips", lambda self, strips: rows.extend(each[0] for each in strips) or paint(self, strips)
        )

        async def painted(step: int) -> int:
            """Number of rows that are painted when the line behind the dialog says another step."""
            rows.clear()
            screen.query_one(PhaseLine).set_state(replace(screen.state, step=step))
            await until(pilot, lambda: f"step {step}" in "\n".join(_text(app.seen).values()), "the step")
            return len(set(rows))

        steps = iter(range(21, 121))  # the first frames after a dialog was opened are of the whole screen
        while await painted(next(steps)) > 8:
            pass
        monkeypatch.undo()
        for chart in screen.query("Chart"):
            chart.refresh()
        await pilot.pause()
        await until(pilot, app.is_whole, "charts left and right of the dialog")
        app.notify("over both")
        await until(pilot, lambda: "over both" in "\n".join(_text(app.seen).values()), "the notice")
        screen.query_one(PhaseLine).set_state(replace(screen.state, step=222))
        await until(pilot, lambda: "step 222" in "\n".join(_text(app.seen).values()), "the step")
        app.clear_notifications()
        await until(pilot, lambda: "over both" not in "\n".join(_text(app.seen).values()), "the notice to go")
        await until(pilot, app.is_whole, "what was below the notice")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen and app.is_whole(), "the run alone")


async def test_what_changes_below_the_palette_does_not_paint_over_it(engine: FakeEngine) -> None:
    app = SeenApp(engine.directory)
    async with app.run_test(size=(110, 36)) as pilot:
        await shows(pilot, "step 20")
        await begun(pilot)
        screen = app.screen
        await pilot.press("ctrl+p")
        await until(pilot, lambda: "Compare with the latest" in "\n".join(_text(app.seen).values()), "the palette")
        for chart in screen.query("Chart"):
            chart.refresh()
        screen.query_one(PhaseLine).set_state(replace(screen.state, step=21))  # type: ignore[attr-defined]
        await until(pilot, lambda: "step 21" in "\n".join(_text(app.seen).values()), "the step")
        assert "Compare with the latest" in "\n".join(_text(app.seen).values())
        await until(pilot, app.is_whole, "all of the palette")


async def test_what_waits_for_its_turn_is_painted_with_what_is_painted_at_once(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = SeenApp(engine.directory)
    async with app.run_test(size=(110, 36)) as pilot:
        await shows(pilot, "step 20")
        await begun(pilot)
        await until(pilot, app.is_whole, "the first frames")
        screen, asked, render_lines = app.screen, set[Widget](), Widget.render_lines
        assert isinstance(screen, RunScreen)
        monkeypatch.setattr(Widget, "render_lines", lambda self, crop: asked.add(self) or render_lines(self, crop))
        title = screen.query_one("RunTitle", Widget)
        title.refresh()
        screen._dirty_widgets.add(title)  # as its message does
        with screen.immediate_paint():
            screen.query_one(PhaseLine).set_state(replace(screen.state, step=21))
        assert title in asked


async def test_what_is_not_painted_at_once_is_painted_at_the_same_place(engine: FakeEngine) -> None:
    app = SeenApp(engine.directory)
    async with app.run_test(size=(110, 36)) as pilot:
        await shows(pilot, "step 20")
        await begun(pilot)
        await until(pilot, app.is_whole, "the first frames")
        line = app.screen.query_one(PhaseLine)
        line.set_state(replace(line.state, info=None))
        await until(pilot, lambda: " opening…" in "\n".join(_text(app.seen).values()), "the words in its place")


async def test_a_list_is_painted_when_it_is_opened_for_the_first_time(engine: FakeEngine) -> None:
    app = SeenApp()
    async with app.run_test(size=(100, 30)) as pilot:
        await shows(pilot, "Start")
        await pilot.press("tab")
        app.screen.query_one("#model Input").focus()
        await until(pilot, app.is_whole, "the field")
        await pilot.press("enter")
        await until(pilot, lambda: "One hidden layer" in "\n".join(_text(app.seen).values()), "the list to be painted")
        await pilot.press("escape")
        await until(pilot, app.is_whole, "the form to be painted without it")


async def test_a_widget_that_does_not_change_is_not_asked(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Widget, Region]] = []
    render_lines = Widget.render_lines

    def noted(self: Widget, crop: Region) -> list[Strip]:
        asked.append((self, crop))
        return render_lines(self, crop)

    app = StubApp(engine.directory)
    async with app.run_test(size=(110, 36)) as pilot:
        await shows(pilot, "epoch")
        await begun(pilot)
        monkeypatch.setattr(Widget, "render_lines", noted)
        title, bottom = app.screen.query_one("RunTitle"), app.screen.query_one("KeyBar")
        for line in (title, bottom):
            line.refresh()
        await until(pilot, lambda: {title, bottom} <= {widget for widget, _ in asked}, "both lines to be painted")
        between = {type(widget).__name__ for widget, _ in asked} - {
            "RunTitle",
            "RunsBadge",
            "KeyBar",
            "PhaseLine",
            "ProgressLine",
        }
        assert not between
        asked.clear()
        app.screen.state = app.screen.state  # type: ignore[attr-defined]
        for chart in app.screen.query("Chart"):
            chart.series = chart.series  # type: ignore[attr-defined]
        await pilot.pause()
        assert not {type(widget).__name__ for widget, _ in asked} - {"PhaseLine", "ProgressLine"}  # where time goes on


async def test_a_step_through_the_form_paints_two_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[Widget] = set()
    render_lines = Widget.render_lines

    def noted(self: Widget, crop: Region) -> list[Strip]:
        asked.add(self)
        return render_lines(self, crop)

    def fields() -> set[str | None]:
        return {widget.id for widget in asked if isinstance(widget, Field)}

    app = StubApp()
    async with app.run_test(size=(110, 36)) as pilot:
        await shows(pilot, "AMD EPYC")
        monkeypatch.setattr(Widget, "render_lines", noted)
        for _ in range(10):  # something else may come between, such as a device that was found
            app.screen.query_one("#model Input").focus()
            await until(pilot, lambda: app.focused is app.screen.query_one("#model Input"), "the first field")
            await pilot.pause()
            asked.clear()
            await pilot.press("down")
            await until(pilot, lambda: len(fields()) > 1, "both fields to be painted")
            if fields() == {"field-model", "field-epochs"} and app.screen not in asked:
                return
    pytest.fail(f"painted: {fields()}")


async def test_only_what_can_be_seen_is_painted_anew() -> None:
    app = SeenApp()
    async with app.run_test(size=(110, 36)) as pilot:
        await shows(pilot, "Start")
        form = app.screen
        app.open_screen(Screens.RUNS)
        await until(pilot, lambda: is_covered(form), "the form to be covered")
        form.refresh()
        await until(pilot, app.is_whole, "the list, and nothing of the form")


class Asking(Widget):
    """Asks, while it is painted, where all widgets are by now."""

    DEFAULT_CSS = "Asking { height: 1; }"

    def render(self) -> str:
        """Whether it is anywhere."""
        return "here" if self in self.screen._compositor.full_map else "gone"


async def test_a_widget_that_goes_away_while_others_are_painted_does_no_harm() -> None:
    app = App[None]()
    async with app.run_test() as pilot:
        screen, widgets = dirty_regions.DirtyRegionScreen(), [Asking(), Asking(), Asking()]
        await app.push_screen(screen)
        await screen.mount(*widgets)
        await until(pilot, lambda: all(widget in screen._compositor.visible_widgets for widget in widgets), "the place")
        for widget in widgets:
            widget.refresh()  # what it shows is not kept
        screen._compositor._dirty_regions.update(widget.region for widget in widgets)
        widgets[1].display = False
        screen._compositor._full_map_invalidated = True
        assert screen._compositor.render_partial_update()


class Rows(Asking):
    """Has no more rows than it shows."""

    DEFAULT_CSS = "Rows { height: 3; }"

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows that are there."""
        assert crop.bottom <= self.size.height
        return super().render_lines(crop)


async def test_a_widget_is_not_asked_for_rows_that_it_gets_with_its_next_size() -> None:
    app = App[None]()
    async with app.run_test() as pilot:
        screen, rows = dirty_regions.DirtyRegionScreen(), Rows()
        await app.push_screen(screen)
        await screen.mount(rows)
        compositor = screen._compositor
        assert isinstance(compositor, dirty_regions.DirtyRegionCompositor)
        await until(pilot, lambda: rows in compositor.visible_widgets and rows.size.height == 3, "the place")
        rows._size = Size(rows.size.width, 1)
        compositor._marked.append((Region(0, 0, 10, 4), rows))
        assert compositor.render_partial_update()
