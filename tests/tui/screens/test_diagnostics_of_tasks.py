"""The diagnostics of each task, on screen, of runs that a stand-in for the engine writes."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import dropwhile, takewhile

import pytest
from textual.pilot import Pilot
from textual.widgets import Select

from accel_engine.run.diagnostics import OutputReport, ValidationReport
from accel_tui.appearance.theme import LIGHT
from accel_tui.screens import diagnostics_screen
from accel_tui.screens.diagnostics_screen import DiagnosticsScreen
from accel_tui.terminal.pixel_images import PLACEHOLDER, PixelImages
from accel_tui.widgets.diagnostics.class_table import ClassList, ClassTable
from accel_tui.widgets.diagnostics.example_table import ExampleText
from accel_tui.widgets.diagnostics.sample_gallery import SampleGallery
from accel_tui.widgets.diagnostics.score_plots import ScorePlots
from tui import example_reports
from tui.example_reports import REPORTS
from tui.fake_engine import FakeEngine
from tui.screens.run_app import opened_diagnostics
from tui.stand_ins import hides, shows, text_of, until

SMALL, WIDE, LARGE = (80, 24), (120, 40), (200, 50)


pytestmark = pytest.mark.usefixtures("colours_at_once")


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    one = FakeEngine()
    one.begin().build().train(30)
    yield one
    one.close()


@asynccontextmanager
async def diagnosed(
    engine: FakeEngine, *reports: OutputReport, size: tuple[int, int] = WIDE
) -> AsyncIterator[Pilot[None]]:
    engine.writer.write_diagnostics(ValidationReport(reports), 30)
    async with opened_diagnostics(engine.directory, size) as pilot:
        await until(pilot, lambda: screen_of(pilot).outputs, "the reports")
        yield pilot


def screen_of(pilot: Pilot[None]) -> DiagnosticsScreen:
    assert isinstance(pilot.app.screen, DiagnosticsScreen)
    return pilot.app.screen


@pytest.mark.parametrize(
    "size",
    [SMALL, pytest.param(WIDE, marks=pytest.mark.campaign), pytest.param(LARGE, marks=pytest.mark.campaign)],
    ids=str,
)
@pytest.mark.parametrize("task", REPORTS)
async def test_each_tab_of_each_task_fills_its_page(engine: FakeEngine, task: str, size: tuple[int, int]) -> None:
    async with diagnosed(engine, REPORTS[task], size=size) as pilot:
        if size == WIDE:
            pilot.app.theme = LIGHT.name
        tabs = diagnostics_screen.tabs_of(REPORTS[task])
        for number, name in enumerate(tabs[:-1], 1):
            await pilot.press(str(number))
            await until(pilot, lambda name=name: screen_of(pilot).tab == name, name)  # type: ignore[misc]
            await shows(pilot, "after step 30")
            assert len(text_of(pilot).splitlines()[4].strip()) > 3


async def test_classes_are_sorted_by_f1_from_the_lowest_and_by_other_columns(engine: FakeEngine) -> None:
    async with diagnosed(engine, example_reports.rows_of_classes()) as pilot:
        await pilot.press("2")
        await shows(pilot, "macro F1", "3 classes, by F1, lowest first")
        table = screen_of(pilot).query_one(ClassTable).query_one(ClassList)

        def names() -> list[str]:
            return [row.name for row in table.shown]

        # Precisions 50/70, 30/32, 0/3; recalls 50/55, 30/50, and none for the class that never occurs.
        assert names() == ["high", "mid", "low"]
        assert re.search(r"mid +0\.7317 +━+╸? +0\.9375 +━+╸? +0\.6000 +━+╸? +50", text_of(pilot))
        await pilot.press(">", ">")
        await until(pilot, lambda: names() == ["mid", "low", "high"], "by recall")
        await pilot.press("!")
        await until(pilot, lambda: names() == ["low", "mid", "high"], "reversed")
        await shows(pilot, "highest first")
        await pilot.click(ClassList, offset=(3, 0))
        await until(pilot, lambda: names() == ["high", "low", "mid"], "by name")


async def test_a_threshold_moves_with_its_figures(engine: FakeEngine) -> None:
    async with diagnosed(engine, example_reports.binary()) as pilot:
        await pilot.press("3")
        await shows(pilot, "label positive: 333 of 1,000", "threshold 0.500: precision", "ROC  AUC 0.9", "Calibration")
        await pilot.press("right", "shift+right")
        await shows(pilot, "threshold 0.555")
        await pilot.press(*["shift+right"] * 10)
        await shows(pilot, "threshold 1.000: precision -  recall 0.0000  F1 0.0000")
        await pilot.press("B")
        await hides(pilot, "threshold 1.000")
        plots = screen_of(pilot).query_one(ScorePlots)
        assert 0.4 < plots.threshold < 0.8
        await pilot.press("down", "f")
        await hides(pilot, "Calibration")
        await shows(pilot, "ROC", "true positive rate over false positive rate")
        assert not plots.check_action("label", ())


async def test_several_labels_are_chosen_one_by_one(engine: FakeEngine) -> None:
    async with diagnosed(engine, example_reports.multi_label()) as pilot:
        await pilot.press("2")
        await shows(pilot, "label tag0 (1 of 3, . next)")
        await pilot.press(".", ".")
        await shows(pilot, "label tag2 (3 of 3")
        await pilot.press("3")
        await shows(pilot, "✗ tag0, tag1", "tag1 75%", "✓ tag2")


async def test_confident_predictions_of_many_classes_have_an_accuracy(engine: FakeEngine) -> None:
    async with diagnosed(engine, example_reports.classification()) as pilot:
        await pilot.press("3")
        await shows(pilot, "correct predictions: 333 of 1,000", "predictions are as confident", "Accuracy of confident")
        await pilot.resize_terminal(80, 24)
        await shows(pilot, "threshold 0.500: accuracy 0.", "of 1,000 predictions are as confident")


async def test_regression_has_figures_points_residuals_and_rows(engine: FakeEngine) -> None:
    async with diagnosed(engine, example_reports.regression(4)) as pilot:
        await shows(pilot, "over 4 numbers", "► price", "R² 0.9570", "Predicted over true", "Residuals", "2 examples")
        await pilot.press("right")
        await shows(pilot, "► area")
        await pilot.press("2")
        await shows(pilot, "1 to 20 of 20, highest loss first", "true price", "predicted price")
        await pilot.press(*["right"] * 30)
        await shows(pilot, "lat", "13.4")


async def test_masks_are_beside_or_over_the_image_in_the_colours_of_their_classes(engine: FakeEngine) -> None:
    async with diagnosed(engine, example_reports.segmentation()) as pilot:
        await shows(pilot, "pixel accuracy")
        await pilot.press("2")
        await shows(pilot, "mean IoU 0.6", "by IoU, lowest first")
        await pilot.press("3")
        await shows(pilot, "input | true | predicted", "██ ground", "██ car", "▀▀▀▀▀▀")
        gallery = screen_of(pilot).query_one(SampleGallery)

        def colours() -> set[object]:
            line = gallery.render_line(6)
            return {segment.style.color.triplet for segment in line if segment.style and segment.style.color}

        await until(pilot, lambda: (230, 159, 0) in colours(), "the colour of the road")
        await pilot.press("M")
        await until(pilot, lambda: (230, 159, 0) not in colours(), "the mask over the image")
        pilot.app.no_color = True
        gallery.rebuild()
        await shows(pilot, "..111", "1 road")


async def test_a_reconstruction_is_beside_its_input(engine: FakeEngine) -> None:
    async with diagnosed(engine, example_reports.reconstruction()) as pilot:
        await shows(pilot, "MAE 0.1200  RMSE 0.2000", "Loss of each example")
        await pilot.press("2")
        await shows(pilot, "input | predicted", "loss 0.5000")


async def test_a_language_model_shows_what_it_writes_and_where_it_errs(engine: FakeEngine) -> None:
    async with diagnosed(engine, example_reports.language_model(), size=SMALL) as pilot:
        await shows(pilot, "perplexity 4.2500", "The quick brown fox")
        await pilot.press("end")
        await hides(pilot, "The quick")
        await pilot.press("2")
        await shows(pilot, "he quick brown fox↵jumps", "coloured by loss")
        await hides(pilot, "error")
        pilot.app.no_color = True
        text = screen_of(pilot).query_one(ExampleText)
        text.show_again(from_start=True)
        await shows(pilot, "underlined: wrong")
        line = text.render_line(1)
        underlined = "".join(part.text for part in line if part.style and part.style.underline)
        assert underlined == "umps over the lazy "


async def test_wrong_labels_of_tokens_are_above_the_true_ones(engine: FakeEngine) -> None:
    async with diagnosed(engine, example_reports.token_classification(), size=SMALL) as pilot:
        await shows(pilot, "token accuracy")
        await pilot.press("3")
        await shows(pilot, "(1 error)", "✗ 0", "✓ 1")
        lines = text_of(pilot).splitlines()
        *_, words = (index for index, line in enumerate(lines) if "London" in line)  # below the table
        at = lines[words].index("London")
        assert [line[at : at + 5] for line in lines[words + 1 : words + 3]] == ["B-PER", "B-LOC"]
        await pilot.press("&")
        await hides(pilot, "✓ 1")


async def test_a_forecast_is_drawn_over_its_truth(engine: FakeEngine) -> None:
    async with diagnosed(engine, example_reports.forecast()) as pilot:
        await shows(pilot, "MAE of load", "MAE of price", "repeats the last value")
        await pilot.press("2")
        await shows(pilot, "1 to 6 of 12", "━━ true", "━━ predicted", "series load (1 of 2, . next)", "example 5")
        await pilot.press("right", ".")
        await shows(pilot, "7 to 12 of 12", "series price", "example 11")
        await pilot.press("f")
        await shows(pilot, "7 to 7 of 12")


async def test_sounds_are_pictures_with_low_frequencies_below(engine: FakeEngine) -> None:
    async with diagnosed(engine, example_reports.sounds()) as pilot:
        await pilot.press("4")
        await shows(pilot, "✓ yes", "no 70%", "▀▀▀▀▀▀")
        gallery = screen_of(pilot).query_one(SampleGallery)

        def is_louder_below() -> bool:
            strips = [gallery.render_line(row) for row in range(gallery.size.height)]
            below = dropwhile(lambda strip: "▀" not in strip.text, strips)
            picture = takewhile(lambda strip: "▀" in strip.text, below)
            first = [next(segment for segment in strip if "▀" in segment.text) for strip in picture]
            brightness = [
                sum(s.style.color.triplet) for s in first if s.style and s.style.color and s.style.color.triplet
            ]
            above = len(brightness) * 2 // 3
            return above >= 6 and max(brightness[above:]) > 2 * max(brightness[:above])

        await until(pilot, is_louder_below, "a loud low frequency")


async def test_outputs_are_chosen_by_key_and_in_a_list(engine: FakeEngine) -> None:
    named = [replace(REPORTS[name], output=name) for name in ("binary", "forecast", "custom")]
    async with diagnosed(engine, *named) as pilot:
        await shows(pilot, "true negative, predicted positive", "binary")
        await pilot.press("O")
        await shows(pilot, "1 Errors", "MAE of load")
        await pilot.press("O")
        await shows(pilot, "the model has its own train_step", "embedding", "float32 64")
        await pilot.press("O")
        await shows(pilot, "1 Confusion matrix")
        await pilot.click(Select)
        await pilot.press("down", "enter")
        await shows(pilot, "MAE of load")


async def test_random_samples_are_shown_where_there_are_some(engine: FakeEngine) -> None:
    async with diagnosed(engine, example_reports.binary()) as pilot:
        await pilot.press("4", "z")
        await shows(pilot, "1 to 1 of 1, random (1 error)")
        await pilot.press("z")
        await shows(pilot, "1 to 3 of 3, highest loss first")
        assert not (await _random_is_offered(pilot, engine))


async def _random_is_offered(pilot: Pilot[None], engine: FakeEngine) -> bool:
    engine.writer.write_diagnostics(ValidationReport((replace(example_reports.binary(), random=()),)), 40)
    await shows(pilot, "after step 40")
    await until(pilot, lambda: "r Random" not in text_of(pilot), "the key")
    return "r Random" in text_of(pilot)


async def test_a_new_report_of_another_task_changes_the_tabs(engine: FakeEngine) -> None:
    async with diagnosed(engine, example_reports.classification()) as pilot:
        await pilot.press("4")
        await shows(pilot, "highest loss first")
        engine.writer.write_diagnostics(ValidationReport((example_reports.forecast(),)), 40)
        await shows(pilot, "1 Errors", "2 Samples", "━━ true", "example 5")
        await pilot.press("1")
        await shows(pilot, "MAE of load")


async def test_pictures_are_real_pixels_where_the_terminal_has_them(engine: FakeEngine) -> None:
    sent: list[str] = []
    async with diagnosed(engine, example_reports.segmentation()) as pilot:
        pilot.app.pixel_images = PixelImages(sent.append)  # type: ignore[attr-defined]
        await pilot.press("3")
        await shows(pilot, PLACEHOLDER)
        assert text_of(pilot).count(PLACEHOLDER) > 100
        assert "▀" not in text_of(pilot)
        count = len(sent)
        await pilot.press("ctrl+l")  # other programs may have removed them
        await until(pilot, lambda: len(sent) == 2 * count, "the pictures again")
    assert all(each.startswith("\x1b_Ga=d") for each in sent[2 * count :])
    assert len(sent) == 3 * count
