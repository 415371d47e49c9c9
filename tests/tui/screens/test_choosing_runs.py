"""Finding, ordering, choosing, labelling and deleting runs on their screen."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.events import Key
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.widgets import Input

from accel_engine.events import Outcome
from accel_engine.plan import Plan
from accel_engine.run import Annotations, Status, list_runs
from accel_engine.run.directory.run_paths import host_of_run
from accel_engine.run.store.annotations import write_annotations
from accel_engine.run.store.database import RunDatabase
from accel_tui.app_protocol import Screens
from accel_tui.formatting.table_columns import SortOrder
from accel_tui.screens.asking import QuestionScreen
from accel_tui.screens.compare_screen import CompareScreen
from accel_tui.screens.entry_screen import OptionsScreen
from accel_tui.screens.new_run_screen import NewRunScreen
from accel_tui.screens.run_screen import RunScreen
from accel_tui.screens.runs_screen import RunsScreen
from accel_tui.settings.user_settings import read_settings
from accel_tui.widgets import run_card
from accel_tui.widgets import runs_table as runs_table
from accel_tui.widgets.run_card import CardContent, RunCard
from accel_tui.widgets.runs_table import RunsTable
from accel_tui.widgets.table import Heading
from tui.fake_engine import FakeEngine, close_all
from tui.stand_in_hosts import run_of
from tui.stand_ins import BareApp, StubApp, hides, shows, text_of, until

SMALL, WIDE = (80, 24), (200, 50)


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_table, "INTERVAL", 0.1)


@pytest.fixture
def made() -> Callable[..., Path]:
    """Make a run that ended, newer than those before it."""
    ages = iter(range(1000, 0, -10))

    def make(plan: Plan, outcome: Outcome | None = Outcome.FINISHED, *, annotations: Annotations | None = None) -> Path:
        engine = FakeEngine(plan)
        engine.begin().build().train(50).save()
        if outcome:
            engine.end(outcome, reason="out of memory" if outcome is Outcome.FAILED else "")
            engine.close()
        write_annotations(engine.directory, lambda _: annotations or Annotations())
        connection = RunDatabase(engine.directory)
        connection.execute("UPDATE main.meta SET value = ? WHERE key = 'created'", (time.time() - next(ages),))
        connection.close()
        return engine.directory

    return make


def table(pilot: Pilot[None]) -> RunsTable:
    return pilot.app.screen.query_one(RunsTable)


def shown(pilot: Pilot[None]) -> list[str]:
    return [run.id for run in table(pilot).shown]


async def open_runs(pilot: Pilot[None]) -> None:
    pilot.app.open_screen(Screens.RUNS)  # type: ignore[attr-defined]
    await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen), "the runs")
    await until(pilot, lambda: table(pilot).current and table(pilot).has_focus, "the list")


async def test_words_find_runs_as_they_are_typed(made: Callable[..., Path]) -> None:
    made(Plan())
    failed = made(Plan(model="mlp"), Outcome.FAILED)
    tagged = made(Plan(model="mlp"), annotations=Annotations("my best", "on clean data", ("paper",)))
    async with BareApp().run_test(size=SMALL) as pilot:
        await open_runs(pilot)
        await shows(pilot, "3 runs", "my best", "#paper", "on clean data")
        await pilot.press("slash", *"mlp status:f")
        await until(pilot, lambda: shown(pilot) == [tagged.name, failed.name], "finished and failed")
        await pilot.press(*"ai")
        await shows(pilot, "1 of 3 runs", "out of memory")
        await pilot.press(*"x")
        await shows(pilot, "0 of 3 runs", "no status 'faix'; known")
        await pilot.press("escape")
        await until(pilot, lambda: len(shown(pilot)) == 3, "all of them")
        assert table(pilot).has_focus
        await pilot.press("slash", *"tag:paper", "enter", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "the run")
        assert pilot.app.screen.directory == tagged  # type: ignore[attr-defined]


async def test_keys_and_clicks_on_the_header_order_the_list(made: Callable[..., Path]) -> None:
    cnn, mlp, net = made(Plan()), made(Plan(model="mlp")), made(Plan(model="resnet20"))
    async with BareApp().run_test(size=WIDE) as pilot:
        await open_runs(pilot)
        assert shown(pilot) == [net.name, mlp.name, cnn.name]
        await shows(pilot, "▼created")
        await pilot.press("!")
        await shows(pilot, "▲created")
        assert shown(pilot) == [cnn.name, mlp.name, net.name]
        await pilot.press(">")
        await shows(pilot, "status▲")
        await pilot.press("<")
        await shows(pilot, "▼created")
        at = text_of(pilot).splitlines()[2].index("model")
        await pilot.click(RunsTable, offset=Offset(at + 1, 0))
        assert table(pilot).order == SortOrder("model")
        assert shown(pilot) == [cnn.name, mlp.name, net.name]
        await pilot.click(RunsTable, offset=Offset(at + 1, 0))
        await shows(pilot, "model▼")
        assert shown(pilot) == [net.name, mlp.name, cnn.name]


async def test_runs_are_chosen_and_compared(made: Callable[..., Path]) -> None:
    directories = [made(Plan(seed=seed)) for seed in range(4)]
    async with BareApp().run_test(size=SMALL) as pilot:
        await open_runs(pilot)
        await pilot.press("c")
        assert isinstance(pilot.app.screen, RunsScreen)
        await pilot.press("space", "space")
        await shows(pilot, "2 selected", "◆")
        await pilot.press("escape")
        await hides(pilot, "2 selected")
        await pilot.press("shift+down", "shift+up")
        await shows(pilot, "2 selected")
        await pilot.click(RunsTable, offset=Offset(1, 1))
        await shows(pilot, "3 selected")
        await pilot.click(RunsTable, offset=Offset(20, 1), control=True)
        await shows(pilot, "2 selected")
        await pilot.click(RunsTable, offset=Offset(20, 4), shift=True)
        await shows(pilot, "4 selected")
        assert isinstance(pilot.app.screen, RunsScreen)
        await pilot.press("enter")  # opens the current run, whatever else is selected
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "the run")
        pilot.app.pop_screen()
        await shows(pilot, "4 selected")
        await pilot.press("c")
        await until(pilot, lambda: isinstance(pilot.app.screen, CompareScreen), "the comparison")
        await shows(pilot, "Compare 4 runs", "seed")
        await pilot.press("escape")
        await shows(pilot, "4 selected")
    assert len(list_runs()) == len(directories)


async def test_a_click_goes_to_a_run_and_another_opens_it(made: Callable[..., Path]) -> None:
    first = made(Plan())
    made(Plan(model="mlp"))
    async with BareApp().run_test(size=SMALL) as pilot:
        await open_runs(pilot)
        await pilot.click(RunsTable, offset=Offset(20, 2))
        await until(pilot, lambda: table(pilot).current.directory == first, "the cursor")  # type: ignore[union-attr]
        assert isinstance(pilot.app.screen, RunsScreen)
        await pilot.click(RunsTable, offset=Offset(20, 2))
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "the run")


async def test_a_live_run_is_renamed_noted_and_tagged(made: Callable[..., Path]) -> None:
    made(Plan(name="planned"), None)
    async with BareApp().run_test(size=SMALL) as pilot:
        await open_runs(pilot)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(pilot.app.screen, OptionsScreen), "the question")
        await pilot.press(*"better", "down", *"with care", "down", *"a, b c!")
        await shows(pilot, "invalid tag")
        await pilot.press("enter", "backspace", "enter")
        await shows(pilot, "better", "with care", "#a #b #c")
        assert list_runs()[0].info.annotations == Annotations("better", "with care", ("a", "b", "c"))  # type: ignore[union-attr]
        await pilot.press("e")
        await until(pilot, lambda: isinstance(pilot.app.screen, OptionsScreen), "the question")
        assert [field.value for field in pilot.app.screen.query(Input)] == ["better", "with care", "a b c"]
        await pilot.press("ctrl+u", "escape")
        assert list_runs()[0].info.name == "better"  # type: ignore[union-attr]


async def test_what_is_typed_right_after_enter_is_not_saved(made: Callable[..., Path]) -> None:
    made(Plan(), None)
    async with BareApp().run_test(size=SMALL) as pilot:
        await open_runs(pilot)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(pilot.app.screen, OptionsScreen), "the question")
        for key, character in (("a", "a"), ("enter", "\r"), ("b", "b")):
            pilot.app.post_message(Key(key, character))  # all at once, as pasted keys come
        await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen), "the list")
        await until(pilot, lambda: list_runs()[0].info.name == "a", "the name")  # type: ignore[union-attr]


async def test_all_that_are_chosen_are_tagged_at_once(made: Callable[..., Path]) -> None:
    for labels in (Annotations(tags=("old",)), Annotations("named", tags=("kept",))):
        made(Plan(), annotations=labels)
    async with BareApp().run_test(size=SMALL) as pilot:
        await open_runs(pilot)
        await pilot.press("space", "space", "e")
        await shows(pilot, "Tag 2 runs")
        await pilot.press(*"+new -old", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen), "the list")
        tags = [("kept", "new"), ("new",)]
        await until(pilot, lambda: [run.info.annotations.tags for run in list_runs()] == tags, "the tags")  # type: ignore[union-attr]
        assert list_runs()[0].info.name == "named"  # type: ignore[union-attr]


async def test_deleting_asks_and_says_what_goes(made: Callable[..., Path]) -> None:
    kept, gone, other = made(Plan(name="kept")), made(Plan(name="gone")), made(Plan(name="other"))
    (gone / "model.keras").write_bytes(b"x" * 2_000_000)
    async with BareApp().run_test(size=SMALL) as pilot:
        await open_runs(pilot)
        await pilot.press("space", "space", "delete")
        await until(pilot, lambda: isinstance(pilot.app.screen, QuestionScreen), "the question")
        await shows(pilot, "Delete 2 runs?", "1 trained", "undone")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen), "the list")
        assert len(list_runs()) == 3
        await pilot.press("delete")
        await until(pilot, lambda: isinstance(pilot.app.screen, QuestionScreen), "the question again")
        await pilot.press("d")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen), "the list")
        await until(pilot, lambda: shown(pilot) == [kept.name], "the run that was kept")
        assert not gone.exists()
        assert not other.exists()
        await hides(pilot, "selected")


async def test_a_live_run_is_not_offered_for_deletion(made: Callable[..., Path]) -> None:
    made(Plan(name="live"), None)
    async with BareApp().run_test(size=SMALL) as pilot:
        await open_runs(pilot)
        await pilot.press("delete", "backspace")
        await pilot.pause()
        assert isinstance(pilot.app.screen, RunsScreen)
        assert len(list_runs()) == 1


async def test_selected_runs_that_the_filter_hides_are_counted_and_asked_about(made: Callable[..., Path]) -> None:
    for name in ("kept", "gone", "other"):
        made(Plan(name=name))
    async with BareApp().run_test(size=WIDE) as pilot:
        await open_runs(pilot)
        await pilot.press("space", "space", "delete")  # of the two that were made last
        await shows(pilot, "Delete 2 runs?")
        await pilot.press("escape", "slash", *"kept", "enter", "delete")
        await shows(pilot, "2 selected, hidden", "Delete 2 runs, hidden by the filter?")
        await pilot.press("escape", "escape", "slash", *"gone", "enter", "e")
        await shows(pilot, "2 selected, 1 hidden", "Tag 2 runs, 1 hidden by the filter")


async def test_a_run_that_is_lost_meanwhile_is_told(made: Callable[..., Path]) -> None:
    made(Plan(name="live"), None)
    async with BareApp().run_test(size=SMALL) as pilot:
        await open_runs(pilot)
        await shows(pilot, "●")
        close_all()
        await until(pilot, lambda: [note.title for note in pilot.app._notifications] == ["Run lost"], "what is told")
        await shows(pilot, "?", "exited unexpectedly")


async def test_escape_leads_back_to_the_plan_in_the_end(made: Callable[..., Path]) -> None:
    made(Plan())
    async with StubApp().run_test(size=SMALL) as pilot:
        await open_runs(pilot)
        await pilot.press("slash", *"cnn", "enter", "space")
        await shows(pilot, "1 selected", "1 of 1 run")
        await pilot.press("escape", "escape")
        await hides(pilot, "selected")
        assert isinstance(pilot.app.screen, RunsScreen)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewRunScreen), "the plan")


async def test_a_long_list_is_scrolled_with_the_cursor(made: Callable[..., Path]) -> None:
    names = [made(Plan(seed=seed)).name for seed in range(40)][::-1]
    async with BareApp().run_test(size=SMALL) as pilot:
        await open_runs(pilot)
        await until(pilot, lambda: len(shown(pilot)) == 40, "all runs")
        await pilot.press("pagedown", "down")
        await shows(pilot, table(pilot).current.id)  # type: ignore[union-attr]
        await pilot.press("end")
        await shows(pilot, names[-1])
        assert table(pilot).current.id == names[-1]  # type: ignore[union-attr]
        await pilot.press("pageup", "home")
        assert table(pilot).current.id == names[0]  # type: ignore[union-attr]
        await shows(pilot, names[0])


async def test_the_cursor_is_seen_without_colours(made: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    made(Plan())
    monkeypatch.setenv("NO_COLOR", "1")
    async with BareApp().run_test(size=SMALL) as pilot:
        await open_runs(pilot)
        (segment, *_) = table(pilot).render_line(1)
        assert segment.style is not None
        assert segment.style.reverse
        (segment, *_) = table(pilot).render_line(2)
        assert segment.style is None or not segment.style.reverse


async def test_some_runs_are_shown_before_all_were_read_and_the_newest_is_where_one_begins(
    made: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    written_last, newest = made(Plan(seed=1)), made(Plan(seed=2))
    connection = RunDatabase(written_last)
    connection.execute("UPDATE main.meta SET value = value WHERE key = 'created'")
    connection.close()
    os.utime(newest / "run.db", (1000.0, 1000.0))
    monkeypatch.setattr(runs_table, "FIRST", 1)
    ready, listing = threading.Event(), RunsTable.listing
    refresh = listing.refresh
    monkeypatch.setattr(listing, "refresh", lambda limit=None: (limit or ready.wait()) and refresh(limit))
    async with BareApp().run_test(size=SMALL) as pilot:
        try:
            await open_runs(pilot)
            assert shown(pilot) == [written_last.name]
        finally:
            ready.set()
        await until(pilot, lambda: shown(pilot) == [newest.name, written_last.name], "all runs")
        await until(pilot, lambda: table(pilot).current.directory == newest, "the first run")  # type: ignore[union-attr]


async def test_groups_are_folded_by_keys_and_clicks_and_filtered(made: Callable[..., Path]) -> None:
    digits = [made(Plan(name=f"d{seed}", seed=seed)) for seed in range(2)]
    other = made(Plan(model="mlp", data="mnist"))
    async with BareApp().run_test(size=SMALL) as pilot:
        await open_runs(pilot)
        await shows(pilot, "▾ digits  2", "▾ mnist  1")
        runs = table(pilot)
        await pilot.press("end", "left")
        assert isinstance(runs.current_line, Heading)
        await shows(pilot, "▸ ")
        folded = len(runs.lines)
        await pilot.press("enter")
        await until(pilot, lambda: len(runs.lines) > folded, "the runs of the group")
        assert await pilot.click(runs, offset=(20, 1))  # the first heading
        await until(pilot, lambda: runs.lines[0].is_folded, "the folded group")  # type: ignore[union-attr]
        assert len(runs.shown) == 3, "folded runs are in the list"
        await pilot.press("space")
        assert runs.selected == {*runs.lines[0].rows}, "a heading selects its runs"  # type: ignore[union-attr]
        await pilot.press("G")
        await until(pilot, lambda: len(runs.lines) == 2, "the headings alone")
        await pilot.press("G")
        await until(pilot, lambda: len(runs.lines) == 5, "all groups")
        await pilot.press("slash", *"mnist", "enter")
        await until(pilot, lambda: [run.directory for run in runs.shown] == [other], "what is found")
        assert len(runs.lines) == 1, "one group needs no heading"
        await pilot.press("escape", "g")
        await shows(pilot, "by model", "▾ mlp  1", "▾ cnn  2")
        assert {run.directory for run in runs.shown} == {*digits, other}


async def test_folds_of_groups_are_kept_for_the_next_time(
    made: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCEL_TUI_SETTINGS", str(tmp_path / "settings.toml"))
    for data in ("digits", "synthetic"):
        made(Plan(data=data))
    async with BareApp().run_test(size=SMALL) as pilot:
        await open_runs(pilot)
        await shows(pilot, "▾ digits  1", "▾ synthetic  1")
        await pilot.press("home", "left")
        await shows(pilot, "▸ synthetic  1")
        settings = read_settings(tmp_path / "settings.toml")[0]
        assert settings.runs_folds == ("synthetic",)
    app = BareApp()
    app.settings = settings
    async with app.run_test(size=SMALL) as pilot:
        await open_runs(pilot)
        await shows(pilot, "▾ digits  1", "▸ synthetic  1")


async def test_the_columns_are_chosen_and_saved(
    made: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCEL_TUI_SETTINGS", str(tmp_path / "settings.toml"))
    made(Plan())
    async with BareApp().run_test(size=SMALL) as pilot:
        await open_runs(pilot)
        await until(pilot, lambda: table(pilot).shown, "the run")
        titles = table(pilot).visible_titles
        await pilot.press("a")
        await shows(pilot, "[x] status")
        await pilot.press("space", "escape")  # the status is the first
        await until(pilot, lambda: table(pilot).visible_titles == titles[1:], "the other columns")
        assert read_settings(tmp_path / "settings.toml")[0].runs_columns == titles[1:]
        await pilot.press("p", "r")
        await until(pilot, lambda: table(pilot).visible_titles == titles[1:], "the same columns")


async def test_the_card_shows_the_current_run_and_what_can_be_done(made: Callable[..., Path]) -> None:
    named = Annotations(name="[red", note="too fast", tags=("x",))  # which is no markup
    made(Plan(model="mlp", learning_rate=0.5), annotations=named)
    async with BareApp().run_test(size=(120, 40)) as pilot:
        await open_runs(pilot)
        await shows(
            pilot, "[red  ✓ finished", "mlp · learning rate 0.5", "too fast", "#x", "$ accel-tui train --model mlp"
        )
        await shows(pilot, "loss", "Duplicate", "Evaluate")
        await pilot.resize_terminal(*SMALL)
        await until(pilot, lambda: pilot.app.screen.query_one(RunCard).size.height < 8, "a short card")
        await shows(pilot, "plan mlp · learning rate 0.5", "$ accel-tui train --model mlp")
        await shows(pilot, "$ accel-tui train --model mlp")


async def test_the_card_names_a_run_of_a_host_while_its_steps_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    started, released = threading.Event(), threading.Event()

    def read_slowly(directory: Path, **_: object) -> CardContent:
        if host_of_run(directory):
            started.set()
            assert released.wait(60)
        return CardContent()

    monkeypatch.setattr(run_card, "read_card", read_slowly)
    async with BareApp().run_test(size=SMALL) as pilot:
        await pilot.app.screen.mount(card := RunCard(tuple))
        card.show(run_of("", "first", Status.FINISHED))
        await shows(pilot, "first")
        card.show(run_of("far", "second", Status.FINISHED))
        await until(pilot, started.is_set, "the thread")
        await pilot.pause()
        assert "far:second" in text_of(pilot)
        assert "first" not in text_of(pilot)
        released.set()
