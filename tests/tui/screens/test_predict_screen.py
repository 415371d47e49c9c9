"""The screen that predicts examples and writes texts, on what a stand-in for the engine answers."""

import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
from textual.geometry import Offset
from textual.selection import Selection

from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.errors import RunError
from accel_engine.image_files import encode_png
from accel_engine.inference.output_prediction import OutputPrediction
from accel_engine.requests.predict import ExamplePredictions, PredictionRequest
from accel_engine.requests.protocol.request import ExamplesDone
from accel_engine.requests.write_text import WritingOptions, WritingRequest, WrittenPart, WrittenText
from accel_engine.run.diagnostics import DataFormat
from accel_tui.app_protocol import Screens
from accel_tui.screens import job, predict_screen
from accel_tui.screens.predict_screen import ExamplePictures, GrowingText, PredictScreen, pictures_of_prediction
from accel_tui.widgets.text_table import TextTable
from tui.fake_engine import FakeEngine
from tui.stand_ins import BareApp, StubApp, hides, more, shows, text_of, until

CLASSES = OutputPrediction(
    "", "classification", ("cat", "dog"), (), np.array([[0.975, 0.025], [0.25, 0.75]], np.float32)
)
FOUND = ExamplePredictions(
    "k3fp-pets",
    40,
    "images",
    (("a.png", "a.png"), ("b.png", "b.png"), ("c.png", "c.png")),
    {1: "b.png is damaged"},
    (CLASSES,),
    notes=("a.png: resized to 8x8",),
)


SPEC = {"shape": [4], "dtype": "float32", "name": ""}


def form(kind: str, task: str = "classification", **more: Any) -> DataFormat:
    return DataFormat(task, task, kind, SPEC, None, ValueRange(), **more)


PETS, REVIEWS = form("images", class_names=("cat", "dog")), form("text", class_names=("bad", "good"))
NOVEL = form("text", "sequence", vocabulary=("a", "b", " "))


class _Question(nullcontext[Any]):
    """A stand-in for a query, which waits until it may answer, or is cancelled."""

    def __init__(self, request: Any) -> None:
        super().__init__(self)
        self.request = request
        self.asked.append(request)
        self.may_start.wait()

    def wait(self) -> None:
        self.may_answer.wait()
        if self.cancelled.is_set():
            raise RunError("the engine exited unexpectedly")
        if self.problem:
            raise RunError(self.problem)

    def cancel(self) -> None:
        self.cancelled.set()
        self.may_answer.set()


@pytest.fixture
def query(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    class Query(_Question):
        may_start, may_answer, cancelled = Event(), Event(), Event()
        problem, found = "", FOUND
        asked: list[Any] = []  # noqa: RUF012 (of one test)

        def result(
            self, on_part: Callable[[object], object], on_doing: Callable[[str], object]
        ) -> ExamplePredictions | WrittenText:
            if isinstance(self.request, PredictionRequest):
                on_doing("predicting")
                on_part(ExamplesDone(1, 3))
                self.wait()
                return self.found
            on_part(WrittenPart("ab "))
            self.wait()
            on_part(WrittenPart("ba"))
            return WrittenText("k3fp-novel", 40, "ab ba", 5, ("the checkpoint of step 50 is damaged",))

    Query.may_start.set()
    monkeypatch.setattr(job, "EngineCall", Query)
    yield Query
    Query.may_start.set()
    Query.may_answer.set()


@pytest.fixture
def run(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEngine]:
    """A run with a checkpoint, and a working directory with two images."""
    place = tmp_path / "here"
    (place / "photos").mkdir(parents=True)
    for name in ("a.png", "b.png"):
        (place / "photos" / name).touch()
    monkeypatch.chdir(place)
    one = FakeEngine().begin().build().train(100)
    one.save()
    one.end()
    yield one
    one.close()


async def open_prediction(pilot: Any, run: FakeEngine, data: DataFormat | None) -> None:
    if data is not None:
        run.writer.write_diagnostics(data, 0)
    pilot.app.open_screen(Screens.PREDICT, run.directory)
    await until(pilot, lambda: isinstance(pilot.app.screen, PredictScreen), "the prediction")
    await shows(pilot, "checkpoint")
    await until(pilot, lambda: pilot.app.focused, "the first field")


@pytest.mark.parametrize("size", [(80, 24), *more((200, 50))])
async def test_classes_have_their_probabilities_and_a_bar(run: FakeEngine, query: Any, size: tuple[int, int]) -> None:
    async with BareApp().run_test(size=size) as pilot:
        await open_prediction(pilot, run, PETS)
        await shows(pilot, "images or folders of images: .png")
        await pilot.press(*"pho")
        await shows(pilot, "photos/")
        await pilot.press("tab", "enter")
        await shows(pilot, "predicting: 1 of 3 examples", "esc End")
        query.may_answer.set()
        await shows(pilot, "k3fp-pets at step 40: 2 of 3 examples predicted", "a.png: resized to 8x8")
        await shows(pilot, "97.5%  ━━━━━━━", "75.0%  ━━━━━━━", "dog 2.5%")
        await shows(pilot, "Not predicted", "b.png is damaged")
        assert isinstance(pilot.app.focused, TextTable)
    asked = query.asked[0]
    directory, files, texts, checkpoint = asked.target, asked.files, asked.texts, asked.checkpoint
    assert (directory, texts, checkpoint) == (run.directory, (), "auto")
    assert files == (Path("photos/a.png"), Path("photos/b.png"))


async def test_texts_are_predicted_without_a_file(run: FakeEngine, query: Any) -> None:
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_prediction(pilot, run, REVIEWS)
        await pilot.press(*"great", "enter")
        await until(pilot, lambda: query.asked, "the request")
    asked = query.asked[0]
    assert (asked.files, asked.texts, asked.checkpoint) == ((), ("great",), "auto")


async def test_each_output_has_a_table_and_long_ones_are_cut(
    run: FakeEngine, query: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predict_screen, "MOST_ROWS", 1)
    prices = OutputPrediction("price", "regression", (), ("euros",), np.array([[12.5], [17.25]], np.float32))
    sizes = OutputPrediction("size", "regression", (), ("metres",), np.array([[0.25], [0.75]], np.float32))
    query.found = ExamplePredictions("k3fp", 40, "arrays", (("x.npz", "1"), ("x.npz", "2")), {}, (prices, sizes))
    Path("x.npz").touch()
    query.may_answer.set()
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_prediction(pilot, run, None)
        await pilot.press(*"x.npz", "enter")
        await shows(pilot, "2 examples on the CPU; the first 1 are shown, W saves all")
        await shows(pilot, "price", "euros", "12.5", "size", "metres", "0.2500")
        await hides(pilot, "17.25")


async def test_forecasts_are_cut_by_their_steps(run: FakeEngine, query: Any) -> None:
    steps = np.arange(60 * 24, dtype=np.float32).reshape(60, 24, 1)
    names = tuple(("x.npz", str(row)) for row in range(60))
    query.found = ExamplePredictions(
        "k3fp", 40, "series", names, {}, (OutputPrediction("", "regression", (), ("load",), steps),)
    )
    Path("x.npz").touch()
    query.may_answer.set()
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_prediction(pilot, run, None)
        await pilot.press(*"x.npz", "enter")
        await shows(pilot, "60 examples on the CPU; the first 41 are shown, W saves all", "step", "load")
        table = pilot.app.screen.query_one(TextTable)
        await until(pilot, lambda: len(table.shown) == 41 * 24, "all rows")
        assert table.shown[40 * 24].texts == ("40", "1", "960")


@pytest.mark.parametrize(
    ("data", "path", "message"),
    [
        (PETS, "", "nothing to predict: give a path"),
        (REVIEWS, "", "nothing to predict: give a path or a text"),
        (PETS, "absent.png", "'absent.png': no such file"),
        (PETS, "rows.csv", "its data is images"),
        (PETS, "empty", "contains no images"),
    ],
)
async def test_mistakes_are_told_before_the_engine_starts(
    run: FakeEngine, query: Any, data: DataFormat, path: str, message: str
) -> None:
    Path("rows.csv").touch()
    Path("empty").mkdir()
    async with BareApp().run_test(size=(120, 40)) as pilot:
        await open_prediction(pilot, run, data)
        pilot.app.screen.query_one("#path").value = path
        await pilot.press("enter")
        await shows(pilot, message)
    assert not query.asked


async def test_a_text_is_shown_as_it_is_written(run: FakeEngine, query: Any) -> None:
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_prediction(pilot, run, NOVEL)
        await pilot.press(*"b a", "enter")
        await shows(pilot, "b aab", "esc End")
        query.may_answer.set()
        await shows(pilot, "b aab ba", "k3fp-novel at step 40, 5 tokens", "step 50 is damaged")
    assert query.asked[0] == WritingRequest(run.directory, WritingOptions(prompt="b a"))


async def test_a_long_text_is_wrapped_and_shown_from_its_end(run: FakeEngine, query: Any) -> None:
    query.may_answer.set()
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_prediction(pilot, run, NOVEL)
        prompt = " ".join(f"word-{number}" for number in range(1_000))
        pilot.app.screen.query_one("#prompt").value = prompt
        await pilot.press("enter")
        await shows(pilot, "word-999ab ba")
        await hides(pilot, "word-100 ")
        text = pilot.app.screen.query_one(GrowingText)
        await pilot.resize_terminal(100, 30)
        await shows(pilot, "word-999ab ba")

        def shows_begin() -> bool:
            text.scroll_home(animate=False)  # again, as a resize scrolls to the end
            return "word-20 word-21 word-22" in text_of(pilot)  # not in the field

        await until(pilot, shows_begin, "the beginning")
        chosen = text.get_selection(Selection(Offset(7, 0), Offset(13, 0)))
        assert chosen == ("word-1", "\n")


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        ("tokens", "0", "'0' must be an integer from 1 to 1000000"),
        ("temperature", "warm", "'warm' must be a number from 0 to 100"),
        ("temperature", "nan", "'nan' must be a number"),
        ("seed", "-1", "'-1' must be an integer of at least 0"),
    ],
)
async def test_how_a_text_is_written_is_checked(
    run: FakeEngine, query: Any, field: str, text: str, message: str
) -> None:
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_prediction(pilot, run, NOVEL)
        pilot.app.screen.query_one(f"#{field}").value = text
        await pilot.press("enter")
        await shows(pilot, message)
    assert not query.asked


async def test_escape_ends_the_prediction_and_then_goes_back(run: FakeEngine, query: Any) -> None:
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_prediction(pilot, run, PETS)
        await pilot.press(*"photos", "enter")
        await shows(pilot, "1 of 3 examples")
        await pilot.press("escape")
        await shows(pilot, "End the prediction?")
        await pilot.press("e")
        await until(pilot, query.cancelled.is_set, "the end of the engine")
        await shows(pilot, "Ended.", "esc Back")
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(pilot.app.screen, PredictScreen), "the screen below")


@pytest.mark.parametrize(("data", "text"), [(PETS, "photos"), (NOVEL, "b a")])
async def test_escape_while_the_engine_starts_ends_the_prediction(
    run: FakeEngine, query: Any, data: DataFormat, text: str
) -> None:
    query.may_start.clear()
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_prediction(pilot, run, data)
        await pilot.press(*text, "enter")
        await until(pilot, lambda: query.asked, "the start")
        await pilot.press("escape")
        if data is PETS:  # a text that is written stays as far as it is
            await shows(pilot, "End the prediction?")
            await pilot.press("e")
        query.may_start.set()
        await shows(pilot, "Ended.", "esc Back")
        await pilot.press("s")
        await until(pilot, lambda: len(query.asked) == 2, "another prediction")


async def test_what_the_engine_says_is_shown(run: FakeEngine, query: Any) -> None:
    query.problem = "the model cannot be restored"
    query.may_answer.set()
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_prediction(pilot, run, PETS)
        await pilot.press(*"photos", "enter")
        await shows(pilot, query.problem)


async def test_predictions_are_saved_and_files_overwritten_after_a_question(run: FakeEngine, query: Any) -> None:
    query.may_answer.set()
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_prediction(pilot, run, PETS)
        await pilot.press(*"photos", "enter")
        await shows(pilot, "W Save")
        await pilot.press("W")
        await shows(pilot, f"{run.directory.name}-predictions.csv", "ctrl+s saves")
        await pilot.press("enter")
        path = Path(f"{run.directory.name}-predictions.csv")
        await until(pilot, path.is_file, "the file")
        assert path.read_text().splitlines()[0] == "example,label,probability cat,probability dog,problem"
        await pilot.press("W")
        field = await _file_field(pilot)
        field.value = "out.txt"
        await shows(pilot, "out.txt must end with .csv, .jsonl, .npz")
        Path("out.jsonl").write_text("before")
        field.value = "out.jsonl"
        await shows(pilot, "ctrl+s saves")
        await pilot.press("enter")
        await shows(pilot, "Overwrite 1 file?", "out.jsonl")
        assert Path("out.jsonl").read_text() == "before"
        await pilot.press("o")
        await until(pilot, lambda: Path("out.jsonl").read_text() != "before", "the file")
    first = json.loads(Path("out.jsonl").read_text().splitlines()[0])
    assert (first["example"], first["label"]) == ("a.png", "cat")


async def test_any_error_of_saving_is_told(run: FakeEngine, query: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("no room")

    monkeypatch.setattr(predict_screen, "write_predictions", fail)
    query.may_answer.set()
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_prediction(pilot, run, PETS)
        await pilot.press(*"photos", "enter")
        await shows(pilot, "W Save")
        await pilot.press("W")
        await shows(pilot, "ctrl+s saves")
        await pilot.press("enter")
        await until(pilot, lambda: pilot.app._notifications, "the reason")
        (told,) = pilot.app._notifications
        assert (told.title, told.message) == ("Not saved", "ValueError: no room")


async def test_names_of_files_that_are_no_text_are_escaped(run: FakeEngine, query: Any) -> None:
    query.found = replace(FOUND, names=(("b\udcff.png", "b\udcff.png"), *FOUND.names[1:]))
    query.may_answer.set()
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_prediction(pilot, run, PETS)
        await pilot.press(*"photos", "enter")
        await shows(pilot, "W Save")
        await pilot.press("W")
        await shows(pilot, "ctrl+s saves")
        await pilot.press("enter")
        path = Path(f"{run.directory.name}-predictions.csv")
        await until(pilot, path.is_file, "the file")
    assert path.read_text().splitlines()[1].startswith(r"b\udcff.png,cat,")


async def _file_field(pilot: Any) -> Any:
    await shows(pilot, "Save predictions")
    return pilot.app.screen.query_one("#output")


@pytest.mark.parametrize("place", ["Runs", "Run"])
async def test_a_key_opens_it(run: FakeEngine, query: Any, place: str) -> None:
    async with StubApp(run.directory if place == "Run" else None).run_test(size=(120, 40)) as pilot:
        if place == "Runs":
            await pilot.press("r")
        await shows(pilot, "finished" if place == "Runs" else "Finished")
        await pilot.press("P")
        await until(pilot, lambda: isinstance(pilot.app.screen, PredictScreen), "the prediction")
        await shows(pilot, "examples")


def png(path: Path, height: int, width: int, colour: tuple[int, int, int]) -> str:
    path.write_bytes(encode_png(np.full((height, width, 3), colour, np.uint8)))
    return str(path)


def test_an_image_has_its_picture_and_a_mask_the_one_that_was_predicted(tmp_path: Path) -> None:
    file = png(tmp_path / "large.png", 600, 1200, (250, 10, 10))
    missing = str(tmp_path / "gone.png")
    mask = np.array([[[0, 1], [1, 1]]] * 2, np.int64)
    found = replace(
        FOUND,
        names=((missing, missing), (file, file), ("x.npz", "0")),
        problems={},
        outputs=(OutputPrediction("", "segmentation", ("ground", "cat"), (), np.concatenate([mask, mask[:1]])),),
    )
    of_missing, of_file, of_array = (list(pictures_of_prediction(found, row)) for row in range(3))
    image, predicted = of_file
    assert (image.title, image.pixels.shape, image.is_mask) == ("large.png", (256, 512, 3), False)
    assert image.pixels[0, 0].tolist() == [250, 10, 10]
    assert predicted.is_mask
    assert (predicted.pixels.any(axis=2) == mask[0]).all(), "the first class is black"
    assert [each.title for each in of_missing] == [each.title for each in of_array] == ["prediction"]


async def test_the_picture_of_the_current_example_is_beside_its_prediction(
    run: FakeEngine, query: Any, tmp_path: Path
) -> None:
    red, blue = (png(tmp_path / name, 8, 8, rgb) for name, rgb in (("r.png", (200, 0, 0)), ("b.png", (0, 0, 200))))
    query.found = replace(FOUND, names=((red, red), (missing := "c.png", missing), (blue, blue)))
    async with StubApp().run_test(size=(80, 24)) as pilot:
        await open_prediction(pilot, run, PETS)
        query.may_answer.set()
        await pilot.press(*"photos/", "enter")
        shown = pilot.app.screen.query_one(ExamplePictures)
        await until(pilot, lambda: [each.title for each in shown.pictures] == ["r.png"], "the picture")
        await shows(pilot, "r.png   ", "▀▀▀▀▀")
        await pilot.press("down")
        await until(pilot, lambda: [each.title for each in shown.pictures] == ["b.png"], "the other one")
        assert shown.pictures[0].pixels[0, 0].tolist() == [0, 0, 200]
