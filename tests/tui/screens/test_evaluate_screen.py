"""The screen with the evaluation of runs, on what a stand-in for the engine answers."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from accel_engine.errors import RunError
from accel_engine.requests.evaluate import (
    Difference,
    EvaluatedModel,
    Evaluation,
    EvaluationOptions,
    EvaluationRequest,
    Measurement,
    MetricDifference,
)
from accel_engine.requests.protocol.request import ExamplesDone
from accel_tui.app_protocol import Screens
from accel_tui.screens import job
from accel_tui.screens.evaluate_screen import EvaluateScreen
from accel_tui.widgets.jobs.option_form import OptionForm
from accel_tui.widgets.jobs.option_inputs import PathInput
from accel_tui.widgets.plan.picker import Picker
from tui.stand_ins import BareApp, hides, more, shows, text_of, until

FOUND = Evaluation(
    "test",
    2_000,
    tuple(EvaluatedModel(name, 40, {"loss": Measurement(0.5, 0.4, 0.6)}, (), ()) for name in ("k3fp-a", "m8w3-b")),
    (
        Difference(
            "m8w3-b",
            "k3fp-a",
            {
                "loss": MetricDifference(Measurement(-0.1, -0.2, -0.05), 0.002, True),
                "accuracy": MetricDifference(Measurement(0.01, -0.02, 0.03), 0.3, True),
            },
        ),
    ),
)


@pytest.fixture
def query(monkeypatch: pytest.MonkeyPatch) -> Iterator[type]:
    """A stand-in for the engine's evaluation, which waits until it may answer, or is cancelled."""

    class Query(nullcontext[Any]):
        may_answer = Event()
        cancelled = Event()
        problem = ""
        asked: list[EvaluationOptions] = []  # noqa: RUF012 (of one test)

        def __init__(self, request: EvaluationRequest) -> None:
            super().__init__(self)
            self.asked.append(request.options)

        def result(self, on_part: Callable[[ExamplesDone], object], on_doing: Callable[[str], object]) -> Evaluation:
            on_part(ExamplesDone(256, 2_000))
            self.may_answer.wait()
            if self.problem:
                raise RunError(self.problem)
            return FOUND

        def cancel(self) -> None:
            self.cancelled.set()
            self.may_answer.set()

    Query.asked = []
    monkeypatch.setattr(job, "EngineCall", Query)
    yield Query
    Query.may_answer.set()


async def open_evaluation(pilot: Any) -> None:
    pilot.app.open_screen(Screens.EVALUATE, (Path("k3fp-a"), Path("m8w3-b")))
    await until(pilot, lambda: isinstance(pilot.app.screen, EvaluateScreen), "the evaluation")
    await shows(pilot, "256 of 2,000 examples")


@pytest.mark.parametrize("size", [(80, 24), *more((120, 40))])
async def test_metrics_and_differences_are_shown_once_they_are_measured(
    home: Path, query: Any, size: tuple[int, int]
) -> None:
    async with BareApp().run_test(size=size) as pilot:
        await open_evaluation(pilot)
        query.may_answer.set()
        await shows(pilot, "2,000 test examples, on the CPU; 95% confidence", "k3fp-a at step 40", "0.4000 to 0.6000")
        await shows(pilot, "m8w3-b minus k3fp-a", "-0.1000", "-0.2000 to -0.0500", "better", "may be chance", "├─")


async def test_what_keeps_runs_from_being_evaluated_is_said(home: Path, query: Any) -> None:
    query.problem = "k3fp-a and m8w3-b have other test examples"
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_evaluation(pilot)
        query.may_answer.set()
        await shows(pilot, query.problem)


async def test_going_back_ends_the_engine(home: Path, query: Any) -> None:
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_evaluation(pilot)
        await pilot.press("escape")
        await shows(pilot, "End the evaluation?")
        await pilot.press("e")
        await until(pilot, query.cancelled.is_set, "the end of the engine")
        await shows(pilot, "Ended.", "esc Back")
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(pilot.app.screen, EvaluateScreen), "the screen below")


async def test_back_from_the_options_shows_what_was_found_again(home: Path, query: Any) -> None:
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_evaluation(pilot)
        query.may_answer.set()
        await shows(pilot, "k3fp-a at step 40")
        await pilot.press("e")
        await shows(pilot, "resamples", "s Start")
        await pilot.press("escape")
        await shows(pilot, "k3fp-a at step 40", "e Options")
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(pilot.app.screen, EvaluateScreen), "the screen below")


async def open_form(pilot: Any, query: Any) -> OptionForm:
    await open_evaluation(pilot)
    await pilot.press("e")
    await shows(pilot, "End the evaluation?")
    await pilot.press("e")
    await until(pilot, query.cancelled.is_set, "the end of the engine")
    await shows(pilot, "data", "split", "checkpoint", "s Start")
    form: OptionForm = pilot.app.screen.query_one(OptionForm)
    await until(pilot, lambda: pilot.app.focused is form.query_one("#data"), "the first field")
    return form


@pytest.mark.parametrize("size", [(80, 24), *more((200, 50))])
async def test_data_split_and_checkpoint_are_chosen(
    home: Path, query: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tested.csv").write_text("a,b\n1,2\n")
    async with BareApp().run_test(size=size) as pilot:
        form = await open_form(pilot, query)
        form.query_one("#split", Picker).value = "validation"
        form.query_one("#checkpoint", Picker).value = "best"
        await pilot.press(*"tes")
        data = form.query_one("#data", PathInput)
        await until(pilot, lambda: data.value == "tes" and data.check_action("complete", ()), "the suggestion")
        await pilot.press("tab", "enter")
        await shows(pilot, "2,000 test examples, on the CPU; 95% confidence", "may be chance", "e Options")
        assert text_of(pilot).count("may be chance") == 1
    assert query.asked == [
        EvaluationOptions(),
        EvaluationOptions(data="tested.csv", split="validation", checkpoint="best"),
    ]


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        ("split", "some", "'some' must be one of auto, test, validation, training"),
        ("checkpoint", "7", "'7' must be auto, best, last"),
        ("device", "gpu", "'gpu' must be auto, cpu or such as gpu:0"),
    ],
)
async def test_a_choice_that_is_wrong_is_told_in_the_form(
    home: Path, query: Any, field: str, text: str, message: str
) -> None:
    async with BareApp().run_test(size=(80, 24)) as pilot:
        form = await open_form(pilot, query)
        form.query_one(f"#{field}", Picker).value = text
        await pilot.press("enter")
        await shows(pilot, message)
    assert len(query.asked) == 1


async def test_a_gpu_that_is_not_there_is_told_before_the_engine_starts(home: Path, query: Any) -> None:
    async with BareApp().run_test(size=(80, 24)) as pilot:
        form = await open_form(pilot, query)
        form.query_one("#device", Picker).value = "gpu:99"
        await pilot.press("enter")
        await shows(pilot, "no device gpu:99: this machine has cpu", "e Options")
    assert len(query.asked) == 1


async def test_data_that_is_not_there_is_told_before_the_engine_starts(home: Path, query: Any) -> None:
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_form(pilot, query)
        await pilot.press(*"gone.csv", "enter")
        await shows(pilot, "no such file", "s Start")
    assert len(query.asked) == 1


async def test_the_question_is_closed_when_the_evaluation_has_ended_meanwhile(home: Path, query: Any) -> None:
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await open_evaluation(pilot)
        await pilot.press("escape")
        await shows(pilot, "End the evaluation?")
        query.may_answer.set()
        await shows(pilot, "2,000 test examples", "esc Back", "s Again")
        await hides(pilot, "End the evaluation?")
        assert not query.cancelled.is_set()
        await pilot.press("s")
        await until(pilot, lambda: len(query.asked) == 2, "the same evaluation again")
