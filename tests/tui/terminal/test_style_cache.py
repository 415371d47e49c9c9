"""What the sheet remembers of a widget is what Textual would work out anew."""

import pytest
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.widget import Widget

from accel_tui.screens.help_screen import HelpScreen
from accel_tui.screens.new_run_screen import NewRunScreen
from accel_tui.screens.question_screen import Answer, QuestionScreen
from accel_tui.screens.run_screen import RunScreen
from accel_tui.screens.runs_screen import RunsScreen
from accel_tui.terminal import style_cache
from accel_tui.terminal.style_cache import ComponentStyles, StyleCache
from accel_tui.widgets.chart.chart import Chart
from tui.fake_engine import FakeEngine
from tui.stand_ins import StubApp, shows, until

WALK = (
    ("down", NewRunScreen),
    ("down", NewRunScreen),
    ("enter", NewRunScreen),
    ("escape", NewRunScreen),
    ("f2", NewRunScreen),
    ("ctrl+r", RunsScreen),
    ("enter", RunScreen),
    ("f", RunScreen),
    ("f", RunScreen),
    ("l", RunScreen),
    ("i", RunScreen),
    ("t", RunScreen),
    ("question_mark", HelpScreen),
    ("escape", RunScreen),
    ("escape", RunsScreen),
)
"""Keys that give the focus, classes and another theme, with the screens that they lead to."""


@pytest.fixture(autouse=True)
def run() -> None:
    engine = FakeEngine().begin().build().train(20)
    engine.end()
    engine.close()


def rules_of(node: DOMNode) -> dict[str, object]:
    rules = node.styles.base._rules
    return {name: getattr(value, "name", value) for name, value in rules.items()}  # there are many layouts of a name


def check(app: StubApp) -> None:
    """Compare what all widgets, and their parts, look like with what Textual makes of them."""
    for widget in app.screen.walk_children(with_self=True):
        before = rules_of(widget)
        Stylesheet.apply(app.stylesheet, widget)
        assert rules_of(widget) == before, f"{widget} on {app.screen}"
        for name in widget._get_component_classes():
            part = DOMNode(classes=name)
            part._attach(widget)
            Stylesheet.apply(app.stylesheet, part)
            assert rules_of(widget._component_styles[name].base.node) == rules_of(part), f"{name} of {widget}"


def test_this_version_of_textual_is_understood() -> None:
    assert style_cache.TEXTUAL_SUPPORTED


async def test_all_looks_as_textual_would_have_it() -> None:
    app = StubApp()
    async with app.run_test(size=(160, 45)) as pilot:
        await shows(pilot, "finished")
        for key, screen in WALK:
            await pilot.press(key)
            await until(pilot, lambda screen=screen: isinstance(app.screen, screen), f"the screen that {key} leads to")
            await pilot.pause()
            await app.animator.wait_until_complete()
            check(app)
    assert isinstance(app.stylesheet, StyleCache)


async def test_parts_are_worked_out_only_when_they_are_painted() -> None:
    app = StubApp()
    async with app.run_test(size=(160, 45)) as pilot:
        await shows(pilot, "finished")
        await pilot.press("r")
        await shows(pilot, "begun")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen) and app.screen.query("#loss"), "the run")
        await shows(pilot, "epoch")
        parts = app.screen.query_one("#loss", Chart)._component_styles
        assert isinstance(parts, ComponentStyles)
        assert 0 < len(parts) < len(Chart.COMPONENT_CLASSES)


async def test_a_widget_that_looks_as_before_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    app = StubApp()
    async with app.run_test(size=(160, 45)) as pilot:
        await shows(pilot, "finished")
        app.screen.update_node_styles()
        given: list[DOMNode] = []
        replace = Stylesheet.replace_rules

        def note(node: Widget, rules: object, animate: bool = False) -> None:
            given.append(node)
            replace(node, rules, animate)

        monkeypatch.setattr(app.stylesheet, "replace_rules", note)
        app.screen.update_node_styles()
        assert not given
        app.screen.toggle_class("-narrow")
        assert given


async def test_what_is_asked_lets_the_screen_behind_it_be_seen() -> None:
    app = StubApp()
    async with app.run_test(size=(160, 45)) as pilot:
        await shows(pilot, "finished")  # the sheets that were parsed ahead are taken by now
        app.push_screen(QuestionScreen("Really?", "", [Answer("yes", "Yes", "y")]))
        await until(pilot, lambda: isinstance(app.screen, QuestionScreen), "the question")
        assert app.screen.styles.background.a < 1
