"""The screen of a plan, driven as a user does, on a machine and an engine of stand-ins."""

import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Button, OptionList

from accel_engine import network_namespace
from accel_engine.data import DatasetEntry
from accel_engine.data_profile.described_data import describe_loaded
from accel_engine.devices.device_types import Device, Inventory
from accel_engine.plan import SPECS, Plan
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.process import engine_process, start_run, warm_engine
from accel_engine.process.engine_process import Installation
from accel_engine.process.warm_engine import EngineState, WarmEngine
from accel_engine.requests.describe_model import Description
from accel_engine.run import RunReader, list_runs
from accel_engine.run_queue import free_devices
from accel_tui.app_protocol import Screens
from accel_tui.plan import data_places
from accel_tui.plan.data_places import Listing, list_folder
from accel_tui.plan.data_reading import Preview, PreviewReading
from accel_tui.plan.data_text import SurveyError, SurveySubject, survey_form
from accel_tui.plan.form_groups import FIRST
from accel_tui.screens.new_run_screen import NewRunScreen
from accel_tui.screens.run_screen import RunScreen
from accel_tui.screens.runs_screen import RunsScreen
from accel_tui.widgets.key_bar import KeyBar
from accel_tui.widgets.line_input import LineInput
from accel_tui.widgets.plan import summary_panel
from accel_tui.widgets.plan.data_list import DataList
from accel_tui.widgets.plan.data_preview import DataPreview
from accel_tui.widgets.plan.field import Field
from accel_tui.widgets.plan.field_finder import FieldFinder
from accel_tui.widgets.plan.picker import Picker
from accel_tui.widgets.plan.summary_panel import Subject, SummaryPanel
from tui.fake_engine import FakeEngine
from tui.stand_ins import GIB, StubApp, StubEngine, begun, hides, more, shows, text_of, until

SMALL, WIDE, HUGE = (80, 24), (120, 40), (200, 50)


pytestmark = pytest.mark.usefixtures("installed")


def screen_of(pilot: Pilot[None]) -> NewRunScreen:
    assert isinstance(pilot.app.screen, NewRunScreen)
    return pilot.app.screen


def field(pilot: Pilot[None], name: str) -> Field:
    return screen_of(pilot).query_one(f"#field-{name}", Field)


def is_in_body(pilot: Pilot[None], name: str) -> bool:
    return screen_of(pilot).query_one("#body").region.contains_region(field(pilot, name).region)


def shown(pilot: Pilot[None]) -> set[str]:
    return {each.field for each in screen_of(pilot).form.shown}


async def fill(pilot: Pilot[None], name: str, text: str) -> None:
    """Type into a field, over what stands there."""
    screen_of(pilot).form.go_to(name)
    await pilot.pause()
    await pilot.press(*text)


async def show_panel(pilot: Pilot[None], number: int) -> None:
    """Show a panel where only one has room, by the key for the next one."""
    form = screen_of(pilot).form
    for _ in range(4):
        if form.panels[number - 1].has_class("-current"):
            return
        await pilot.press("tab")
    raise AssertionError(number)


def type_ahead(pilot: Pilot[None], *keys: str) -> None:
    """Type keys before the first one is handled."""
    for key in keys:
        pilot.app.post_message(Key(key, key if len(key) == 1 else {"slash": "/"}.get(key)))


async def stays(pilot: Pilot[None]) -> None:
    """Wait until devices and meaning have taken their lines, so that the form is where it stays."""
    await shows(pilot, "AMD EPYC", "43%", "no TPU chip")
    await until(pilot, lambda: "230 total" in field(pilot, "epochs").note, "what the plan means")
    before, now = None, [each.region for each in screen_of(pilot).form.shown]
    while now != before:
        await pilot.pause()
        before, now = now, [each.region for each in screen_of(pilot).form.shown]


@pytest.mark.parametrize("size", [SMALL, WIDE, *more(HUGE)])
async def test_devices_data_plan_outcome_command_and_start_are_all_there(size: tuple[int, int]) -> None:
    async with StubApp().run_test(size=size) as pilot:
        await shows(pilot, "cpu:0", "43%", "no NVIDIA driver", "8x8x1 → 10 classes", "built in", "1,437")
        await shows(pilot, "$ accel-tui train", "engine: ready (TensorFlow 2.21.0)", "Start", "q Quit")
        await show_panel(pilot, 2)
        await shows(pilot, "cnn: 94,634 in 14 layers", "23 per epoch, 230 total", "64 on cpu:0, last 29", "/ finds any")
        await show_panel(pilot, 3)
        await shows(pilot, "11.4 MiB", "3 checkpoints", "Race (b)", "predict, export", "Start")
        for each in screen_of(pilot).form.shown:
            if size != SMALL:
                assert pilot.app.screen.region.contains_region(each.region), each.field


async def test_letters_are_keys_until_a_field_is_in_use() -> None:
    async with StubApp().run_test(size=SMALL) as pilot:
        await shows(pilot, "s Start")
        await fill(pilot, "name", "sq")
        assert field(pilot, "name").picker.value == "sq"
        await shows(pilot, "s Start", "esc leaves it", "Name of the run")
        await pilot.press("escape", "t")
        assert pilot.app.theme == "accel-light"


async def test_a_click_on_a_key_starts_and_is_no_text_of_the_field_that_is_edited() -> None:
    app = StubApp()
    async with app.run_test(size=WIDE) as pilot:
        await shows(pilot, "engine: ready")
        await fill(pilot, "epochs", "3")
        bar = screen_of(pilot).query_one(KeyBar)
        await pilot.click(KeyBar, offset=(bar.render().plain.index("s Start"), 0))
        await until(pilot, lambda: isinstance(app.screen, RunScreen), "the run's screen")
        (run,) = list_runs()
        assert run.info
        assert run.info.plan_values["epochs"] == 3


async def test_enter_on_start_asks_before_it_starts_a_training() -> None:
    app = StubApp()
    async with app.run_test(size=SMALL) as pilot:
        await shows(pilot, "engine: ready")
        screen_of(pilot).query_one("#start").focus()
        await pilot.press("enter")
        await shows(pilot, "Start training?", "10 epochs")
        await pilot.press("escape")
        await hides(pilot, "Start training?")
        assert not any(engine.handed for engine in app.engines)


@pytest.mark.parametrize("size", [SMALL, *more(WIDE)])
async def test_a_bad_value_says_what_is_allowed_and_is_kept(size: tuple[int, int]) -> None:
    app = StubApp()
    async with app.run_test(size=size) as pilot:
        await fill(pilot, "batch_size", "n0one")
        await shows(pilot, "must be an integer of at least 1", "batch size: must be")
        places = [each.region for each in screen_of(pilot).form.shown]
        await pilot.press("escape", "s")
        assert field(pilot, "batch_size").picker.value == "n0one"
        assert field(pilot, "batch_size").picker.input.has_focus
        assert list_runs() == []
        await pilot.press("3", "2")  # what is focused is selected, so that typing replaces it
        await hides(pilot, "must be")
        assert [each.region for each in screen_of(pilot).form.shown] == places  # an error moves nothing
        await shows(pilot, "accel-tui train --batch-size 32")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("epochs", "1e3", "must be an integer of at least 1"),
        pytest.param("learning_rate", "1e-3x", "must be a number above 0", marks=pytest.mark.campaign),
        ("data", " ", "no dataset given; known: d"),
    ],
)
async def test_nothing_that_is_typed_is_swallowed_and_what_is_wrong_is_said(name: str, text: str, said: str) -> None:
    async with StubApp().run_test(size=WIDE) as pilot:
        await fill(pilot, name, text)
        await shows(pilot, said)
        await pilot.press("ctrl+s")
        assert field(pilot, name).picker.value == text
        assert list_runs() == []


async def test_the_command_follows_every_change() -> None:
    async with StubApp().run_test(size=WIDE) as pilot:
        await fill(pilot, "model", "mlp")
        await pilot.press("tab")
        await fill(pilot, "learning_rate", "0.01")
        await shows(pilot, "$ accel-tui train --model mlp --learning-rate 0.01")
        await pilot.press("f5")
        assert pilot.app.clipboard == "accel-tui train --model mlp --learning-rate 0.01"
        await pilot.press("f6")
        await shows(pilot, "Reset the form?", "2 fields: model, learning rate")
        await pilot.press("r")
        await hides(pilot, "--model")


async def test_typing_filters_and_enter_takes() -> None:
    async with StubApp().run_test(size=SMALL) as pilot:
        await fill(pilot, "data", "fash")
        await shows(pilot, "fashion_mnist")
        await hides(pilot, "built in 50,000")  # of another dataset
        await pilot.press("enter")
        assert field(pilot, "data").picker.value == "fashion_mnist"
        await shows(pilot, "--data fashion_mnist", "60,000 + 10,000 validation", "digits")


async def test_escape_puts_the_data_back_in_place_of_what_filters_the_list() -> None:
    async with StubApp().run_test(size=SMALL) as pilot:
        before = field(pilot, "data").picker.value
        await fill(pilot, "data", "fash")
        await hides(pilot, "built in 50,000")
        await pilot.press("escape")
        picker = field(pilot, "data").picker
        assert (picker.value, picker.input.is_editing, picker.input.has_focus) == (before, False, True)


async def test_enter_opens_all_choices_and_escape_puts_the_text_back() -> None:
    async with StubApp().run_test(size=SMALL) as pilot:
        await fill(pilot, "optimizer", "")
        await pilot.press("enter")
        await shows(pilot, "nadam", "adagrad")
        await pilot.press("down", "escape")
        assert field(pilot, "optimizer").picker.value == "auto"
        await pilot.press("enter", "down", "enter")
        assert field(pilot, "optimizer").picker.value == "adam"
        await pilot.press("enter", "up", "up", "tab")
        assert field(pilot, "optimizer").picker.value == "lion"
        assert field(pilot, "name").picker.input.has_focus  # what follows on the screen


async def test_a_list_begins_below_the_text() -> None:
    async with StubApp().run_test(size=SMALL) as pilot:
        await fill(pilot, "xla", "")
        await pilot.press("enter")
        picker = field(pilot, "xla").picker
        below = picker.input.region.bottom_left
        await until(pilot, lambda: picker.query(OptionList) and picker.listed.region.offset == below, "the list")


async def test_a_list_cuts_no_word_beside_it() -> None:
    for size in (SMALL, WIDE):
        async with StubApp().run_test(size=size) as pilot:
            for name in ("model", "strategy", "xla"):
                await fill(pilot, name, "")
                await pilot.press("enter")
                picker = field(pilot, name).picker
                await until(pilot, lambda picker=picker: picker.query(OptionList) and picker.listed.region, "the list")  # type: ignore[misc]
                left, right = picker.listed.region.x, picker.listed.region.right
                assert left == picker.region.x or (left, right) == (0, size[0]), name
                await pilot.press("escape")


async def test_a_message_stays_that_comes_and_goes_with_each_key() -> None:
    async with StubApp().run_test(size=SMALL) as pilot:
        await fill(pilot, "epochs", "")
        epochs = field(pilot, "epochs").picker.input
        for text in ("", "5", "5.", "5.5"):  # as fast as a terminal hands them over
            epochs.value = text
        await shows(pilot, "epochs: must be an integer of at least 1")  # beside Start
        # The field's own, and whole in the hint.
        await until(pilot, lambda: text_of(pilot).count("must be an integer of at least 1") == 3, "the field's own")
        epochs.value = "5"
        await until(pilot, lambda: "must be" not in text_of(pilot), "no message")


async def test_arrows_walk_through_the_fields_of_all_panels() -> None:
    async with StubApp().run_test(size=SMALL) as pilot:
        await stays(pilot)
        assert field(pilot, "data").picker.input.has_focus
        await pilot.press("down")
        places = screen_of(pilot).form.places
        assert places.has_focus
        await pilot.press(*["down"] * len(places.places))
        assert field(pilot, "model").picker.input.has_focus
        await shows(pilot, "batch size")
        await pilot.press("down", "down", "up")
        assert field(pilot, "epochs").picker.input.has_focus
        for name in ("batch_size", "learning_rate", "strategy", "devices", "name"):
            await pilot.press("down")
            assert field(pilot, name).picker.input.has_focus, name
        await pilot.press("down")
        assert isinstance(pilot.app.focused, Button)
        await pilot.press("shift+tab")
        assert field(pilot, "model").picker.input.has_focus


async def test_with_the_focus_alone_letters_are_keys_and_enter_starts_no_training() -> None:
    app = StubApp()
    async with app.run_test(size=WIDE) as pilot:
        await shows(pilot, "engine: ready", "s Start")
        keys = text_of(pilot).splitlines()[-1]
        await pilot.press("tab", "down")
        assert text_of(pilot).splitlines()[-1] == keys  # the bar does not depend on the focus
        await pilot.press("t")
        assert app.theme == "accel-light"
        await pilot.press("enter", *"5x")
        assert text_of(pilot).splitlines()[-1] == keys
        assert field(pilot, "epochs").picker.value == "5x"
        await pilot.press("escape", "7")
        assert field(pilot, "epochs").picker.value == "7"
        await pilot.press("enter", "Y")
        assert app.clipboard == "accel-tui train --epochs 7"
        assert list_runs() == []


async def test_a_key_that_needs_a_valid_plan_goes_to_what_is_wrong() -> None:
    app = StubApp()
    async with app.run_test(size=SMALL) as pilot:
        await stays(pilot)
        screen_of(pilot).form.set("patience", "many")
        for key in ("Y", "b", "F", "a"):
            await pilot.press(key)
            await until(pilot, lambda: field(pilot, "patience").picker.input.has_focus, key)
            await shows(pilot, "must be an integer of at least 1")
            await pilot.press("escape", "tab")


async def test_a_strategy_that_does_not_fit_is_greyed_with_its_reason() -> None:
    async with StubApp().run_test(size=SMALL) as pilot:
        await fill(pilot, "strategy", "")
        await pilot.press("enter")
        await shows(pilot, "mirrored", "needs two devices of the same kind", "virtual CPUs set", "esc closes the list")
        listed = field(pilot, "strategy").picker.listed
        assert {option.prompt.plain.split()[0]: option.disabled for option in listed.options}["mirrored"]
        for _ in listed.options:
            await pilot.press("down")  # what does not fit cannot be reached
            assert listed.highlighted_option
            assert not listed.highlighted_option.disabled
        await pilot.press("escape")
        await fill(pilot, "virtual_cpus", "2")
        await fill(pilot, "strategy", "mirrored")
        await pilot.press("tab")
        await shows(pilot, "32 on each of cpu:0, cpu:1")


async def test_a_list_that_is_open_keeps_its_choices_and_its_cursor_when_devices_are_found() -> None:
    async with StubApp().run_test(size=SMALL) as pilot:
        await stays(pilot)
        await fill(pilot, "strategy", "")
        await pilot.press("enter", "down")
        await shows(pilot, "mirrored")
        listed = field(pilot, "strategy").picker.listed
        names, at = [option.id for option in listed.options], listed.highlighted
        assert listed.get_option("=mirrored").disabled
        pilot.app.inventory = with_gpus(2)  # type: ignore[attr-defined]
        await until(pilot, lambda: not listed.get_option("=mirrored").disabled, "what is possible now")
        assert ([option.id for option in listed.options], listed.highlighted) == (names, at)


async def test_fields_come_and_go_with_what_they_mean_and_keep_what_was_typed() -> None:
    async with StubApp().run_test(size=WIDE) as pilot:
        await shows(pilot, "engine: ready")
        assert "local workers" not in text_of(pilot)
        await fill(pilot, "strategy", "multi")
        await pilot.press("enter")
        await shows(pilot, "strategy: needs TF_CONFIG", "local workers", "needs TF_CONFIG")
        places = [each.field for each in screen_of(pilot).query(Field)]
        assert places == [each.field for each in screen_of(pilot).form.fields if each.field in places]
        await fill(pilot, "local_workers", "3")
        await shows(pilot, "--strategy multi-worker --local-workers 3")
        await fill(pilot, "strategy", "default")
        await pilot.press("tab")
        await hides(pilot, "local workers")
        await hides(pilot, "--local-workers")
        await fill(pilot, "strategy", "multi-worker")
        await pilot.press("tab")
        await shows(pilot, "--strategy multi-worker --local-workers 3")
        await pilot.press("f6")
        await shows(pilot, "Reset the form?", "strategy, local workers")
        await pilot.press("r")
        await hides(pilot, "local workers")
        assert text_of(pilot).count("$ accel-tui train ") == 1


async def test_a_plan_that_is_loaded_shows_what_is_its_own() -> None:
    plan = Plan(strategy="multi-worker", local_workers=2, reduction="ring", rate_scaling="linear")
    async with StubApp().run_test(size=WIDE) as pilot:
        await shows(pilot, "engine: ready")
        screen_of(pilot).show_subject(plan)
        await shows(pilot, "local workers   2", "reduction       ring", "rate scaling    linear", "4 of ")
        assert screen_of(pilot).form.filled.plan == plan


async def test_choosing_by_mouse() -> None:
    async with StubApp().run_test(size=SMALL) as pilot:
        await stays(pilot)
        screen_of(pilot).form.go_to("xla")
        await until(pilot, lambda: field(pilot, "xla").picker.input.has_focus and is_in_body(pilot, "xla"), "the field")
        picker = field(pilot, "xla").picker
        await pilot.click(picker, offset=(picker.size.width - 2, 0))
        await until(pilot, lambda: picker.query(OptionList) and picker.listed.region.height > 2, "the list")
        await pilot.click(picker.listed, offset=(3, 2))
        await until(pilot, lambda: field(pilot, "xla").picker.value == "off", "the choice")


async def test_start_makes_a_run_hands_it_over_and_shows_it() -> None:
    app = StubApp()
    async with app.run_test(size=SMALL) as pilot:
        await shows(pilot, "engine: ready")
        await fill(pilot, "epochs", "3")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, RunScreen), "the run's screen")
        (run,) = list_runs()
        assert app.engines[0].handed == [run.directory]
        assert app.screen.directory == run.directory
        reader = RunReader(run.directory)
        assert reader.info().plan == Plan(model="cnn", epochs=3)
        reader.close()
        assert len(app.engines) == 1
        # Back on the plan nothing is lost, and the next engine is warmed.
        app.open_screen(Screens.NEW_RUN)
        await until(pilot, lambda: len(app.engines) == 2, "the next engine")
        assert field(pilot, "epochs").picker.value == "3"
    assert [engine.closed for engine in app.engines] == [False, True]


async def test_what_was_started_stays_in_a_field_whose_list_was_open() -> None:
    app = StubApp()
    async with app.run_test(size=SMALL) as pilot:
        await shows(pilot, "engine: ready")
        await fill(pilot, "model", "mlp")
        await shows(pilot, "esc closes the list")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, RunScreen), "the run's screen")
        app.open_screen(Screens.NEW_RUN)
        await hides(pilot, "esc closes the list")
        await pilot.press("escape")
        assert field(pilot, "model").picker.value == "mlp"


async def test_a_second_press_starts_no_second_run() -> None:
    app = StubApp()
    async with app.run_test(size=SMALL) as pilot:
        await shows(pilot, "engine: ready")
        app.launcher.start_run(Plan(), ())
        app.launcher.start_run(Plan(), ())
        await until(pilot, lambda: isinstance(app.screen, RunScreen), "the run's screen")
        assert len(list_runs()) == 1


async def test_a_run_that_starts_late_does_not_take_the_screen_that_was_opened_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_go_on, prepare = threading.Event(), start_run.prepare_run
    monkeypatch.setattr(start_run, "prepare_run", lambda *given: may_go_on.wait() and prepare(*given))
    app = StubApp()
    async with app.run_test(size=SMALL, notifications=True) as pilot:
        await shows(pilot, "engine: ready")
        await pilot.press("s", "r")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen), "the list")
        may_go_on.set()
        await shows(pilot, "r lists it")
        assert isinstance(app.screen, RunsScreen)


async def test_a_question_that_would_come_late_is_not_asked_over_another_screen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_go_on = threading.Event()
    monkeypatch.setattr(free_devices, "busy_runs", lambda *_: may_go_on.wait() and ("m8w3",))
    app = StubApp()
    async with app.run_test(size=SMALL, notifications=True) as pilot:
        await begun(pilot)
        await pilot.press("s", "r")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen), "the list")
        may_go_on.set()
        await shows(pilot, "There is a question first")
        assert isinstance(app.screen, RunsScreen)
        assert not list_runs()
        await pilot.press("escape", "s")
        await shows(pilot, "Start beside another run?")


async def test_a_run_that_cannot_be_made_says_why(home: Path) -> None:
    home.write_text("a file is in the way")
    app = StubApp()
    async with app.run_test(size=SMALL) as pilot:
        await shows(pilot, "engine: ready")
        await fill(pilot, "name", "mine")
        await pilot.press("ctrl+s")
        await shows(pilot, "cannot create the run directory", "mine")
        await fill(pilot, "name", "yours")
        await shows(pilot, "engine: ready")  # the engine is still there for the next try
        assert app.engines[0].handed == []


async def test_without_tensorflow_the_screen_opens_and_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        engine_process, "find_installation", lambda: Installation(problem="No TensorFlow is installed: pip it")
    )

    class Bare(StubApp):
        def __init__(self) -> None:
            super().__init__()
            self.launcher._make_engine = warm_engine.WarmEngine

    async with Bare().run_test(size=WIDE) as pilot:
        await shows(pilot, "No TensorFlow is installed: pip it", "waiting for TensorFlow", "230 total")
        await pilot.press("s")
        await until(pilot, lambda: screen_of(pilot).launch.problem, "the refusal")
        assert list_runs() == []


async def test_the_engine_is_followed_from_import_to_its_end() -> None:
    app = StubApp(ready=False)
    async with app.run_test(size=WIDE) as pilot:
        await shows(pilot, "engine: importing TensorFlow…", "waiting for TensorFlow")
        app.engines[0].be(EngineState.READY)
        await shows(pilot, "engine: ready (TensorFlow 2.21.0)", "94,634 in 14 layers")
        app.engines[0].be(EngineState.FAILED, "the engine exited: out of memory")
        await shows(pilot, "the engine exited: out of memory")


async def test_what_an_engine_could_not_say_because_it_got_a_run_is_no_answer() -> None:
    app = StubApp()
    async with app.run_test(size=WIDE) as pilot:
        await shows(pilot, "94,634 in 14 layers")
        panel, other = screen_of(pilot).query_one(SummaryPanel), WarmEngine.__new__(WarmEngine)
        panel._take_description(other, ("auto", "digits", None), Description(problem="no answer"))
        await pilot.pause()
        await shows(pilot, "94,634 in 14 layers")
        assert "no answer" not in text_of(pilot)


async def test_the_model_is_counted_anew_only_when_it_is_another() -> None:
    app = StubApp()
    async with app.run_test(size=WIDE) as pilot:
        await shows(pilot, "94,634 in 14 layers")
        engine = app.engines[0]
        engine.description = Description(101_770, 101_770, layers=5, input_shape=(8, 8, 1), classes=10)
        await fill(pilot, "epochs", "20")
        await shows(pilot, "460 total")
        await fill(pilot, "model", "mlp")
        await pilot.press("tab")
        await shows(pilot, "101,770 in 5 layers")
        assert [plan.model for plan in engine.described] == ["auto", "mlp"]
        engine.description = Description(problem="it raises ValueError")
        await fill(pilot, "model", "resnet20")
        await pilot.press("tab")
        await shows(pilot, "it raises ValueError")


async def test_a_late_description_of_another_model_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    released, shown_then = threading.Event(), dict[str, Description | None]()
    take, describe = SummaryPanel._take_description, StubEngine.describe

    def describe_slowly(self: StubEngine, plan: Plan) -> Description:
        found = describe(self, plan)
        if plan.model == "mlp":
            assert released.wait(60)
            return Description(101_770, 101_770, layers=5, input_shape=(8, 8, 1), classes=10)
        return found

    def note(self: SummaryPanel, engine: WarmEngine, subject: Subject, description: Description) -> None:
        take(self, engine, subject, description)
        shown_then[subject[0]] = self.description

    monkeypatch.setattr(StubEngine, "describe", describe_slowly)
    monkeypatch.setattr(SummaryPanel, "_take_description", note)
    app = StubApp()
    async with app.run_test(size=WIDE) as pilot:
        await shows(pilot, "94,634 in 14 layers")
        form = screen_of(pilot).form
        form.set("model", "mlp")
        await until(pilot, lambda: app.engines[0].described[-1].model == "mlp", "the slow model")
        form.set("model", "auto")
        await shows(pilot, "94,634 in 14 layers")
        released.set()
        await until(pilot, lambda: "mlp" in shown_then, "its description")
        assert shown_then["mlp"] is app.engines[0].description
        form.set("model", "mlp")
        await shows(pilot, "101,770 in 5 layers")


async def test_whether_workers_can_be_isolated_is_tried_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def why_not() -> str:
        threads.add(threading.current_thread())
        return "forbidden"

    threads: set[threading.Thread] = set()
    monkeypatch.setattr(network_namespace, "why_not", why_not)
    async with StubApp().run_test(size=HUGE) as pilot:
        for name, text in (("strategy", "multi-worker"), ("local_workers", "2"), ("isolate_workers", "on")):
            screen_of(pilot).form.set(name, text)
        await shows(pilot, "can run code as", "forbidden")
        assert threading.current_thread() not in threads
        screen_of(pilot).form.set("strategy", "default")
        await hides(pilot, "can run code as")


async def test_the_users_own_data_is_looked_into(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.npz", tmp_path / "bad.npz"
    np.savez(good, x=np.zeros((100, 8, 8, 1), np.float32), y=np.arange(100) % 5)
    bad.write_bytes(b"nothing of the kind")
    async with StubApp().run_test(size=WIDE) as pilot:
        await shows(pilot, "engine: ready")
        screen_of(pilot).form.set("data", str(good))
        await shows(pilot, "8x8x1 → 5 classes", "90 + 10 validation")
        screen_of(pilot).form.set("data", str(bad))
        await until(pilot, lambda: field(pilot, "data").error, "the reason")
        assert "data" in field(pilot, "data").error or "npz" in field(pilot, "data").error
        screen_of(pilot).form.set("data", "digits")
        await until(pilot, lambda: not field(pilot, "data").error, "digits")


async def test_a_late_survey_of_other_data_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, fast = tmp_path / "slow.npz", tmp_path / "fast.npz"
    for path, classes in ((slow, 5), (fast, 3)):
        np.savez(path, x=np.zeros((90, 8, 8, 1), np.float32), y=np.arange(90) % classes)
    started, released = threading.Event(), threading.Event()

    def survey_slowly(filled: ResolvedPlan) -> DatasetEntry | SurveyError:
        if filled.plan.data == str(slow):
            started.set()
            assert released.wait(60)
        return survey_form(filled)

    def take(self: SummaryPanel, subject: SurveySubject, found: DatasetEntry | SurveyError) -> None:
        original(self, subject, found)
        taken.append(subject[0])

    original, taken = SummaryPanel._take_survey, list[str]()
    monkeypatch.setattr(SummaryPanel, "_take_survey", take)
    monkeypatch.setattr(summary_panel, "survey_form", survey_slowly)
    async with StubApp().run_test(size=WIDE) as pilot:
        await shows(pilot, "engine: ready")
        form = screen_of(pilot).form
        form.set("data", str(slow))
        await until(pilot, started.is_set, "the thread")
        form.set("data", str(fast))
        await shows(pilot, "8x8x1 → 3 classes")
        released.set()
        await until(pilot, lambda: str(slow) in taken, "the slow data")
        await pilot.pause()
        assert form.surveyed
        assert form.surveyed.classes == 3
        await shows(pilot, "8x8x1 → 3 classes")


async def test_devices_of_every_kind_are_offered() -> None:
    async with StubApp(inventory=with_gpus(8)).run_test(size=HUGE) as pilot:
        await shows(pilot, "gpu:3", "auto: gpu:0", "Start")
        await fill(pilot, "strategy", "mirrored")
        await pilot.press("tab", "escape")
        await shows(pilot, "8 on each of gpu:0, gpu:1, gpu:2", "per device")
        await fill(pilot, "batch_size", "")
        await shows(pilot, "gpu:6, gpu:7")


def with_gpus(count: int) -> Inventory:
    """A machine with GPUs."""
    gpus = tuple(Device(f"gpu:{index}", "gpu", "NVIDIA L4", 24 * GIB) for index in range(count))
    return Inventory((Device("cpu:0", "cpu", "AMD EPYC", 16 * GIB, 4), *gpus))


@pytest.mark.parametrize("gpus", [pytest.param(4, marks=pytest.mark.campaign), 8])
async def test_with_many_gpus_there_is_room_for_start_what_it_means_and_runs_of_late(gpus: int) -> None:
    for _ in range(3):
        FakeEngine().begin().build().end()
    async with StubApp(inventory=with_gpus(gpus)).run_test(size=WIDE) as pilot:
        await shows(pilot, f"gpu:{gpus - 1}", "Recent runs", "Start", "7.6 MiB", "q Quit")
        await until(pilot, lambda: text_of(pilot).count("finished") == 3, "three runs")
        await shows(pilot, "Start")


async def test_a_tall_terminal_is_filled_with_runs_of_late_and_the_defaults_of_all_other_fields() -> None:
    for _ in range(10):
        FakeEngine().begin().build().end()
    async with StubApp().run_test(size=(250, 70)) as pilot:
        await until(pilot, lambda: text_of(pilot).count("finished") == 10, "all runs")
        await shows(pilot, "val every", "/ finds any of")


async def test_help_lists_the_keys_with_what_they_do() -> None:
    async with StubApp().run_test(size=WIDE) as pilot:
        await shows(pilot, "? Help")
        await pilot.press("question_mark")
        await shows(pilot, "Start training", "Add the run to the queue")
        await pilot.press("end")
        await shows(pilot, "Switch between the dark and the light theme", "^p")
        await pilot.press("escape")
        await hides(pilot, "Switch between the dark and the light theme")


async def test_the_palette_fills_fields_in() -> None:
    async with StubApp().run_test(size=WIDE) as pilot:
        await shows(pilot, "engine: ready")
        await pilot.press("ctrl+p")
        await shows(pilot, "Start training", "Light/dark")
        assert "palette" not in text_of(pilot)
        await pilot.press(*"resnet20")
        await shows(pilot, "model: resnet20")
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewRunScreen), "the end of the palette")
        await shows(pilot, "--model resnet20")


async def test_where_keys_have_no_room_the_palette_is_offered_which_finds_them() -> None:
    async with StubApp().run_test(size=(80, 24)) as pilot:
        await shows(pilot, "engine: ready", "^p Commands")
        assert "b Race" not in text_of(pilot)
        await pilot.press("ctrl+p", *"race")
        await shows(pilot, "(b)")


async def test_the_palette_finds_what_is_told_of_a_command_after_what_it_is_called() -> None:
    async with StubApp().run_test(size=(200, 60)) as pilot:
        await shows(pilot, "engine: ready", "^p Commands")
        await pilot.press("ctrl+p")
        await shows(pilot, "Start training", "Go to the panel before")
        told = text_of(pilot)
        assert told.index("Start training") < told.index("Go to the panel before")
        await pilot.press(*"list all")
        await hides(pilot, "Start training")
        await shows(pilot, "List all runs (r)")
        await pilot.press("down", "enter")
        await shows(pilot, "No run")


async def test_a_terminal_that_is_too_small_says_so_until_it_is_not() -> None:
    async with StubApp().run_test(size=(50, 12)) as pilot:
        await shows(pilot, "The terminal is 50x12", "at least 60x16")
        await pilot.resize_terminal(*SMALL)
        await shows(pilot, "Start", "1,437 + 360")
        await pilot.resize_terminal(80, 10)
        await shows(pilot, "The terminal is 80x10")


async def test_panels_are_named_in_the_border_after_a_resize_of_the_covered_form() -> None:
    async with StubApp().run_test(size=WIDE) as pilot:
        await shows(pilot, "1 Data", "2 Plan", "3 What will happen")
        for size, is_single in ((SMALL, True), (WIDE, False)):
            await pilot.press("question_mark")
            await until(pilot, lambda: not isinstance(pilot.app.screen, NewRunScreen), "the help")
            await pilot.resize_terminal(*size)
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(pilot.app.screen, NewRunScreen), "the form")
            panels = screen_of(pilot).form.panels
            await until(pilot, lambda: {bool(panel.tabs) for panel in panels} == {is_single}, "their names")  # noqa: B023


async def test_in_the_smallest_terminal_every_field_can_be_reached() -> None:
    async with StubApp().run_test(size=(60, 16)) as pilot:
        await shows(pilot, "Start")
        for name in screen_of(pilot).form.relevant:
            screen_of(pilot).form.go_to(name)
            await until(pilot, lambda name=name: is_in_body(pilot, name), name)  # type: ignore[misc]
        assert "Start" in text_of(pilot)


async def test_what_is_typed_after_a_click_replaces_the_text() -> None:
    app = StubApp()
    async with app.run_test(size=(120, 40)) as pilot:
        await stays(pilot)
        picker = app.screen.query_one("#model", Picker)
        await pilot.click("#model")
        await until(pilot, lambda: picker.is_open and picker.input.has_focus, "the list")
        await pilot.press(*"mlp", "enter")
        await until(pilot, lambda: picker.value == "mlp", "the choice")


HOUSES = "id,area,city,price\n" + "".join(
    f"{row},{40 + 3 * row if row % 5 else ''},{('Bonn', 'Trier')[row % 2]},{100.5 + row}\n" for row in range(60)
)


@pytest.fixture
def houses(tmp_path: Path) -> Path:
    path = tmp_path / "houses.csv"
    path.write_text(HOUSES)
    return path


async def test_fields_that_only_some_data_needs_are_there_for_that_data_only(houses: Path) -> None:
    async with StubApp().run_test(size=HUGE) as pilot:
        await stays(pilot)
        built_in = set(screen_of(pilot).form.relevant)
        assert not built_in & {"target", "features", "window", "split", "task", "last_batch"}
        screen_of(pilot).form.set("data", str(houses))
        await shows(pilot, "price, number")
        # The second goes once the table has been read, as its target is a number.
        of_images_and_classes = {"augmentation", "label_smoothing"}
        await until(
            pilot,
            lambda: set(screen_of(pilot).form.relevant) > built_in - of_images_and_classes,
            "the fields of a table",
        )
        assert not set(screen_of(pilot).form.relevant) & {"window", "horizon", "group", "tokenizer", "image_size"}
        screen_of(pilot).form.set("time", "id")
        screen_of(pilot).form.go_to("time")
        await shows(pilot, "window", "horizon", "group")
        screen_of(pilot).form.set("data", "digits")
        await until(pilot, lambda: set(screen_of(pilot).form.relevant) == built_in, "the form as before")
        await hides(pilot, "price, number")
        await shows(pilot, "$ accel-tui train")


async def test_columns_are_completed_and_the_look_follows_them(houses: Path) -> None:
    async with StubApp().run_test(size=HUGE) as pilot:
        screen_of(pilot).form.set("data", str(houses))
        await shows(pilot, "target", "2 columns → price", "∅12")
        screen_of(pilot).form.set("model", "mlp")
        await fill(pilot, "target", "pri")
        await shows(pilot, "number; 100.5")
        await pilot.press("enter")
        assert field(pilot, "target").picker.value == "price"
        await fill(pilot, "ignore", "i")
        await shows(pilot, "key; 0 to 59")
        await pilot.press("enter")
        await pilot.press(*",c")
        await shows(pilot, "category; Bonn")
        await pilot.press("enter")
        assert field(pilot, "ignore").picker.value == "id,city"
        await shows(pilot, "--target price --ignore id,city", "1 column → price")


async def test_a_column_that_does_not_exist_is_an_error_of_its_field(houses: Path) -> None:
    async with StubApp().run_test(size=HUGE) as pilot:
        screen_of(pilot).form.set("data", str(houses))
        await shows(pilot, "target")
        screen_of(pilot).form.set("target", "prize")  # which opens its group
        await until(pilot, lambda: screen_of(pilot).query("#field-target"), "the field")
        await until(pilot, lambda: "price" in field(pilot, "target").error, "what is wrong with the target")
        screen_of(pilot).form.set("target", "price")
        await until(pilot, lambda: not field(pilot, "target").error, "that it is right")


async def test_a_function_is_not_run_by_the_form(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def load():\n    raise SystemExit\n")
    app = StubApp()
    async with app.run_test(size=HUGE) as pilot:
        await shows(pilot, "94,634 in 14 layers")
        screen_of(pilot).form.set("data", f"{tmp_path / 'mine.py'}:load")
        await shows(pilot, "known once the data is read", "your function is not run")
        assert [plan.data for plan in app.engines[0].described] == ["digits"]


async def test_what_differs_from_the_defaults_is_seen_and_can_be_reset() -> None:
    async with StubApp().run_test(size=WIDE) as pilot:
        await stays(pilot)
        assert "•" not in text_of(pilot)
        assert {each.field for each in screen_of(pilot).form.fields} == set(FIRST), "nothing else is mounted"
        assert shown(pilot) == set(FIRST) - {"target"}
        screen_of(pilot).show_subject(Plan(optimizer="sgd", momentum=0.9, patience=3, batch_size=32))
        await shows(pilot, "• batch size", "• optimizer", "• momentum", "• patience", "4 of ")
        screen_of(pilot).form.go_to("momentum")
        await shows(pilot, "Momentum", "f7 resets it", "default 0: plain gradient descent")
        await pilot.press("f7")
        await hides(pilot, "• momentum")
        assert field(pilot, "momentum").picker.value == ""
        for name in ("optimizer", "patience"):
            screen_of(pilot).form.go_to(name)
            await until(pilot, lambda name=name: field(pilot, name).has_focus_within, name)  # type: ignore[misc]
            await pilot.press("f7")
            await hides(pilot, f"• {name}")
        await until(pilot, lambda: "momentum" not in shown(pilot), "only what differs, and where the focus is")
        await shows(pilot, "$ accel-tui train --batch-size 32")


async def test_resetting_the_form_asks_first_where_something_would_be_lost() -> None:
    async with StubApp().run_test(size=WIDE) as pilot:
        await stays(pilot)
        await pilot.press("f6")
        assert screen_of(pilot)  # there is nothing to ask
        screen_of(pilot).form.set("epochs", "ma")
        await shows(pilot, "• epochs")
        await pilot.press("f6")
        await shows(pilot, "Reset the form?", "1 field: epochs")
        await pilot.press("enter")
        await hides(pilot, "Reset the form?")
        assert field(pilot, "epochs").picker.value == "ma"
        await pilot.press("f6", "r")
        await hides(pilot, "• epochs")
        assert field(pilot, "epochs").picker.value == "10"


@pytest.mark.parametrize("key", ["f3", "slash"])
async def test_letters_right_after_the_key_are_for_the_finder(key: str) -> None:
    async with StubApp().run_test(size=SMALL) as pilot:
        await stays(pilot)
        if key == "f3":
            await fill(pilot, "name", "mine")
        type_ahead(pilot, key, *"decay")
        finder = screen_of(pilot).query_one(FieldFinder)
        await until(pilot, lambda: finder.is_open and finder.selected == "weight_decay", "the field")
        assert field(pilot, "name").picker.value == ("mine" if key == "f3" else "")


async def test_the_users_own_defaults_are_not_marked() -> None:
    async with StubApp().run_test(size=WIDE) as pilot:
        await stays(pilot)
        screen_of(pilot).form.defaults = Plan(epochs=3)
        screen_of(pilot).form.load(Plan(epochs=3))
        await shows(pilot, "--epochs 3")
        assert "•" not in text_of(pilot)
        screen_of(pilot).form.set("epochs", "10")
        await shows(pilot, "• epochs")
        screen_of(pilot).form.reset(["epochs"])
        await shows(pilot, "--epochs 3")


@pytest.mark.parametrize(
    ("typed", "found"), [pytest.param("clipno", "clip_norm", marks=pytest.mark.campaign), ("EarlyStopping", "patience")]
)
async def test_a_field_is_found_by_typing(typed: str, found: str) -> None:
    async with StubApp().run_test(size=SMALL) as pilot:
        await stays(pilot)
        await shows(pilot, "/ Find")
        await pilot.press("slash")
        await shows(pilot, "find a field, e.g. clip", "digits", "Number of epochs")
        await pilot.press(*typed)
        finder = screen_of(pilot).query_one(FieldFinder)
        await until(pilot, lambda: finder.selected and len(finder.listed.options) < 5, "fewer fields")
        names = [option.id for option in finder.listed.options]
        await pilot.press(*["down"] * names.index(found))
        await shows(pilot, SPECS[found].doc)
        await pilot.press("enter")
        await until(pilot, lambda: found in shown(pilot) and field(pilot, found).picker.input.has_focus, "the field")
        assert not finder.is_open
        await shows(pilot, "2 Plan")
        await pilot.press("f3")
        await shows(pilot, "find a field, e.g. clip")
        await pilot.press("escape")
        await shows(pilot, "s Start", "2 Plan")
        assert not finder.is_open
        assert field(pilot, found).picker.input.has_focus


async def test_f3_finds_a_field_wherever_the_focus_is() -> None:
    async with StubApp().run_test(size=SMALL) as pilot:
        await stays(pilot)
        finder = screen_of(pilot).query_one(FieldFinder)
        screen = screen_of(pilot)
        for place in (screen.query_one("#start"), screen.form.places, field(pilot, "data").picker.input):
            place.focus()
            await pilot.press("f3")
            assert finder.is_open, place
            await shows(pilot, "find a field, e.g. clip")
            await pilot.press("escape")
            await shows(pilot, "/ Find", "1 Data")
            assert place.has_focus


async def test_enter_accepts_what_was_typed_and_escape_leaves_the_text_at_once() -> None:
    async with StubApp().run_test(size=SMALL) as pilot:
        await stays(pilot)
        await fill(pilot, "data", "tab.csv")
        await pilot.press("escape")
        picker = field(pilot, "data").picker
        assert (picker.input.has_focus, picker.input.is_editing, picker.value) == (True, False, "tab.csv")
        await fill(pilot, "data", "table.csv")
        await pilot.press("enter")
        assert not picker.input.is_editing
        await pilot.press("slash", *"target")
        await until(pilot, lambda: screen_of(pilot).query_one(FieldFinder).is_open, "the finder")
        assert picker.value == "table.csv"


@pytest.mark.parametrize("wanted", ["clipvalue", ""])
async def test_what_is_typed_at_once_after_a_field_is_found_is_for_that_field(wanted: str) -> None:
    async with StubApp().run_test(size=SMALL) as pilot:
        await stays(pilot)
        await pilot.press("slash", *wanted)
        finder = screen_of(pilot).query_one(FieldFinder)
        await until(pilot, lambda: finder.selected == "clip_value" or (finder.selected and not wanted), "the field")
        name = finder.selected
        finder.action_choose()
        screen_of(pilot).query_one("#wanted", LineInput).value += "0.5"  # before the field is mounted
        await until(pilot, lambda: field(pilot, name).picker.value == "0.5", "the text in the field")
        assert field(pilot, name).picker.input.has_focus


async def test_a_field_that_does_not_fit_says_what_it_needs() -> None:
    async with StubApp().run_test(size=SMALL) as pilot:
        await stays(pilot)
        await pilot.press("slash", *"nesterov")
        await shows(pilot, "needs the optimizer sgd with momentum")
        await pilot.press("enter")
        assert screen_of(pilot).query_one(FieldFinder).is_open
        await pilot.press("x")
        await shows(pilot, "no field matches 'nesterovx'")


async def test_a_wrong_field_opens_its_group_and_one_that_its_message_names() -> None:
    async with StubApp().run_test(size=WIDE) as pilot:
        await stays(pilot)
        screen_of(pilot).form.set("patience", "many")
        await shows(pilot, "• patience", "must be an integer of at least 1")
        assert field(pilot, "patience").error
        assert "virtual_cpus" not in shown(pilot)
        screen_of(pilot).form.set("strategy", "mirrored")
        await until(pilot, lambda: "virtual_cpus" in shown(pilot), "the field that would help")


async def test_the_palette_finds_folded_fields_by_other_names() -> None:
    async with StubApp().run_test(size=WIDE) as pilot:
        await stays(pilot)
        await pilot.press("ctrl+p", *"clipvalue")
        await shows(pilot, "go to clip value")
        await pilot.press("down", "enter")
        await until(pilot, lambda: "clip_value" in shown(pilot), "the field")
        assert field(pilot, "clip_value").picker.input.has_focus


async def test_enter_goes_to_the_field_that_its_value_has_shown() -> None:
    async with StubApp().run_test(size=SMALL) as pilot:
        await stays(pilot)
        await fill(pilot, "patience", "")
        type_ahead(pilot, "5", "enter")
        await until(pilot, lambda: "min_delta" in shown(pilot), "the field that its value shows")
        await until(pilot, lambda: field(pilot, "min_delta").picker.input.has_focus, "the focus")


@pytest.fixture
def data_folder(houses: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a table, and one in a folder."""
    (houses.parent / "more").mkdir()
    (houses.parent / "more" / "cars.csv").write_text(HOUSES)
    monkeypatch.chdir(houses.parent)
    return houses.parent


@pytest.mark.parametrize("size", [SMALL, *more(WIDE)])
async def test_data_is_chosen_from_a_list_through_folders(size: tuple[int, int], data_folder: Path) -> None:
    async with StubApp().run_test(size=size) as pilot:
        await shows(pilot, "houses.csv", "table", "more/", "folder", "built in")
        await pilot.press("down", "enter")
        await shows(pilot, "--data houses.csv", "2 columns → price")
        await pilot.press("down", "right")
        await shows(pilot, "cars.csv", "./more/")
        await pilot.press("enter")
        await shows(pilot, "--data more/cars.csv")
        await pilot.press("left")
        await shows(pilot, "houses.csv", "more/")


async def test_of_several_folders_the_last_one_is_listed_however_late_the_others_are(
    data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, fast = data_folder / "more", data_folder / "fast"
    fast.mkdir()
    started, released = threading.Event(), threading.Event()

    def list_slowly(folder: Path) -> Listing:
        if folder == slow:
            started.set()
            assert released.wait(60)
        return list_folder(folder)

    def take(self: DataList, listing: Listing) -> None:
        original(self, listing)
        taken.append(listing.folder)

    async def start() -> None:
        taken.clear()
        started.clear()
        released.clear()
        listed.filter(f"{slow}/")
        await until(pilot, started.is_set, "the thread")

    async def release() -> None:
        released.set()
        await until(pilot, lambda: slow in taken, "the slow folder")

    original, taken = DataList._take, list[Path]()
    monkeypatch.setattr(DataList, "_take", take)
    monkeypatch.setattr(data_places, "list_folder", list_slowly)
    async with StubApp().run_test(size=SMALL) as pilot:
        await shows(pilot, "houses.csv")
        listed = screen_of(pilot).query_one(DataList)
        await start()
        listed.filter(f"{fast}/")
        await until(pilot, lambda: listed.folder == fast, "the fast folder")
        await release()
        assert listed.folder == fast
        await start()
        listed.filter(f"{fast}/")  # which is still shown
        await release()
        assert listed.folder == fast
        await start()
        listed.refresh_folder(())
        await release()
        assert listed.folder == slow


async def test_a_typed_path_is_completed_by_tab(data_folder: Path) -> None:
    async with StubApp().run_test(size=SMALL) as pilot:
        await shows(pilot, "houses.csv")
        await fill(pilot, "data", "mo")
        await pilot.press("tab")
        picker = field(pilot, "data").picker
        assert picker.value == "more/"
        await shows(pilot, "cars.csv")
        await pilot.press("tab")
        assert picker.value == "more/cars.csv"
        assert picker.input.is_editing
        await pilot.press("enter", "s")
        await until(pilot, lambda: list_runs(), "the run")


@pytest.mark.parametrize("size", [SMALL, *more(WIDE)])
async def test_the_target_is_chosen_in_the_preview(
    size: tuple[int, int], data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(self: PreviewReading, plan: Plan, entry: DatasetEntry) -> Preview:
        return Preview(describe_loaded(plan.data, plan.data_options))  # in this process

    monkeypatch.setattr(PreviewReading, "read", read)
    async with StubApp().run_test(size=size) as pilot:
        await shows(pilot, "houses.csv")
        screen_of(pilot).form.set("data", "houses.csv")
        await shows(pilot, "∅12", "▅▅▅▇")
        preview = screen_of(pilot).query_one(DataPreview)
        await until(pilot, lambda: preview.can_focus, "columns to choose")
        preview.focus()
        await pilot.press("down", "down", "enter")
        await shows(pilot, "--target area", "if invalid skip leaves")  # in the words of the form: some have no area
        screen_of(pilot).form.set("target", "price")
        await until(pilot, lambda: preview.can_focus, "the columns again")
        screen_of(pilot).form.set("data", str(data_folder / "none.csv"))
        await shows(pilot, "data: no such file")  # where the preview was
        await until(pilot, lambda: not preview.can_focus, "nothing to choose")


async def test_a_working_directory_that_is_removed_does_not_end_the_dashboard(
    data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data_folder / "more")
    async with StubApp().run_test(size=SMALL) as pilot:
        await shows(pilot, "cars.csv", "engine: ready")
        shutil.rmtree(data_folder / "more")
        await pilot.resize_terminal(*WIDE)
        await shows(pilot, "1 Data", "3 What will happen", "s Start")
        await pilot.press("s")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "the run")


async def test_links_that_lead_in_a_circle_are_a_problem_of_the_folder(data_folder: Path) -> None:
    (data_folder / "loop").symlink_to("loop")
    async with StubApp().run_test(size=WIDE) as pilot:
        await shows(pilot, "houses.csv")
        await fill(pilot, "data", "loop/")
        await shows(pilot, "symbolic")  # the path is wrapped with it
        await pilot.press("escape")
        await shows(pilot, "symbolic", "../")
