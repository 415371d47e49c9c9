"""The screen that exports trained models, on what a stand-in for the engine answers."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from accel_engine.errors import RunError, UsageError
from accel_engine.formats import Precision, savedmodel_format
from accel_engine.model_export import export_options
from accel_engine.model_export.export_options import FORMATS
from accel_engine.requests.export_model import Export, ExportRequest, ExportTarget, MeasuredModel, WritingFormat
from accel_engine.requests.protocol.request import ExamplesDone
from accel_tui.app_protocol import Screens
from accel_tui.screens import job
from accel_tui.screens.asking import QuestionScreen
from accel_tui.screens.export_screen import ExportScreen
from accel_tui.widgets.jobs.option_inputs import Checklist
from tui.fake_engine import FakeEngine
from tui.stand_ins import BareApp, StubApp, hides, more, shows, text_of, until

METRICS = {"loss": 0.25, "accuracy": 0.9}
ORIGINAL = MeasuredModel(
    "trained model", METRICS, 0.0, 0.0, 40_000, 0.002, {"inputs": "uint8 8x8x1"}, {"label": "string"}
)
PROBLEM = "the mean difference of the outputs, 0.16, is beyond the tolerance of 0.05"


def measured(target: ExportTarget) -> MeasuredModel:
    """All formats are within the tolerance but int8; float16 is the fastest."""
    latency = 0.0005 if target.quantize == "float16" else 0.001
    problem = PROBLEM if target.quantize == "int8" else ""
    return MeasuredModel(
        target.name, METRICS, 0.02, 0.01, 12_345, latency, ORIGINAL.inputs, ORIGINAL.outputs, target.path, problem
    )


@pytest.fixture
def query(monkeypatch: pytest.MonkeyPatch) -> Iterator[type]:
    """A stand-in for the engine's export, which waits before what is told in parts, and before the answer."""

    class Query(nullcontext[Any]):
        may_compare = Event()
        may_answer = Event()
        cancelled = Event()
        problem = ""
        asked: list[tuple[tuple[ExportTarget, ...], Path, str, float | None]] = []  # noqa: RUF012 (of one test)

        def __init__(self, request: ExportRequest) -> None:
            super().__init__(self)
            self.asked.append((request.targets, request.folder, request.checkpoint, request.target_latency))

        def result(self, on_part: Callable[[object], object], on_doing: Callable[[str], object]) -> Export:
            targets = self.asked[-1][0]
            on_part(WritingFormat(targets[0].name))
            self.may_compare.wait()
            for target in targets[1:]:
                on_part(WritingFormat(target.name))
            on_part(ExamplesDone(128, 360))
            models = tuple(map(measured, targets))
            for model in (ORIGINAL, models[0]):
                on_part(model)
            self.may_answer.wait()
            if self.problem or self.cancelled.is_set():
                raise RunError(self.problem or "the engine exited unexpectedly")
            return Export("k3fp-digits", 40, "test", 360, ("a note",), ORIGINAL, models)

        def cancel(self) -> None:
            self.cancelled.set()
            self.may_compare.set()
            self.may_answer.set()

    Query.asked = []
    monkeypatch.setattr(job, "EngineCall", Query)
    yield Query
    Query.may_compare.set()
    Query.may_answer.set()


@pytest.fixture
def run(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEngine]:
    """A run with a checkpoint, and an empty working directory."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    one = FakeEngine().begin().build().train(100)
    one.save()
    one.end()
    yield one
    one.close()


async def open_export(pilot: Any, run: FakeEngine) -> None:
    pilot.app.open_screen(Screens.EXPORT, run.directory)
    await until(pilot, lambda: isinstance(pilot.app.screen, ExportScreen), "the export")
    await shows(pilot, "formats", "tflite-int8", "by format")


@pytest.mark.parametrize("size", [(80, 24), *more((200, 50))])
async def test_each_format_appears_when_it_was_compared_and_the_fastest_is_marked(
    run: FakeEngine, query: Any, size: tuple[int, int]
) -> None:
    async with BareApp().run_test(size=size) as pilot:
        await open_export(pilot, run)
        await pilot.press("s")
        await shows(pilot, "writing keras", "waiting")
        query.may_compare.set()
        await shows(pilot, "measuring the latency of savedmodel", "2.00 ms", "39.1 KiB", "written")
        query.may_answer.set()
        await shows(pilot, "k3fp-digits at step 40, verified on 360 test examples", "a note", "0.50 ms", "fastest")
        await shows(pilot, "Not written", f"tflite-int8: {PROBLEM}"[:60], "signature", "uint8 8x8x1")
        await pilot.resize_terminal(160, 40)
        await shows(pilot, "tolerance used", "━━")
        pilot.app.screen.query_one("#result").scroll_end(animate=False)
        await shows(pilot, "Written to", f"{run.directory.name}-float16.tflite")
        assert f"{run.directory.name}-int8.tflite" not in text_of(pilot)
    targets, folder, checkpoint, latency = query.asked[0]
    assert len(targets) == len(FORMATS)
    assert {Path(target.path).parent for target in targets if target.format != "savedmodel"} == {
        Path.cwd() / f"{run.directory.name}-models"
    }
    assert (folder, checkpoint, latency) == (Path.cwd(), "auto", None)


async def test_formats_folder_checkpoint_and_tolerance_are_chosen(run: FakeEngine, query: Any) -> None:
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_export(pilot, run)
        await pilot.press("space")
        assert "keras" not in pilot.app.screen.query_one(Checklist).value.split(",")
        fields = {"#checkpoint Input": "last", "#output": "served", "#tolerance": "0.5", "#target_latency": "20ms"}
        for name, text in fields.items():
            field = pilot.app.screen.query_one(name)
            field.focus()
            field.value = text
        await pilot.pause()
        await pilot.press("enter")
        await until(pilot, lambda: query.asked, "the request")
    targets, _, checkpoint, latency = query.asked[0]
    assert [target.name for target in targets][:2] == ["savedmodel", "onnx"]
    assert {target.tolerance for target in targets} == {0.5}
    assert targets[1].path == str(Path.cwd() / "served" / f"{run.directory.name}.onnx")
    assert (checkpoint, latency) == ("last", 0.02)


async def test_a_latency_is_asked_for_with_a_savedmodel_only(run: FakeEngine, query: Any) -> None:
    async with BareApp().run_test(size=(120, 40)) as pilot:
        await open_export(pilot, run)
        await shows(pilot, "latency", "of a request to TensorFlow Serving at most, such as 20ms")
        pilot.app.screen.query_one("#target_latency").value = "20"
        await pilot.press("down", "space")
        await hides(pilot, "20ms")
        await pilot.press("s")
        await until(pilot, lambda: query.asked, "the request")
    assert query.asked[0][3] is None


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        ("#tolerance", "little", "'little' must be a number of at least 0"),
        pytest.param("#tolerance", "-1", "'-1' must be a number of at least 0", marks=pytest.mark.campaign),
        ("#checkpoint Input", "7", "'7' must be auto, best, last or a step of 100"),
        pytest.param(
            "#target_latency", "20", "'20' is not a latency: give one with its unit", marks=pytest.mark.campaign
        ),
        ("#output", "", "give a folder"),
        ("#output", "taken", "taken is a file"),
    ],
)
async def test_mistakes_are_told_before_the_engine_starts(
    run: FakeEngine, query: Any, field: str, text: str, message: str
) -> None:
    Path("taken").touch()
    async with BareApp().run_test(size=(120, 40)) as pilot:
        await open_export(pilot, run)
        pilot.app.screen.query_one(field).value = text
        await pilot.press("s")
        await shows(pilot, message)
    assert not query.asked


async def test_a_format_whose_library_is_missing_says_how_to_install_it(
    run: FakeEngine, query: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hint = "onnx missing: pip install 'accel-tui[onnx]'"
    missing = property(lambda precision: hint if precision.extra == "onnx" else "")
    monkeypatch.setattr(Precision, "missing", missing)
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_export(pilot, run)
        await shows(pilot, f"[ ] {'onnx':{len('tflite-int8-weights')}}  {hint}")
        await pilot.press("s")
        await until(pilot, lambda: query.asked, "the request")
    assert "onnx" not in [target.name for target in query.asked[0][0]]


async def test_the_form_reads_no_directory_and_the_choice_only_that_of_a_chosen_savedmodel(
    run: FakeEngine, query: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def names(directory: Path) -> list[str]:
        raise UsageError(f"cannot read {directory.name}: Permission denied")

    monkeypatch.setattr(savedmodel_format, "_names", names)
    async with BareApp().run_test(size=(120, 40)) as pilot:
        await open_export(pilot, run)
        await pilot.press("s")
        await shows(pilot, f"cannot read {run.directory.name}-savedmodel: Permission denied")
        await pilot.press("down", "space", "s")
        await until(pilot, lambda: query.asked, "the request")
    assert "savedmodel" not in [target.name for target in query.asked[0][0]]


async def test_files_that_are_there_are_overwritten_after_a_question(run: FakeEngine, query: Any) -> None:
    folder = Path(f"{run.directory.name}-models")
    folder.mkdir()
    (folder / f"{run.directory.name}.onnx").touch()
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_export(pilot, run)
        await pilot.press("s")
        await shows(pilot, "Overwrite 1 file?", f"{run.directory.name}.onnx")
        await pilot.press("escape")
        await hides(pilot, "Overwrite 1 file?")
        assert not query.asked
        await pilot.press("s")
        await until(pilot, lambda: isinstance(pilot.app.screen, QuestionScreen), "the question")
        await pilot.press("o")
        await shows(pilot, "writing keras")
    assert query.asked


async def test_a_question_that_would_come_late_is_not_asked_over_another_screen(
    run: FakeEngine, query: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end, existing_folder = Event(), export_options.existing_folder
    monkeypatch.setattr(export_options, "existing_folder", lambda folder: may_end.wait() and existing_folder(folder))
    folder = Path(f"{run.directory.name}-models")
    folder.mkdir()
    (folder / f"{run.directory.name}.onnx").touch()
    async with BareApp().run_test(size=(80, 24), notifications=True) as pilot:
        await open_export(pilot, run)
        export = pilot.app.screen
        await pilot.press("s", "r")
        await until(pilot, lambda: pilot.app.screen is not export, "the list of runs")
        shown = pilot.app.screen
        may_end.set()
        await shows(pilot, "There is a question first")
        assert pilot.app.screen is shown
        await pilot.press("escape", "s")
        await shows(pilot, "Overwrite 1 file?")
    assert not query.asked


@pytest.mark.parametrize("is_there", [False, True])
async def test_a_key_that_is_pressed_twice_starts_one_export(
    run: FakeEngine, query: Any, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    begun, may_end = list[Path](), Event()  # the check is not done before the second press

    def existing_folder(folder: Path) -> Path:
        begun.append(folder)
        may_end.wait()
        return Path.cwd()

    monkeypatch.setattr(export_options, "existing_folder", existing_folder)
    if is_there:
        folder = Path(f"{run.directory.name}-models")
        folder.mkdir()
        (folder / f"{run.directory.name}.onnx").touch()
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_export(pilot, run)
        await pilot.press("s")
        await until(pilot, lambda: begun, "the check")
        await pilot.press("s")
        may_end.set()
        if is_there:
            await shows(pilot, "Overwrite 1 file?")
            await pilot.press("o")
        query.may_compare.set()
        query.may_answer.set()
        await shows(pilot, "verified on 360 test examples")
        assert len(query.asked) == 1
        assert isinstance(pilot.app.screen, ExportScreen)


async def test_escape_ends_the_engine_and_says_what_was_written(run: FakeEngine, query: Any) -> None:
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_export(pilot, run)
        await pilot.press("s")
        query.may_compare.set()
        await shows(pilot, "measuring the latency of savedmodel")
        await pilot.press("escape")
        await shows(pilot, "End the export?", "What is written already stays.")
        await pilot.press("e")
        await until(pilot, query.cancelled.is_set, "the end of the engine")
        await shows(pilot, "Ended. written before: keras", "esc Back")
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(pilot.app.screen, ExportScreen), "the screen below")


async def test_a_run_that_trains_meanwhile_is_named(run: FakeEngine, query: Any) -> None:
    other = FakeEngine().begin().build()
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_export(pilot, run)
        await pilot.press("s")
        await shows(pilot, "writing keras")
        (told,) = pilot.app._notifications
        assert told.message.startswith(f"run {other.directory.name} is training on cpu:0: the machine is not idle")
        assert told.message.endswith("; stop the run before")
    other.close()


async def test_what_the_engine_says_is_shown_and_options_lead_back(run: FakeEngine, query: Any) -> None:
    query.problem = "the model cannot be restored"
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_export(pilot, run)
        await pilot.press("s")
        query.may_compare.set()
        query.may_answer.set()
        await shows(pilot, query.problem, "e Options")
        await pilot.press("e")
        await shows(pilot, "formats", "s Start")


async def test_a_run_without_a_checkpoint_is_not_exported(home: Path, query: Any) -> None:
    engine = FakeEngine().begin().build().train(10)
    async with StubApp(engine.directory).run_test(size=(120, 40)) as pilot:
        await shows(pilot, "training")
        await pilot.press("E")
        assert not isinstance(pilot.app.screen, ExportScreen)
        engine.save()
        await until(pilot, lambda: pilot.app.screen.check_action("export", ()), "the model")
        await pilot.press("E")
        await until(pilot, lambda: isinstance(pilot.app.screen, ExportScreen), "the screen")
    engine.close()


@pytest.mark.parametrize("place", ["Runs", "Run"])
async def test_a_key_opens_it(run: FakeEngine, query: Any, place: str) -> None:
    async with StubApp(run.directory if place == "Run" else None).run_test(size=(120, 40)) as pilot:
        if place == "Runs":
            await pilot.press("r")
        await shows(pilot, "finished" if place == "Runs" else "Finished")
        await pilot.press("E")
        await until(pilot, lambda: isinstance(pilot.app.screen, ExportScreen), "the export")


async def test_tab_completes_the_folder_and_then_goes_to_the_next_field(run: FakeEngine, query: Any) -> None:
    Path("serving").mkdir()
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_export(pilot, run)
        folder = pilot.app.screen.query_one("#output")
        folder.focus()
        folder.value = ""
        await pilot.press(*"serv")
        await shows(pilot, "serving")
        await pilot.press("tab")
        assert (folder.value, pilot.app.focused) == ("serving/", folder)
        await pilot.press("tab")
        assert pilot.app.focused is pilot.app.screen.query_one("#tolerance")
