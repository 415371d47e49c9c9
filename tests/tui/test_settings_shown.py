"""What is settled, in the app."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from accel_engine.process import engine_process
from accel_engine.process.engine_process import Installation
from accel_tui.app import AccelApp
from accel_tui.app_protocol import Screens
from accel_tui.settings import user_settings as user
from accel_tui.settings.user_settings import Settings, SettingSource
from accel_tui.terminal.canvas import Canvas
from accel_tui.terminal.textual_private import strips_of
from accel_tui.widgets.list_keys import custom_keys
from accel_tui.widgets.log.log_view import LogView
from accel_tui.widgets.plan.plan_form import PlanForm
from tui.fake_engine import FakeEngine
from tui.stand_ins import StubApp, StubEngine, StubSampler, shows, until


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(engine_process, "find_installation", lambda: Installation("tensorflow-cpu", "2.21.0"))
    return


class SettledApp(StubApp):
    """The real app on stand-ins, with settings."""

    def __init__(self, settings: Settings) -> None:
        self.engines: list[StubEngine] = []

        def make_engine(on_change: object) -> StubEngine:
            self.engines.append(StubEngine(on_change))  # type: ignore[arg-type]
            return self.engines[-1]

        AccelApp.__init__(
            self,
            settings=settings,
            make_engine=make_engine,  # type: ignore[arg-type]
            make_sampler=StubSampler,  # type: ignore[arg-type]
        )


async def test_the_form_begins_with_what_is_settled_and_goes_back_to_it() -> None:
    app = SettledApp(Settings(plan={"epochs": 3, "model": "mlp"}))
    async with app.run_test(size=(110, 40)) as pilot:
        await shows(pilot, "accel-tui train --model mlp --epochs 3")
        form = app.screen.query_one(PlanForm)
        form.set("epochs", "10")
        await shows(pilot, "accel-tui train --model mlp --epochs 10")  # the built-in default has to be said now
        await pilot.press("f6", "r")
        await shows(pilot, "accel-tui train --model mlp --epochs 3")


async def test_the_theme_is_the_one_that_is_settled() -> None:
    app = SettledApp(Settings(theme="nord"))
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "Start")
        assert app.theme == "nord"


async def test_keys_are_those_that_are_settled_and_help_says_so() -> None:
    app = SettledApp(Settings(keys={"app.help": "f9,f12"}))
    async with app.run_test(size=(110, 140)) as pilot:
        await shows(pilot, "f9 Help")
        await pilot.press("question_mark")
        assert len(app.screen_stack) == 1
        await pilot.press("f9")
        await shows(pilot, "f9 f12  Show")


async def test_keys_that_are_wrong_end_the_program_with_every_mistake() -> None:
    source = SettingSource(Path("s.toml"), {"keys.run.puase": 3, "keys.run.stop": 4})
    app = SettledApp(Settings(keys={"run.puase": "f9", "run.stop": "p"}, source=source))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.settings_error, "the refusal")
    assert app.settings_error
    assert app.return_code == app.settings_error.exit_status == 2
    assert {mistake[:9] for mistake in app.settings_error.errors} == {"s.toml:3:", "s.toml:4:"}


async def test_a_theme_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("[rates]\nframes = 30\n")
    monkeypatch.setenv("ACCEL_TUI_SETTINGS", str(file))
    app = SettledApp(user.load_settings())
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await shows(pilot, "Start")
        await pilot.press("t", "ctrl+p", *"save t")
        await shows(pilot, "Save theme")
        await pilot.press("enter")
        await until(pilot, lambda: user.load_settings().theme == "accel-light", "the line")
        await shows(pilot, "Theme saved")
    assert user.load_settings().frames == 30


async def test_a_theme_that_cannot_be_kept_says_what_to_write(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    app = SettledApp(Settings(source=SettingSource(tmp_path / "file" / "settings.toml")))
    async with app.run_test(size=(110, 30), notifications=True) as pilot:
        await shows(pilot, "Start")
        app.save_theme()
        await shows(pilot, "Theme not saved", 'theme = "accel-dark"')


async def test_pictures_are_in_ascii_where_that_is_settled() -> None:
    app = SettledApp(Settings(glyphs="ascii"))
    async with app.run_test(size=(110, 36)) as pilot:

        def painted() -> str:
            canvas = Canvas()
            canvas.transliterate = app._canvas.transliterate
            whole = canvas.paint(strips_of(app.screen._compositor.render_full_update()), app.console)
            assert whole.isascii()
            return whole

        await shows(pilot, "▶ Start")
        await until(pilot, lambda: "> Start" in painted(), "the form in ASCII")
        await pilot.press("f1")
        await until(pilot, lambda: "+- " in painted(), "help in ASCII")


async def test_keys_are_said_beside_what_they_do_as_they_are_settled() -> None:
    engine = FakeEngine().begin().build().train(30)
    keys = {"charts.log": "f7", "charts.cursor": "f8", "log.search": "ctrl+f"}
    app = SettledApp(Settings(keys=keys))
    async with app.run_test(size=(120, 40)) as pilot:
        await shows(pilot, "Start")
        app.open_screen(Screens.RUN, engine.directory)
        await shows(pilot, "f8 cursor", "f7 auto log")
        assert custom_keys(app.screen.query_one(LogView)) == {"search": "^f"}
    engine.close()


async def test_one_setting_moves_pause_and_resume() -> None:
    engine = FakeEngine().begin().build().train(30)
    app = SettledApp(Settings(keys={"run.pause": "f8,f9"}))
    async with app.run_test(size=(120, 40)) as pilot:
        await shows(pilot, "Start")
        app.open_screen(Screens.RUN, engine.directory)
        await shows(pilot, "f8 Pause")
        await pilot.press("p", "f9")
        await until(pilot, lambda: engine.answer_commands() == ["pause"], "the pause")
        await shows(pilot, "f8 Resume")
        await pilot.press("f8")
        await until(pilot, lambda: engine.answer_commands() == ["resume"], "the command to resume")
        await pilot.press("question_mark")
        await shows(pilot, "f8 f9  Pause or resume training")
    engine.close()
