"""The advice on a run: its lines above the charts, and its screen, on findings and trials of stand-ins."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Label

from accel_engine.advice import Cure, Finding
from accel_engine.advice.cures import apply_cure
from accel_engine.advice.cures.apply_cure import AppliedCure, Method
from accel_engine.advice.cures.cure_task import Quantity
from accel_engine.errors import RunError
from accel_engine.events import CURE, UNDO, Outcome, PlanChanged
from accel_engine.race import cure_race
from accel_engine.race.configuration import ConfigurationState, LearnedValue
from accel_engine.race.cure_race import CureProgress, CureRace
from accel_engine.run.directory.run_paths import LOG
from accel_tui.run_state import advice
from accel_tui.run_state.marks import MarkKind
from accel_tui.run_state.step_window import StepWindow
from accel_tui.screens.advice_screen import AdviceScreen
from accel_tui.screens.new_run_screen import NewRunScreen
from accel_tui.screens.run_screen import RunScreen
from accel_tui.widgets.advice_lists import EvidenceChart, FindingList
from accel_tui.widgets.chart.chart import Chart
from accel_tui.widgets.chart_panels.run_charts import RunCharts
from accel_tui.widgets.run.run_lines import AdviceLines
from tui.fake_engine import FakeEngine
from tui.fake_script import FakeScript
from tui.stand_in_findings import MEMORY, POOR, SLOW, fail, find, raced
from tui.stand_ins import BareApp, StubApp, hides, more, shows, text_of, until

pytestmark = pytest.mark.usefixtures("hurried")

SMALL, WIDE = (80, 24), (120, 40)


RESULT = raced((6300.0, 6400.0, 6500.0) * 3, (8610.0, 9120.0, 9700.0) * 3, xla="on")
SLOWER = raced((6400.0,) * 9, (6300.0,) * 9, xla="on")
WITHOUT, CURED = RESULT.results
MEMORY_RACE = replace(
    RESULT,
    quantity=Quantity.MEMORY,
    results=(
        replace(WITHOUT, state=ConfigurationState.FAILED, reason="out of memory", memory=None),
        replace(CURED, memory=3.2 * 2**30),
    ),
)
LEARNING = replace(
    RESULT,
    quantity=Quantity.LEARNING,
    results=(
        replace(WITHOUT, examples_per_second=None, learned=LearnedValue("validation loss", 1.1)),
        replace(CURED, examples_per_second=None, learned=LearnedValue("validation loss", 0.6, (0.55, 0.65))),
    ),
)


@dataclass
class Engine:
    """Stands in for what tries, applies and takes back cures, which waits until it may end, or is stopped."""

    result: CureRace = RESULT
    problem: str = ""
    may_end: Event = field(default_factory=Event)
    asked: list[Mapping[str, Any]] = field(default_factory=list)
    applied: list[Mapping[str, Any]] = field(default_factory=list)
    purposes: list[str] = field(default_factory=list)
    undone: list[Path] = field(default_factory=list)

    def try_cure(
        self,
        _: Path,
        changes: Mapping[str, Any],
        on_progress: Callable[[CureProgress], None],
        *,
        should_stop: Callable[[], bool],
        quantity: Quantity,
    ) -> CureRace:
        self.asked.append(changes)
        self.purposes.append(quantity)
        on_progress(CureProgress(8.0, 20.0, "taking turns"))
        self._wait(should_stop)
        return self.result

    def apply(self, _: Path, changes: Mapping[str, Any], *, finding: str) -> AppliedCure:
        self.applied.append(changes)
        self.purposes.append(finding)
        self._wait(lambda: False)
        text = "the learning rate is 0.0001 from step 150 on"
        return AppliedCure(Method.COMMAND, changes, {}, text)

    def undo(self, directory: Path) -> AppliedCure:
        self.undone.append(directory)
        self._wait(lambda: False)
        return AppliedCure(Method.COMMAND, {}, {}, "the learning rate is 0.001 again")

    def _wait(self, should_stop: Callable[[], bool]) -> None:
        while not self.may_end.wait(0.01):
            if should_stop():
                raise RunError("cancelled")
        if self.problem:
            raise RunError(self.problem)


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> Engine:
    engine = Engine()
    monkeypatch.setattr(cure_race, "try_cure", engine.try_cure)
    monkeypatch.setattr(apply_cure, "apply", engine.apply)
    monkeypatch.setattr(apply_cure, "undo", engine.undo)
    return engine


@pytest.fixture
def run(engine: FakeEngine) -> FakeEngine:
    engine.train(100)
    engine.end_epoch()
    engine.train(50)
    return engine


@asynccontextmanager
async def opened(directory: Path, size: tuple[int, int] = WIDE, sees: str = "Looked at") -> AsyncIterator[Pilot[None]]:
    """The Advice screen, above the run's."""
    async with StubApp(directory).run_test(size=size, notifications=True) as pilot:
        await shows(pilot, "validation")
        await pilot.press("A")
        await shows(pilot, "Advice  ", sees)
        yield pilot


def selected(pilot: Pilot[None]) -> Finding | None:
    return pilot.app.screen.query_one(FindingList).selected


@pytest.mark.parametrize("size", [SMALL, *more(WIDE, (200, 50))])
async def test_the_two_that_matter_most_have_a_line_each_and_a_mark(
    run: FakeEngine, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    find(monkeypatch, MEMORY, SLOW, POOR)
    async with StubApp(run.directory).run_test(size=size) as pilot:
        await shows(pilot, "⚑ The loss rises", "⚑ Training waits for input", "A all 3")
        assert MEMORY.title not in text_of(pilot)
        charts = pilot.app.screen.query_one(RunCharts)
        shown = [chart for chart in charts.query(Chart) if chart.display]
        assert len(shown) >= 2
        assert all(chart.marks[MarkKind.ADVICE].steps == (40, 90) for chart in shown)


async def test_nothing_is_said_of_a_healthy_run_and_marks_go_with_findings(
    run: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advice, "PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(advice, "PAUSE_FACTOR", 0.0)
    find(monkeypatch, SLOW)
    async with StubApp(run.directory).run_test(size=SMALL) as pilot:
        await shows(pilot, "⚑ Training waits for input")
        charts = pilot.app.screen.query_one(RunCharts)
        place = charts.region
        find(monkeypatch)
        await hides(pilot, "⚑")
        await shows(pilot, "no advice at present")
        assert charts.region == place  # what comes and goes moves nothing
        assert all(MarkKind.ADVICE not in chart.marks for chart in pilot.app.screen.query(Chart) if chart.display)


async def test_a_run_is_read_again_once_it_has_ended(run: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    find(monkeypatch)
    async with StubApp(run.directory).run_test(size=SMALL) as pilot:
        await shows(pilot, "validation")
        find(monkeypatch, POOR)
        run.end()
        await shows(pilot, "Finished", "⚑ The loss rises")


@pytest.mark.parametrize(("size", "shown"), [(SMALL, False), (WIDE, True)])
async def test_lines_leave_the_log_its_room_where_a_run_has_nothing_else_to_show(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], *, shown: bool
) -> None:
    find(monkeypatch, MEMORY)
    (engine.directory / LOG).write_text("TensorFlow has spoken\n")
    engine.end(Outcome.FAILED, "out of memory")
    async with StubApp(engine.directory).run_test(size=size) as pilot:
        lines = pilot.app.screen.query_one(AdviceLines)
        await until(pilot, lambda: lines.findings, "the advice")
        await shows(pilot, "TensorFlow has spoken")
        assert lines.display is shown


async def test_a_click_on_a_line_opens_the_screen(run: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    find(monkeypatch, SLOW)
    async with StubApp(run.directory).run_test(size=SMALL) as pilot:
        await shows(pilot, "⚑ Training waits for input")
        await pilot.click(AdviceLines)
        await until(pilot, lambda: isinstance(pilot.app.screen, AdviceScreen), "the Advice screen")


@pytest.mark.parametrize("size", [SMALL, WIDE])
async def test_the_selected_finding_shows_what_it_follows_from_and_its_cures(
    run: FakeEngine, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    find(monkeypatch, SLOW, POOR, MEMORY)
    async with opened(run.directory, size, "It fell to 0.41") as pilot:
        assert text_of(pilot).index("Learns badly") < text_of(pilot).index("Slow") < text_of(pilot).index("Memory")
        await shows(pilot, "(steps 90 to 149)", "all that was learned", "--learning-rate 0.0001")
        await pilot.press("down")
        await shows(pilot, "42% of the time", "The processors are 97% busy", "certain", "--xla on")
        assert pilot.app.screen.query_one(EvidenceChart).display is (size == WIDE)
        await pilot.press("down")
        await shows(pilot, "15.2 of 16.0 GiB", "possible")
        assert not pilot.app.screen.query_one(EvidenceChart).display  # no series shows it


async def test_the_selection_stays_when_others_are_found(run: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice, "PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(advice, "PAUSE_FACTOR", 0.0)
    find(monkeypatch, SLOW, MEMORY)
    async with opened(run.directory, sees="The memory of") as pilot:
        await pilot.press("down")
        assert selected(pilot) == MEMORY
        find(monkeypatch, POOR, SLOW, MEMORY, replace(MEMORY, title="The memory of another GPU is full"))
        await shows(pilot, "The loss rises", "another GPU")
        assert selected(pilot) == MEMORY
        await pilot.press("escape", "A")
        await shows(pilot, "15.2 of 16.0 GiB")


async def test_a_healthy_run_has_plain_words(run: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    find(monkeypatch)
    async with opened(run.directory) as pilot:
        await shows(pilot, "Looked at 150 steps, 1 epoch, 1 validation.", "Nothing found", "Not judged")
        assert not {"Try", "Apply", "Copy", "Cures"} & set(text_of(pilot).split())


async def test_a_rule_that_fails_is_named_beside_what_the_others_find(
    run: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(monkeypatch, SLOW)
    async with opened(run.directory, sees="Internal error: 1 rule failed: failing") as pilot:
        assert selected(pilot) == SLOW


async def test_a_reading_that_fails_ends(run: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(directory: Path) -> None:
        raise ZeroDivisionError(directory.name)

    monkeypatch.setattr(advice, "read_advice", read)
    async with opened(run.directory, sees="Internal error: ZeroDivisionError"):
        pass


async def test_a_cure_is_tried_and_the_measured_gain_replaces_the_expected_one(
    run: FakeEngine, monkeypatch: pytest.MonkeyPatch, trials: Engine
) -> None:
    find(monkeypatch, SLOW)
    async with opened(run.directory, sees="expected: 1.7 times") as pilot:
        await pilot.press("T")
        await shows(pilot, "trying ━━━━━━━━──", "40%  taking turns")
        await pilot.press("T")
        assert trials.asked == [{"xla": "on"}]
        assert trials.purposes == [Quantity.SPEED]
        trials.may_end.set()
        await shows(pilot, "configuration", "examples/s", "speed", "memory")
        await shows(pilot, "this plan", "6.40k", "the cure", "9.12k", "1.43x", "9 rounds in turns")
        await shows(pilot, "✓ The fastest is the cure, 1.43 times as fast")
        assert "expected: 1.7" not in text_of(pilot)
        await pilot.press("escape", "A")
        await shows(pilot, "✓ The fastest is the cure")


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (SLOWER, "✗ No configuration is clearly faster than this plan"),
        (MEMORY_RACE, "failed: out of memory"),
        (MEMORY_RACE, "✓ The cure takes less memory than this plan, 3.2 GiB"),
        (LEARNING, "validation loss 0.6000, between 0.5500 and 0.6500"),
        (LEARNING, "✓ The cure learns better than this plan, 0.6000 instead of"),
    ],
)
async def test_what_a_trial_measured_is_said_as_it_is(
    run: FakeEngine, monkeypatch: pytest.MonkeyPatch, trials: Engine, result: CureRace, words: str
) -> None:
    trials.result = result
    trials.may_end.set()
    find(monkeypatch, SLOW)
    async with opened(run.directory, sees="expected") as pilot:
        await pilot.press("T")
        await shows(pilot, words)


async def test_escape_and_quit_ask_before_they_end_a_trial(
    run: FakeEngine, monkeypatch: pytest.MonkeyPatch, trials: Engine
) -> None:
    find(monkeypatch, SLOW)
    async with opened(run.directory, sees="expected") as pilot:
        await pilot.press("T")
        await shows(pilot, "trying ━")
        await pilot.press("q")
        await shows(pilot, "Quit accel-tui? It ends the trial.")
        await pilot.press("escape")
        await hides(pilot, "Quit accel-tui?")
        await pilot.press("escape")
        await shows(pilot, "End the trial?")
        await pilot.press("e")
        await shows(pilot, "✗ not tried: stopped")
        assert isinstance(pilot.app.screen, AdviceScreen)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "the run")


async def test_what_keeps_a_cure_from_being_tried_is_said(
    run: FakeEngine, monkeypatch: pytest.MonkeyPatch, trials: Engine
) -> None:
    trials.problem = "the machine has no room for two engines"
    trials.may_end.set()
    find(monkeypatch, SLOW)
    async with opened(run.directory, sees="expected") as pilot:
        await pilot.press("T")
        await shows(pilot, "✗ not tried: the machine has no room")


async def test_a_cure_is_applied_after_a_question_that_says_what_will_happen(
    run: FakeEngine, monkeypatch: pytest.MonkeyPatch, trials: Engine
) -> None:
    find(monkeypatch, POOR)
    async with opened(run.directory, sees="--learning-rate 0.0001") as pilot:
        await pilot.press("a")
        await shows(pilot, "Apply --learning-rate 0.0001 to the run?", "saves a checkpoint")
        await pilot.press("escape")
        await hides(pilot, "to the run?")
        assert not trials.applied
        await pilot.press("a")
        await shows(pilot, "to the run?")
        await pilot.press("a")
        await shows(pilot, "applying…")
        await pilot.press("escape", "A")
        await shows(pilot, "applying…")
        trials.may_end.set()
        await shows(pilot, "✓ applied: the learning rate is 0.0001 from step 150 on")
        assert trials.applied == [{"learning_rate": 0.0001}]
        assert trials.purposes == [POOR.id]
        trials.problem = "the run has no checkpoint"
        await pilot.press("a")
        await shows(pilot, "to the run?")
        await pilot.press("a")
        await shows(pilot, "✗ not applied: the run has no checkpoint")


async def test_what_was_applied_is_said_elsewhere_too(
    run: FakeEngine, monkeypatch: pytest.MonkeyPatch, trials: Engine
) -> None:
    find(monkeypatch, POOR)
    async with opened(run.directory, sees="--learning-rate 0.0001") as pilot:
        await pilot.press("a")
        await shows(pilot, "to the run?")
        await pilot.press("a")
        await shows(pilot, "applying")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "the run")
        trials.may_end.set()
        await shows(pilot, "Applied", "the learning rate is 0.0001 from step 150 on")


def changed(run: FakeEngine, purpose: str, value: float | None) -> None:
    before = {"clip_norm": 1.0 if value is None else None}
    run.say(PlanChanged, step=100, changes={"clip_norm": value}, before=before, reason="advice spikes", purpose=purpose)


async def test_one_key_takes_the_last_cure_back(
    run: FakeEngine, monkeypatch: pytest.MonkeyPatch, trials: Engine
) -> None:
    find(monkeypatch, POOR)
    async with opened(run.directory, sees="--learning-rate 0.0001") as pilot:
        assert "Undo" not in text_of(pilot).split()
        changed(run, CURE, 1.0)
        await pilot.press("escape", "A")
        await until(pilot, lambda: "Undo" in text_of(pilot).split(), "the key")
        await pilot.press("u")
        await until(pilot, lambda: trials.undone == [run.directory], "the undo")
        changed(run, UNDO, None)
        trials.may_end.set()
        await shows(pilot, "Taken back", "the learning rate is 0.001 again")
        await until(pilot, lambda: "Undo" not in text_of(pilot).split(), "no key")


async def test_what_keeps_a_cure_from_being_taken_back_is_said(
    run: FakeEngine, monkeypatch: pytest.MonkeyPatch, trials: Engine
) -> None:
    find(monkeypatch, POOR)
    trials.may_end.set()
    async with opened(run.directory, sees="--learning-rate 0.0001") as pilot:
        await pilot.press("a")
        await shows(pilot, "to the run?")
        await pilot.press("a")
        await shows(pilot, "✓ applied")
        trials.problem = "the run has not stopped"
        await pilot.press("u")
        await shows(pilot, "Not taken back", "the run has not stopped", "✓ applied")
        trials.problem = ""
        await pilot.press("u")
        await shows(pilot, "Taken back")
        await hides(pilot, "✓ applied")


@pytest.mark.parametrize(
    ("finding", "is_live", "words"),
    [
        (POOR, True, "while it trains, it does so now"),
        (POOR, False, "continues from its last checkpoint"),
    ],
)
async def test_the_question_says_what_applying_does(
    run: FakeEngine, monkeypatch: pytest.MonkeyPatch, finding: Finding, *, is_live: bool, words: str
) -> None:
    find(monkeypatch, finding)
    if not is_live:
        run.end(Outcome.STOPPED)
    async with opened(run.directory, sees="▸") as pilot:
        await pilot.press("a")
        await shows(pilot, "to the run?")
        detail = str(pilot.app.screen.query_one(".detail", Label).content)
        assert words in detail
        assert "Undo takes it back" in detail


async def test_what_a_checkpoint_does_not_allow_is_for_a_new_run(
    run: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    find(monkeypatch, MEMORY)
    async with opened(run.directory, sees="--batch-size 32") as pilot:
        assert "Apply" not in text_of(pilot).split()
        await pilot.press("n")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewRunScreen), "New run")
        screen = pilot.app.screen
        assert isinstance(screen, NewRunScreen)
        await until(pilot, lambda: screen.form.filled.plan and screen.form.filled.plan.batch_size == 32, "the plan")


@pytest.mark.parametrize(("keys", "text"), [((), "accel-tui train"), (("tab", "down"), "Decode the images once")])
async def test_the_command_of_a_cure_or_its_words_are_copied(
    run: FakeEngine, monkeypatch: pytest.MonkeyPatch, keys: tuple[str, ...], text: str
) -> None:
    find(monkeypatch, SLOW)
    async with opened(run.directory, sees="Decode the images once") as pilot:
        await pilot.press(*keys, "Y")
        await shows(pilot, "sent to", "clipboard")
        assert pilot.app.clipboard.startswith(text)


async def test_evidence_is_shown_in_the_charts_of_the_run(run: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    find(monkeypatch, POOR)
    async with opened(run.directory, sees="It fell") as pilot:
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "the run")
        charts = pilot.app.screen.query_one(RunCharts)
        assert charts.window == StepWindow.around(150, 90, 150)
        assert charts.active_chart == "loss"


async def test_evidence_of_a_run_of_the_list_is_shown_in_its_charts(
    run: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    find(monkeypatch, SLOW)
    async with BareApp().run_test(size=WIDE) as pilot:
        await pilot.press("r")
        await shows(pilot, "1 run")
        await pilot.press("A")
        await shows(pilot, "The processors are 97% busy")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "the run")
        charts = pilot.app.screen.query_one(RunCharts)
        await until(pilot, lambda: charts.window == StepWindow.around(150, 40, 120), "the steps of the evidence")
        assert charts.active_chart == "throughput"


async def test_a_script_gets_words_and_nothing_to_try(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find(monkeypatch, SLOW)
    script = FakeScript().begin().fit("base", epochs=1)
    async with opened(script.directory, sees="Pass jit_compile=True") as pilot:
        assert "--xla" not in text_of(pilot)
        assert not {"Try", "Apply"} & set(text_of(pilot).split())
        await pilot.press("Y")
        await shows(pilot, "Text sent to")
    script.close()


async def test_text_of_findings_is_never_markup(run: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = "[@click=app.quit]q[/]\x1b[2J"
    cure = Cure(hostile, {"xla": "on"})
    evidence = (replace(POOR.evidence[0], text=hostile),)
    find(monkeypatch, replace(POOR, title=hostile, cost=hostile, evidence=evidence, cures=(cure,)))
    async with StubApp(run.directory).run_test(size=WIDE) as pilot:
        await shows(pilot, "⚑ [@click=app.quit]q[/]\\x1b[2J")
        await pilot.press("A")
        await shows(pilot, "· [@click=app.quit]q[/]\\x1b[2J", "▸ [@click=app.quit]q[/]")


async def test_try_is_offered_for_cures_that_can_be_tried_only(
    run: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = Cure("Stop early", {"patience": 3, "restore_best": "on"})
    find(monkeypatch, replace(POOR, cures=(stop, Cure("Lower the rate", {"learning_rate": 1e-4}))))
    async with opened(run.directory) as pilot:
        await shows(pilot, "Stop early", "cannot be tried: --patience, --restore-best changes nothing")
        assert "Try" not in text_of(pilot).split()
        await pilot.press("T")
        assert "trying" not in text_of(pilot)
        await pilot.press("tab", "down")
        await until(pilot, lambda: "Try" in text_of(pilot).split(), "the cure that can be tried")
