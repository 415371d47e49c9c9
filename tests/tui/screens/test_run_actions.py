"""The table of actions on runs, and the screens that read it."""

from pathlib import Path

import pytest
from textual.binding import Binding

from accel_engine.plan import Plan
from accel_engine.run import read_run
from accel_tui.app import key_bindings
from accel_tui.app_protocol import Screens
from accel_tui.run_state.state import RunState
from accel_tui.screens.bench_screen import BenchScreen
from accel_tui.screens.run_actions import ACTIONS, RunActionsScreen, TargetRun, run_bindings
from example_study import write_study
from tui.fake_engine import FakeEngine
from tui.stand_ins import BareApp, StubApp, shows, until

PLACES = {
    kind.PLACE: kind
    for screen in Screens
    if issubclass(kind := screen.kind, RunActionsScreen) and hasattr(kind, "PLACE")
}
"""The screens of runs, by their names in the table."""


def test_every_screen_of_the_table_is_one_of_runs_with_the_keys_of_its_rows() -> None:
    named = {place for row in ACTIONS.values() for place in row.places}
    assert named == PLACES.keys()
    for place, kind in PLACES.items():
        actions = [binding.action for binding in kind.BINDINGS if isinstance(binding, Binding)]
        assert [action for action in actions if action in ACTIONS] == [
            row.id for row in ACTIONS.values() if place in row.places
        ]


@pytest.mark.parametrize("place", PLACES)
def test_actions_of_a_screen_that_share_a_key_have_one_id_in_the_settings(place: str) -> None:
    ids: dict[str, str | None] = {}
    for binding in run_bindings(place):
        assert ids.setdefault(binding.key, binding.id) == binding.id
    assert set(ids.values()) <= key_bindings().keys()


@pytest.mark.parametrize(("schedule", "offered"), [("cosine", None), ("constant", True)])
def test_a_rate_that_follows_a_schedule_is_neither_set_nor_found(
    home: Path, schedule: str, offered: bool | None
) -> None:
    engine = FakeEngine(Plan(schedule=schedule))
    engine.begin()
    info = read_run(engine.directory)
    run = TargetRun(engine.directory, info, state=RunState(info=info))
    assert [ACTIONS[name].is_offered((run,)) for name in ("learning_rate", "find_rate")] == [offered, offered]
    engine.close()


async def test_what_is_done_with_a_trained_model_is_done_from_a_search_too(home: Path) -> None:
    engine = FakeEngine(Plan(epochs=30))
    engine.begin().build().train(100).save()
    directory = write_study(runs=(engine.directory.name,))
    async with BareApp().run_test(size=(120, 40)) as pilot:
        pilot.app.open_screen(Screens.SEARCH, directory)  # type: ignore[attr-defined]
        await until(pilot, lambda: bool(pilot.app.screen.check_action("bench", ())), "a trial with a run")
        await pilot.press("b")
        await until(pilot, lambda: isinstance(pilot.app.screen, BenchScreen), "its bench")
        await shows(pilot, engine.directory.name)
    engine.close()


async def test_the_report_and_the_selected_chart_are_files_of_the_working_directory(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    engine = FakeEngine(Plan(epochs=30)).begin().build().train(100)
    name = engine.directory.name
    async with StubApp(open_run=engine.directory).run_test(size=(120, 40)) as pilot:
        await shows(pilot, "epoch 2/30", "A Advice")
        await pilot.press("H")
        await until(pilot, Path(f"{name}.html").exists, "the report")
        await pilot.press("W")
        await until(pilot, Path(f"{name}-loss.png").exists, "the chart")
    assert {path.name for path in Path.cwd().iterdir()} == {f"{name}.html", f"{name}-loss.svg", f"{name}-loss.png"}
