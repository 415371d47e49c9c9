"""What a run looks like inside, on screen, of runs that a stand-in for the engine writes."""

import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from rich.cells import cell_len
from textual.pilot import Pilot

from accel_engine.errors import RunError
from accel_engine.events import Outcome
from accel_engine.requests.protocol.request import ExamplesDone
from accel_engine.requests.revalidate import Revalidation, RevalidationRequest
from accel_engine.run import RunWriter
from accel_engine.run.diagnostics import ClassificationReport, Layer, LayerTable, StageOfModel, ValidationReport
from accel_engine.run.diagnostics.views import Image
from accel_tui.run_state.diagnostics import DiagnosticsReading
from accel_tui.screens import diagnostics_screen
from accel_tui.screens.diagnostics_screen import DiagnosticsScreen
from accel_tui.screens.run_screen import RunScreen
from accel_tui.screens.runs_screen import RunsScreen
from accel_tui.widgets.diagnostics.class_table import Confusion, confused
from accel_tui.widgets.diagnostics.confusion_matrix import ConfusionMatrix, layout_for
from accel_tui.widgets.diagnostics.sample_gallery import SampleGallery
from tui.example_reports import classification
from tui.fake_engine import FakeEngine
from tui.screens.run_app import opened_diagnostics
from tui.stand_ins import BareApp, StubApp, hides, more, shows, text_of, until

SMALL, WIDE, LARGE = (80, 24), (120, 40), (200, 50)

LAYERS = LayerTable(
    (
        Layer("flatten", "Flatten", 0, (64,), 0, 0, 0.0),
        Layer("inner", "Sequential", 0, (16,), 2000, 500, 6e6, inner=True),
        Layer("dense", "Dense", 1, (16,), 1500, 0, 4e6),
        Layer("dense_1", "Dense", 1, None, 500, 500, 2e6),
    ),
    8e6,
    2e6,
)


def examined(classes: int = 10, channels: int = 1, wrong: int = 20) -> ValidationReport:
    """What a validation might find: class 3 is taken for 5 now and then."""
    return ValidationReport((classification(classes, channels, wrong),))


pytestmark = pytest.mark.usefixtures("colours_at_once")


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    one = FakeEngine()
    one.begin().build().train(30)
    yield one
    one.close()


@asynccontextmanager
async def looked_into(engine: FakeEngine, size: tuple[int, int] = SMALL) -> AsyncIterator[Pilot[None]]:
    async with opened_diagnostics(engine.directory, size) as pilot:
        await until(pilot, lambda: pilot.app.screen.reading.diagnostics is not None, "what was kept")  # type: ignore[attr-defined]
        yield pilot


@pytest.mark.parametrize("size", [SMALL, *more(WIDE, LARGE)])
async def test_what_is_confused_is_a_map_with_counts_shares_and_the_worst_pairs(
    engine: FakeEngine, size: tuple[int, int]
) -> None:
    engine.writer.write_diagnostics(examined(), 30)
    async with looked_into(engine, size) as pilot:
        await shows(
            pilot, "accuracy 0.9709 (300 of 309) after step 30", "true name3, predicted name5: 7 of 37 (19%)", " 81%"
        )
        assert re.search(r"\bname3 .*\b30\b +7\b +81%", text_of(pilot))
        await pilot.press("%")
        await until(pilot, lambda: re.search(r"name3 +81% +19%", text_of(pilot)), "shares")
        await pilot.press("&")
        await shows(pilot, "Most confused", "name1 as name0")
        await pilot.press("&", "up", "left")
        await shows(pilot, "true name2, predicted name4: 0 of 30")


async def test_cells_have_colours_that_a_click_tells_in_words(engine: FakeEngine) -> None:
    engine.writer.write_diagnostics(examined(), 30)
    async with looked_into(engine, WIDE) as pilot:
        widget = pilot.app.screen.query_one(ConfusionMatrix)
        await shows(pilot, "true name3, predicted name5")
        colours = {
            segment.style.bgcolor.triplet
            for segment in widget.render_line(2)
            if segment.style and segment.style.bgcolor and segment.style.bgcolor.triplet
        }
        assert len(colours) >= 2
        lines = [widget.render_line(line).text for line in range(2, 5)]  # of the first class, the words in the middle
        assert ["30" in line for line in lines] == [False, True, False]
        await pilot.click(ConfusionMatrix, offset=(lines[1].index("30"), 4))
        await shows(pilot, "true name0, predicted name0: 30 of 30 (100%)")


@pytest.mark.parametrize("names", [("猫", "犬", "鳥"), ("自動車", "飛行機", "トラック")])
async def test_class_names_of_wide_characters_have_room(names: tuple[str, ...]) -> None:
    counts = np.array([[30, 1, 2], [3, 30, 4], [5, 6, 30]])
    async with BareApp().run_test(size=WIDE) as pilot:
        await pilot.app.screen.mount(matrix := ConfusionMatrix())
        matrix.confusion = Confusion(names, counts)
        await shows(pilot, "accuracy", f"{names[2]} as {names[1]}  ")
        heads, *lines = [matrix.render_line(line).text for line in range(1, matrix.size.height - 1)]
        assert all(name in heads for name in names)
        assert "recall" in heads
        rows = [line for line in lines if "%" in line[:80] and not line.startswith("true")]
        assert [line.split()[0] for line in rows] == [*names]
        ends = {cell_len(line[: line.index("%") + 1]) for line in rows}
        assert len(ends) == 1  # the shares are below each other


async def test_a_hundred_classes_scroll_with_the_cursor(engine: FakeEngine) -> None:
    engine.writer.write_diagnostics(examined(100), 30)
    async with looked_into(engine) as pilot:
        await shows(pilot, "Most confused", "true name3, predicted name5", "of 100")
        await pilot.press(*["pagedown"] * 10, *["shift+right"] * 10)
        await shows(pilot, "true name99, predicted name99: 30 of 30", "-100, cols 92-100 of 100")
    assert layout_for(("0",) * 100, 3, 220, 60).cell == 2
    found = classification(100)
    assert found.counts is not None
    assert confused(Confusion(found.names, found.counts), 5) == [(3, 5, 7, 7 / 37), (1, 0, 2, 2 / 32)]


async def test_leaving_asks_what_becomes_of_a_run_that_goes_on(engine: FakeEngine) -> None:
    async with looked_into(engine) as pilot:
        await pilot.press("q")
        await shows(pilot, "Quit accel-tui?")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, DiagnosticsScreen), "staying")


async def test_no_classes_are_no_map(engine: FakeEngine) -> None:
    engine.writer.write_diagnostics(ValidationReport((ClassificationReport(counts=np.zeros((0, 0), np.int64)),)), 30)
    async with looked_into(engine) as pilot:
        await pilot.press("down", "%", "&", "2", "right", "1")
        await shows(pilot, "No validation yet")


@pytest.mark.parametrize(
    ("size", "channels"),
    [
        (SMALL, 1),
        (WIDE, 4),
        pytest.param(SMALL, 3, marks=pytest.mark.campaign),
        pytest.param(LARGE, 3, marks=pytest.mark.campaign),
    ],
)
async def test_pictures_have_pages_of_the_most_wrong(engine: FakeEngine, size: tuple[int, int], channels: int) -> None:
    engine.writer.write_diagnostics(examined(channels=channels, wrong=40), 30)
    async with looked_into(engine, size) as pilot:
        await pilot.press("4")
        await shows(pilot, "▀▀▀▀▀▀▀▀", "of 64, highest loss first (40 errors)", "✗ name3", "name5 90%")
        await pilot.press("end")
        await shows(pilot, "to 64 of 64", "✓ name3")
        await pilot.press("&")
        await shows(pilot, "1 to ", "of 40, only errors")
        await pilot.press("right")
        await hides(pilot, "name5 90%")
        await pilot.press("left", "minus", "minus", "minus")
        await until(pilot, lambda: pilot.app.screen.query_one(SampleGallery).size_index == 0, "small pictures")
        await shows(pilot, "name5 90%")


async def test_an_image_is_two_pixels_a_cell_in_its_own_colours(engine: FakeEngine) -> None:
    found = classification(channels=3).worst[0].input
    engine.writer.write_diagnostics(examined(channels=3), 30)
    async with looked_into(engine, WIDE) as pilot:
        await pilot.press("4")
        await shows(pilot, "▀▀▀▀▀▀▀▀")
        segment = next(iter(pilot.app.screen.query_one(SampleGallery).render_line(1)))
        assert segment.style is not None
        assert isinstance(found, Image)
        triplets = [tuple(colour.triplet) for colour in (segment.style.color, segment.style.bgcolor)]  # type: ignore[union-attr, arg-type]
        # Three cells for a pixel, so that both halves show the first.
        assert triplets == [tuple(found.pixels[0, 0])] * 2


async def test_without_colours_pictures_and_cells_are_shades_of_characters(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    engine.writer.write_diagnostics(examined(), 30)
    async with looked_into(engine) as pilot:
        pilot.app.no_color = True
        await shows(pilot, "true name3, predicted name5")
        await pilot.press("4")
        await shows(pilot, "✗ name3")
        assert "▀" not in text_of(pilot)
        assert re.search(r"[.:\-=+*#%@]{8}", text_of(pilot))


async def test_where_there_is_only_ascii_pictures_are_shades_too(engine: FakeEngine) -> None:
    engine.writer.write_diagnostics(examined(), 30)
    async with looked_into(engine) as pilot:
        assert isinstance(pilot.app, StubApp)
        pilot.app.settings = replace(pilot.app.settings, glyphs="ascii")
        await pilot.press("4")
        await shows(pilot, "✗ name3")  # which the canvas puts into ASCII
        assert "▀" not in text_of(pilot)


@pytest.mark.parametrize("size", [SMALL, *more(WIDE, LARGE)])
async def test_layers_are_a_table_whose_rest_is_named(engine: FakeEngine, size: tuple[int, int]) -> None:
    engine.writer.write_diagnostics(LAYERS, 0)
    async with looked_into(engine, size) as pilot:
        await pilot.press("3")
        await shows(pilot, "flatten ", "inner  Sequential", "2,000 parameters, 500 trainable")
        await hides(pilot, "flatten  Flatten")  # which its name tells
        await shows(pilot, "8.00 MFLOP per step", "25% outside layers")
        inner = [line.strip("│ ") for line in text_of(pilot).splitlines()]
        lines = {line.split()[0]: line for line in inner if line.split()}
        assert re.search(r"16 +1,500 +no +4.00M +50%", lines["dense"])
        assert re.search(r"\? +500 +yes +2.00M +25%", lines["dense_1"])
        assert re.search(r"16 +2,000 +25% +6.00M +75%", lines["inner"])


async def test_the_stages_of_a_pipeline_are_above_the_layers(engine: FakeEngine) -> None:
    stages = (
        StageOfModel("GPU:0", "flatten", "inner", 2000, 3 << 20, 0.625, 4096),
        StageOfModel("GPU:1", "dense_1", "dense_1", 500, 1 << 20, 0.375, 0),
    )
    engine.writer.write_diagnostics(replace(LAYERS, stages=stages, micro_batches=8), 0)
    async with looked_into(engine, WIDE) as pilot:
        await pilot.press("3")
        await shows(pilot, "GPU:0  flatten to inner", "62% of time", "3.0 MiB  sends 4.0 KiB")
        await shows(pilot, "GPU:1  dense_1 to dense_1", "With 8 micro-batches, equal stages wait for 11% of a step.")


async def test_tabs_are_changed_by_keys_and_by_the_mouse(engine: FakeEngine) -> None:
    engine.writer.write_diagnostics(LAYERS, 0)
    async with looked_into(engine) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, DiagnosticsScreen)
        for key, wanted in (("2", "pictures"), ("3", "layers"), ("1", "confusion")):
            await pilot.press(key)
            await until(pilot, lambda wanted=wanted: screen.tab == wanted, wanted)  # type: ignore[misc]
        await pilot.click("#layers-tab")
        await shows(pilot, "inner  Sequential")
        await pilot.press("w")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "the run")


async def test_a_tab_can_be_chosen_before_it_is_known_what_tabs_there_are(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.writer.write_diagnostics(examined(), 30)
    read, may_read = diagnostics_screen.read_diagnostics, threading.Event()

    def read_late(directory: Path, before: DiagnosticsReading) -> DiagnosticsReading:
        may_read.wait(120)
        return read(directory, before)

    monkeypatch.setattr(diagnostics_screen, "read_diagnostics", read_late)
    async with StubApp(engine.directory).run_test(size=SMALL) as pilot:
        await shows(pilot, "step 30")
        await pilot.press("w")
        await until(pilot, lambda: isinstance(pilot.app.screen, DiagnosticsScreen), "the screen")
        await pilot.press("4")
        may_read.set()
        await shows(pilot, "highest loss first")


async def test_what_is_new_is_shown_and_a_validation_can_be_asked_for(engine: FakeEngine) -> None:
    async with looked_into(engine) as pilot:
        await shows(pilot, "No validation yet")
        await pilot.press("V")
        await until(
            pilot, lambda: [command.name for command in engine.writer.commands()] == ["validate"], "the command"
        )
        engine.writer.write_diagnostics(examined(), 30)
        await shows(pilot, "accuracy 0.9709 (300 of 309) after step 30")


async def test_what_was_not_kept_is_said(engine: FakeEngine) -> None:
    engine.writer.write_diagnostics(
        ValidationReport(
            (ClassificationReport(examples=10, names=("a", "b"), reason="the matrix has too many classes"),)
        ),
        30,
    )
    engine.end(Outcome.FINISHED)
    async with looked_into(engine) as pilot:
        await shows(pilot, "the matrix has too many classes")
        await pilot.press("2")
        await shows(pilot, "the matrix has too many classes")
        await pilot.press("3")
        await shows(pilot, "This run did not record its layers.")


async def test_without_pictures_the_examples_are_a_list(engine: FakeEngine) -> None:
    found = classification()
    words = "no images: examples of 20 are not images (20 numbers)"
    worst = tuple(replace(each, input=None) for each in found.worst)
    engine.writer.write_diagnostics(ValidationReport((replace(found, worst=worst, reason=words),)), 30)
    async with looked_into(engine) as pilot:
        await pilot.press("4")
        await shows(pilot, words, "✗ 0", "name5 90%")


class StubQuestion:
    """Stands in for the process that validates: it tells how far it is when it is let go on."""

    asked: ClassVar[list[RevalidationRequest]] = []
    goes_on = threading.Event()

    def __init__(self, request: RevalidationRequest) -> None:
        self.asked.append(request)
        self.directory = request.directory
        self.cancelled = threading.Event()

    def __enter__(self) -> "StubQuestion":
        return self

    def __exit__(self, *_: object) -> None: ...

    def result(self, tell: Callable[[ExamplesDone], None], on_doing: Callable[[str], object]) -> Revalidation:
        tell(ExamplesDone(256, 1000))
        while not self.goes_on.wait(0.01):
            if self.cancelled.is_set():
                raise RunError("the engine exited unexpectedly")
        with closing(RunWriter(self.directory)) as writer:
            writer.write_diagnostics(examined(), 300)
        return Revalidation(300, ("the [training] examples have changed",))

    def cancel(self) -> None:
        self.cancelled.set()


@pytest.fixture
def stub_question(monkeypatch: pytest.MonkeyPatch) -> type[StubQuestion]:
    monkeypatch.setattr(StubQuestion, "asked", [])
    monkeypatch.setattr(StubQuestion, "goes_on", threading.Event())
    monkeypatch.setattr(diagnostics_screen, "EngineCall", StubQuestion)
    return StubQuestion


async def test_an_ended_run_is_validated_in_the_background(
    engine: FakeEngine, stub_question: type[StubQuestion]
) -> None:
    engine.train(10).save()
    engine.end(Outcome.FINISHED)
    async with looked_into(engine) as pilot:
        await shows(pilot, "Press V to validate the last checkpoint")
        await pilot.press("V")
        await shows(pilot, "Validating the last checkpoint on the CPU: 256 of 1,000 examples")
        await pilot.press("V", "2", "1")  # once at a time, and the screen does all else meanwhile
        notes = pilot.app._notifications
        await until(pilot, lambda: [each.message for each in notes] == ["A validation is in progress."], "why not")
        stub_question.goes_on.set()
        await shows(pilot, "accuracy 0.9709 (300 of 309) after step 300")
        await hides(pilot, "Validating")
        told = ["A validation is in progress.", "the [training] examples have changed"]
        assert [each.message for each in notes] == told
        assert stub_question.asked == [RevalidationRequest(engine.directory)]
        assert pilot.app.screen.check_action("validate", ())


async def test_leaving_asks_then_ends_what_validates(engine: FakeEngine, stub_question: type[StubQuestion]) -> None:
    engine.train(10).save()
    engine.end(Outcome.FINISHED)
    async with looked_into(engine) as pilot:
        await shows(pilot, "V Validate")
        await pilot.press("V")
        await shows(pilot, "256 of 1,000 examples")
        for key, asked in (("escape", "End the"), ("w", "End the"), ("q", "Quit accel-tui? It ends the")):
            await pilot.press(key)
            await shows(pilot, f"{asked} validation")
            await pilot.press("escape")
        await pilot.press("r")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen), "the runs")
        await pilot.press("q")
        await shows(pilot, "Quit accel-tui? It ends the validation.")
        await pilot.press("escape", "escape", "escape")
        await shows(pilot, "End the validation?")
        await pilot.press("e")
        await until(
            pilot,
            lambda: all(worker.is_finished for worker in pilot.app.workers if worker.group == "revalidate"),
            "its end",
        )


async def test_the_question_is_closed_when_the_validation_has_ended_meanwhile(
    engine: FakeEngine, stub_question: type[StubQuestion]
) -> None:
    engine.train(10).save()
    engine.end(Outcome.FINISHED)
    async with looked_into(engine) as pilot:
        await shows(pilot, "V Validate")
        await pilot.press("V", "escape")
        await shows(pilot, "End the validation?")
        stub_question.goes_on.set()
        await until(pilot, lambda: isinstance(pilot.app.screen, DiagnosticsScreen), "the diagnostics")
        await shows(pilot, "after step 300")


async def test_without_a_checkpoint_there_is_nothing_to_validate(engine: FakeEngine) -> None:
    engine.end(Outcome.FINISHED)
    async with looked_into(engine) as pilot:
        await shows(pilot, "No validation results: the run ended before its first checkpoint.")
        await hides(pilot, "V Validate")
        await hides(pilot, "% Percent")
        assert not pilot.app.screen.check_action("validate", ())
