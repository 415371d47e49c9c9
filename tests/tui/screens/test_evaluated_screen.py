"""The diagnostics of evaluated examples, on what a stand-in for the engine answers."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from accel_engine.errors import RunError
from accel_engine.requests.diagnose import Diagnosis, DiagnosisRequest
from accel_engine.requests.evaluate import EvaluatedModel, Evaluation, EvaluationOptions, EvaluationRequest, Measurement
from accel_engine.requests.protocol.request import ExamplesDone
from accel_engine.run.diagnostics import Layer, LayerTable, ValidationReport, read
from accel_tui.app_protocol import Screens
from accel_tui.screens import diagnostics_screen, evaluate_screen, job
from accel_tui.screens.asking import QuestionScreen
from accel_tui.screens.evaluate_screen import EvaluatedScreen, EvaluateScreen
from tui.example_reports import binary
from tui.fake_engine import FakeEngine
from tui.stand_ins import BareApp, hides, more, shows, text_of, until


@pytest.fixture
def query(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A stand-in for the engine's report, which waits until it may answer, or is cancelled."""

    class Query(nullcontext[Any]):
        may_answer, cancelled = Event(), Event()
        problem, error = "", RunError
        asked: list[tuple[Path, EvaluationOptions]] = []  # noqa: RUF012 (of one test)

        def __init__(self, request: DiagnosisRequest) -> None:
            super().__init__(self)
            self.asked.append((request.directory, request.options))

        def result(self, on_part: Callable[[ExamplesDone], object], on_doing: Callable[[str], object]) -> Diagnosis:
            on_part(ExamplesDone(256, 1_000))
            self.may_answer.wait()
            if self.problem:
                raise self.error(self.problem)
            report = ValidationReport((binary(),))
            return Diagnosis.of("test", 40, report, ("the checkpoint of step 50 is damaged",))

        def cancel(self) -> None:
            self.cancelled.set()
            self.may_answer.set()

    class Evaluated(nullcontext[Any]):
        def __init__(self, request: EvaluationRequest) -> None:
            super().__init__(self)
            self._names = [each.path.name for each in request.models]

        def result(self, on_part: Callable[[ExamplesDone], object], on_doing: Callable[[str], object]) -> Evaluation:
            metrics = {"loss": Measurement(0.5, 0.4, 0.6)}
            models = tuple(EvaluatedModel(name, 40, metrics, (), ()) for name in self._names)
            return Evaluation("test", 1_000, models, ())

        def cancel(self) -> None: ...

    monkeypatch.setattr(evaluate_screen, "EngineCall", Query)
    monkeypatch.setattr(job, "EngineCall", Evaluated)
    yield Query
    Query.may_answer.set()


@pytest.fixture
def runs(home: Path) -> Iterator[list[FakeEngine]]:
    """Runs that have stored their layers, but no validation."""
    made = [FakeEngine().begin().build().train(10) for _ in range(2)]
    for engine in made:
        engine.writer.write_diagnostics(LayerTable((Layer("dense", "Dense", 0, (10,), 1500, 1500, 1e6),), 1e6), 0)
        engine.save()
        engine.end()
    yield made
    for engine in made:
        engine.close()


async def open_evaluation(pilot: Any, *runs: FakeEngine) -> None:
    pilot.app.open_screen(Screens.EVALUATE, [run.directory for run in runs])
    await until(pilot, lambda: isinstance(pilot.app.screen, EvaluateScreen), "the evaluation")
    await shows(pilot, "1,000 test examples", "w Diagnostics")


@pytest.mark.parametrize("size", [(80, 24), *more((200, 50))])
async def test_the_evaluated_examples_are_reported(
    runs: list[FakeEngine], query: Any, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    polled: list[Path] = []  # a reading of what the run has stored would replace the report
    monkeypatch.setattr(diagnostics_screen, "read_diagnostics", lambda directory, _: polled.append(directory))
    async with BareApp().run_test(size=size) as pilot:
        await open_evaluation(pilot, runs[0])
        await pilot.press("w")
        await shows(pilot, "Predicting on the CPU: 256 of 1,000 examples")
        query.may_answer.set()
        await shows(pilot, "(890 of 1,000)")
        assert ", evaluated" in text_of(pilot)
        assert "Predicting" not in text_of(pilot)
        assert "V Validate" not in text_of(pilot)
        await until(pilot, lambda: pilot.app._notifications, "the note")
        assert [each.message for each in pilot.app._notifications] == ["the checkpoint of step 50 is damaged"]
        await pilot.press("5")
        await shows(pilot, "1,500 parameters")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, EvaluateScreen), "the evaluation")
    assert query.asked == [(runs[0].directory, EvaluationOptions(checkpoint="40"))]
    assert not polled
    assert read(runs[0].directory).validation is None


async def test_of_several_runs_one_is_asked_for(runs: list[FakeEngine], query: Any) -> None:
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_evaluation(pilot, *runs)
        await pilot.press("w")
        await until(pilot, lambda: isinstance(pilot.app.screen, QuestionScreen), "the question")
        await shows(pilot, "Diagnostics of which run?", runs[1].directory.name)
        await pilot.press("2")
        await shows(pilot, "256 of 1,000")
    assert query.asked == [(runs[1].directory, EvaluationOptions(checkpoint="40"))]


@pytest.mark.parametrize(("error", "lead"), [(RunError, ""), (KeyError, "KeyError: ")])
async def test_why_there_is_no_report_is_shown(
    runs: list[FakeEngine], query: Any, error: type[Exception], lead: str
) -> None:
    query.problem, query.error = "the examples have changed", error
    query.may_answer.set()
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_evaluation(pilot, runs[0])
        await pilot.press("w")
        await until(pilot, lambda: query.problem in text_of(pilot) and lead in text_of(pilot), "the reason")
        await hides(pilot, "Predicting")


async def test_going_back_asks_then_ends_the_engine(runs: list[FakeEngine], query: Any) -> None:
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_evaluation(pilot, runs[0])
        await pilot.press("w")
        await shows(pilot, "256 of 1,000")
        await pilot.press("escape")
        await shows(pilot, "End the prediction?")
        await pilot.press("e")
        await until(pilot, query.cancelled.is_set, "the end of the engine")
        assert not isinstance(pilot.app.screen, EvaluatedScreen)


async def test_quit_asks_then_quits(runs: list[FakeEngine], query: Any) -> None:
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_evaluation(pilot, runs[0])
        await pilot.press("w")
        await shows(pilot, "256 of 1,000")
        await pilot.press("q")
        await shows(pilot, "Quit accel-tui? It ends the prediction.")
        await pilot.press("e")
        await until(pilot, lambda: not pilot.app.is_running or pilot.app._exit, "the end")
