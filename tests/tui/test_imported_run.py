"""An imported run is shown like any other, and is offered nothing that needs its engine, model or plan."""

from pathlib import Path

import pytest

from accel_engine.imported_runs import find, import_run
from accel_engine.run import runs_directory
from accel_engine.run.runs.listing import summarize
from accel_tui.run_list.comparison import ComparedRun, compare_runs
from accel_tui.screens.run_screen import RunScreen
from accel_tui.widgets.run.phase_line import phase, phase_progress
from accel_tui.widgets.run.run_details import RunDetails
from accel_tui.widgets.run.run_lines import ProgressLine, RunTitle
from accel_tui.widgets.run.run_outcome import RunOutcome
from accel_tui.widgets.runs_table import SelectedRun
from accel_tui.widgets.styled_text import plain_spans
from tui.stand_ins import followed

TABLE = "step,time,loss\n0,1700000000,0.5\n1,1700000002,0.25\n"


def imported(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "results.csv"
    file.write_text(text)
    (source,) = find(file)
    return runs_directory() / import_run(source)[0]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return imported(tmp_path, TABLE)


def test_it_says_where_it_is_from(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunTitle, "width", 120)
    state = followed(directory)
    facts = "".join(RunDetails().build(state).plain.split())
    assert "importedfrom" in facts
    assert str(tmp_path / "results.csv") in facts
    assert "formatCSV" in facts
    detail, title = SelectedRun(), RunTitle()
    detail.show_run(summarize(directory))
    shown = (str(detail.content), title.build(state).plain)
    assert f"imported from {tmp_path / 'results.csv'} (CSV)" in shown[0]
    assert "imported from results.csv" in shown[1]
    assert not any("None" in words or " on " in words for words in (*shown, facts))


def test_its_end(directory: Path) -> None:
    state = followed(directory)
    assert RunOutcome().build(state).plain.splitlines() == [
        "Finished after 2 steps in 0:02, 0.50 steps/s",
        "Last values: loss 0.2500",
    ]
    assert plain_spans(phase(state, 0.0, brief=False)) == "✓ finished  after 0:02"
    assert [plain_spans(pair) for pair in phase_progress(state)] == ["step 2", "0.50 steps/s"]
    assert plain_spans(ProgressLine().spans(state)).strip() == "100%"


def test_a_duration_that_is_not_known_is_not_shown(tmp_path: Path) -> None:
    directory = imported(tmp_path, "epoch,loss\n0,0.5\n1,0.25\n")
    assert RunOutcome().build(followed(directory)).plain.splitlines() == [
        "Finished after 2 steps and 2 epochs",
        "Last epoch: loss 0.2500",
    ]


def test_nothing_is_offered_that_needs_an_engine(directory: Path) -> None:
    screen = RunScreen(directory)
    screen.set_reactive(RunScreen.state, followed(directory))
    actions = ("pause", "stop", "learning_rate", "detach", "checkpoint", "continue", "train_longer")
    assert not any(screen.check_action(action, ()) for action in (*actions, "log", "search_log"))


def test_what_is_not_known_of_plans_is_not_compared(directory: Path) -> None:
    one = ComparedRun(summarize(directory), followed(directory))
    found = compare_runs([one, one])
    assert (found.plan, found.equal, found.defaults) == ((), {}, 0)
    assert found.summary == "No plan fields in common are known."
