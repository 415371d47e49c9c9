"""The images, texts and histograms of a run, on screen, of runs that a stand-in for the engine writes."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np
import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from accel_engine.run.diagnostics import ValidationReport
from accel_engine.run.media import Histogram, LoggedText, histogram_of, image_of
from accel_tui.appearance.theme import LIGHT
from accel_tui.widgets.diagnostics.logged import MediaNames, MediaView
from recorded_run import execute
from tui.example_reports import classification
from tui.fake_engine import FakeEngine
from tui.screens.run_app import opened_diagnostics
from tui.stand_ins import StubApp, hides, more, shows, text_of, until

SMALL, WIDE, LARGE = (80, 24), (120, 40), (200, 50)

WORDS = "A sentence about what the model predicted at this step, long enough to be wrapped. "


pytestmark = pytest.mark.usefixtures("colours_at_once")


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    """A run that logs an image, a text and a histogram at steps 0, 10, 20 and 30."""
    one = FakeEngine()
    one.begin().build().train(30)
    for step in range(0, 31, 10):
        log(one, step)
    yield one
    one.close()


def log(engine: FakeEngine, step: int) -> None:
    image = image_of(np.linspace(0, 1, 16 * 16).reshape(16, 16))
    values = np.repeat([0.0, 1.0, 2.0, 3.0], [10, 20, 30, 40 + step])
    engine.writer.write_media(step, 1.0, "samples", image)
    engine.writer.write_media(step, 1.0, "prediction", LoggedText(f"step {step}: " + WORDS * 4 + "\n\nA paragraph."))
    engine.writer.write_media(step, 1.0, "weights", histogram_of([*values, np.nan], bins=4))


@asynccontextmanager
async def logged(engine: FakeEngine, size: tuple[int, int] = WIDE) -> AsyncIterator[Pilot[None]]:
    async with opened_diagnostics(engine.directory, size) as pilot:
        await shows(pilot, "1 Logged", "2 Layers", "kind")
        yield pilot


@pytest.mark.parametrize("size", [SMALL, *more(WIDE, LARGE)], ids=str)
async def test_each_kind_is_shown_at_its_newest_step(engine: FakeEngine, size: tuple[int, int]) -> None:
    async with logged(engine, size) as pilot:
        await shows(pilot, "prediction  step 30, 4 of 4", "step 30: A sentence about", "A paragraph.", "characters")
        assert re.search(r"prediction +text +(4 +)?30\b", text_of(pilot))
        await pilot.press("down")
        await shows(pilot, "samples  step 30, 4 of 4", "16 x 16 gray", "▀" * 16)
        await pilot.press("down")
        await shows(pilot, "weights  step 30", "130 values from 0 to 3", "1 not finite", "values per bin")
        assert re.search(r"\d0 ┤", text_of(pilot))
        await pilot.press("down", "up", "up", "up")
        await shows(pilot, "prediction  step 30")


async def test_long_names_are_cut_in_the_middle_and_whole_above_the_item(engine: FakeEngine) -> None:
    names = [f"encoder/attention/output/kernel_{number}" for number in range(1, 4)]
    for name in names:
        engine.writer.write_media(30, 1.0, name, histogram_of(np.arange(9.0)))
    async with logged(engine, SMALL) as pilot:
        await shows(pilot, *(f"encoder/att…t/kernel_{number}  histogram " for number in range(1, 4)))
        await shows(pilot, f"{names[0]}", "step 30, 1 of 1  9 values from 0 to 8")


async def test_keys_lead_through_the_steps(engine: FakeEngine) -> None:
    async with logged(engine) as pilot:
        await shows(pilot, "4 of 4")
        for key, seen in (
            ("left", "step 20, 3 of 4"),
            ("left", "step 10, 2 of 4"),
            ("right", "step 20, 3 of 4"),
            ("home", "step 0, 1 of 4"),
            ("left", "step 0, 1 of 4"),
            ("end", "step 30, 4 of 4"),
            ("right", "step 30, 4 of 4"),
        ):
            await pilot.press(key)
            await shows(pilot, seen, f"step {seen.split(',')[0].split()[1]}: A sentence")


async def test_a_new_step_is_shown_unless_the_user_has_gone_back(engine: FakeEngine) -> None:
    async with logged(engine) as pilot:
        await shows(pilot, "step 30, 4 of 4")
        log(engine, 40)
        await shows(pilot, "step 40, 5 of 5", "step 40: A sentence")
        await pilot.press("left")
        await shows(pilot, "step 30, 4 of 5")
        log(engine, 50)
        await shows(pilot, "step 30, 4 of 6", "step 30: A sentence")
        await pilot.press("right")
        await shows(pilot, "step 40, 5 of 6")
        await pilot.press("right")
        await shows(pilot, "step 50, 6 of 6")
        log(engine, 60)
        await shows(pilot, "step 60, 7 of 7")


async def test_another_name_starts_at_its_newest_step(engine: FakeEngine) -> None:
    async with logged(engine) as pilot:
        await pilot.press("home")
        await shows(pilot, "prediction  step 0")
        await pilot.press("down")
        await shows(pilot, "samples  step 30")


async def test_the_chosen_name_stays_when_others_are_added(engine: FakeEngine) -> None:
    async with logged(engine) as pilot:
        await pilot.press("down")
        await shows(pilot, "samples  step 30")
        engine.writer.write_media(30, 1.0, "accuracy per class", LoggedText("high"))
        await shows(pilot, "accuracy per class", "samples  step 30")
        await pilot.press("up", "up")
        await shows(pilot, "accuracy per class  step 30", "high")


async def test_deleted_steps_disappear(engine: FakeEngine) -> None:
    async with logged(engine) as pilot:
        await pilot.press("left")
        await shows(pilot, "step 20, 3 of 4")
        engine.writer.rewind(10)
        await shows(pilot, "step 10, 2 of 2", "step 10: A sentence")


async def test_the_mouse_chooses_names_and_bins(engine: FakeEngine) -> None:
    async with logged(engine) as pilot:
        await shows(pilot, "weights")
        await pilot.click(MediaNames, offset=(3, 3))
        await shows(pilot, "weights  step 30", "130 values from 0 to 3")
        view = pilot.app.screen.query_one(MediaView)
        await pilot.hover(MediaView, offset=(view.size.width - 2, 20))
        await shows(pilot, "70 values from 2.25 to 3")
        await pilot.hover(MediaNames, offset=(3, 8))
        await shows(pilot, "130 values from 0 to 3")
        await pilot.click(MediaNames, offset=(3, 0))
        await pilot.click(MediaNames, offset=(3, 9))
        await shows(pilot, "weights  step 30")


def first_line(pilot: Pilot[None]) -> int:
    """The number of the first line that is shown of a text, counted from 1."""
    found = re.search(r"lines (\d+) to ", text_of(pilot))
    return int(found[1]) if found else 0


async def test_a_long_text_scrolls(engine: FakeEngine) -> None:
    engine.writer.write_media(30, 1.0, "a text", LoggedText("\n".join(f"line {number}" for number in range(1000))))
    async with logged(engine) as pilot:
        await shows(pilot, "a text  step 30", "line 0", "lines 1 to ")
        await pilot.press("pagedown", "pagedown")
        await until(pilot, lambda: first_line(pilot) > 40, "the third page")
        assert re.search(rf"line {first_line(pilot) - 1}\b", text_of(pilot))
        assert not re.search(rf"line {first_line(pilot) - 2}\b", text_of(pilot))
        await pilot.press("pageup", "pageup")
        await shows(pilot, "line 0")


async def test_images_fit_another_size_and_theme(engine: FakeEngine) -> None:
    async with logged(engine, SMALL) as pilot:
        await pilot.press("down")
        await shows(pilot, "samples  step 30", "▀" * 32)
        assert "▀" * 33 not in text_of(pilot)
        await pilot.resize_terminal(*WIDE)
        await shows(pilot, "▀" * 64)
        pilot.app.theme = LIGHT.name
        await shows(pilot, "▀" * 64)


async def test_without_colours_images_are_shades_of_characters(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with logged(engine) as pilot:
        pilot.app.no_color = True
        await pilot.press("down")
        await until(pilot, lambda: re.search(r"[.:\-=+*#%@]{8}", text_of(pilot)), "shades")
        assert "▀" not in text_of(pilot)


async def test_where_there_is_only_ascii_images_are_shades_too(engine: FakeEngine) -> None:
    async with logged(engine) as pilot:
        assert isinstance(pilot.app, StubApp)
        pilot.app.settings = replace(pilot.app.settings, glyphs="ascii")
        await pilot.press("down")
        await until(pilot, lambda: re.search(r"[.:\-=+*#%@]{8}", text_of(pilot)), "shades")
        await hides(pilot, "▀")


async def test_a_damaged_item_says_so_and_others_are_shown(engine: FakeEngine) -> None:
    execute(engine.directory, "UPDATE main.media SET body = x'00' WHERE kind = 'image' AND step = 30")
    async with logged(engine) as pilot:
        await pilot.press("down")
        await shows(pilot, "samples  step 30, 4 of 4", "table media: its body has another size")
        await pilot.press("left")
        await shows(pilot, "samples  step 20, 3 of 4", "▀" * 16)


async def test_histograms_without_a_range_are_described(engine: FakeEngine) -> None:
    engine.writer.write_media(30, 1.0, "a", histogram_of([np.inf, np.nan]))
    engine.writer.write_media(30, 1.0, "b", histogram_of([1e308, -1e308]))
    engine.writer.write_media(30, 1.0, "c", Histogram(np.array([0.0, 1.0]), np.array([0.5]), note="of another program"))
    async with logged(engine) as pilot:
        await shows(pilot, "no finite values  2 not finite")
        await pilot.press("down")
        await shows(pilot, "2 values from -1e+308 to 1e+308")
        await pilot.press("down")
        await shows(pilot, "0.5 values from 0 to 1  of another program")


async def test_a_run_with_a_report_has_the_page_before_its_layers(engine: FakeEngine) -> None:
    engine.writer.write_diagnostics(ValidationReport((classification(),)), 30)
    async with StubApp(engine.directory).run_test(size=SMALL) as pilot:
        await until(pilot, lambda: getattr(pilot.app.screen, "state", None) and pilot.app.screen.state.info, "the run")  # type: ignore[attr-defined]
        await pilot.press("w")
        await shows(pilot, "1 Confusion matrix", "5 Logged", "6 Layers", "accuracy")
        await pilot.press("5")
        await shows(pilot, "prediction  step 30")
        await pilot.press("1")
        await shows(pilot, "accuracy")


async def test_the_page_appears_with_the_first_item() -> None:
    engine = FakeEngine().begin().build().train(30)
    async with StubApp(engine.directory).run_test(size=SMALL) as pilot:
        await until(pilot, lambda: getattr(pilot.app.screen, "state", None) and pilot.app.screen.state.info, "the run")  # type: ignore[attr-defined]
        await pilot.press("w")
        await shows(pilot, "No validation yet")
        assert "Logged" not in text_of(pilot)
        log(engine, 10)
        await shows(pilot, "1 Logged", "prediction  step 10, 1 of 1")
        await hides(pilot, "No validation yet")


async def test_many_names_scroll_with_the_chosen_one() -> None:
    engine = FakeEngine().begin().build().train(30)
    for number in range(40):
        engine.writer.write_media(number, 1.0, f"layer {number:02}", LoggedText(f"text {number}"))
    async with logged(engine, SMALL) as pilot:
        await pilot.press(*["down"] * 30)
        await shows(pilot, "layer 30  step 30", "text 30")
        assert not re.search(r"layer 05\b", text_of(pilot))
        await pilot.press(*["up"] * 30)
        await shows(pilot, "layer 00  step 0")
        await pilot.press("j")
        await shows(pilot, "layer 01  step 1")


async def test_heads_are_whole_over_short_names_and_there_are_none_without_names() -> None:
    one = FakeEngine()
    one.begin().build().train(3)
    one.writer.write_media(0, 1.0, "w", histogram_of([0.0, 1.0], bins=4))
    async with logged(one, SMALL) as pilot:
        await shows(pilot, "name  kind       last step")
    one.close()

    class Empty(App[None]):
        def compose(self) -> ComposeResult:
            yield MediaNames()

    async with Empty().run_test(size=(40, 5)) as pilot:
        await pilot.pause()
        await hides(pilot, "last step")
