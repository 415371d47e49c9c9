"""The names of themes and keys that settings may have."""

from pathlib import Path

import pytest
from textual.theme import BUILTIN_THEMES

from accel_tui import keymap
from accel_tui.app import key_bindings
from accel_tui.settings import user_settings
from accel_tui.settings.user_settings import Settings, SettingSource

KEYS = """
app.help=question_mark,f1 app.new-run=N app.queue=Q app.runs=r,ctrl+r app.searches=S
app.interrupt=ctrl+c app.palette=ctrl+p app.quit=q app.repaint=ctrl+l
app.suspend=ctrl+z app.theme=t,f2 charts.back=escape charts.clip=o charts.cursor=v charts.down=down
charts.end=end charts.far-left=shift+left charts.far-right=shift+right charts.full-screen=f,enter
charts.home=home charts.in=plus,equals_sign charts.left=left charts.log=y charts.out=minus charts.right=right
charts.select=a charts.smooth=m charts.up=up charts.whole=0 charts.x=x compare.table=tab
confusion.down=down confusion.far-left=shift+left confusion.far-right=shift+right confusion.left=left
confusion.list=ampersand confusion.page-down=pagedown confusion.page-up=pageup confusion.percent=percent_sign
confusion.right=right confusion.up=up diagnostics.back=w diagnostics.quit=q diagnostics.tab-1=1
diagnostics.tab-2=2 diagnostics.tab-3=3 diagnostics.validate=V dialog.back=escape dialog.down=down dialog.up=up
gallery.end=end gallery.filter=ampersand gallery.home=home
gallery.larger=plus,equals_sign gallery.next=right,pagedown,down gallery.previous=left,pageup,up
gallery.smaller=minus help.close=question_mark,f1,q list.down=j,down
list.end=end list.home=home list.left=left list.page-down=pagedown list.page-up=pageup list.right=right
list.up=k,up log.close=escape log.filter=ampersand log.level=L log.next=full_stop log.previous=comma log.search=slash
new-run.copy=Y,f5 new-run.defaults=f6 new-run.down=down new-run.page-down=pagedown
new-run.panel=tab new-run.panel-back=shift+tab data.take=enter data.open=right data.up=left preview.target=enter
new-run.page-up=pageup new-run.start=s,ctrl+s new-run.up=up picker.accept=tab
picker.close=escape picker.down=down picker.enter=enter picker.page-down=pagedown picker.page-up=pageup
picker.up=up question.next=right,down question.previous=left,up screen.back=escape
run.checkpoint=C run.continue=R run.detach=d run.details=i run.diagnostics=w run.learning-rate=e run.log=l
run.pause=p,space run.quit=q run.search=slash run.stop=s runs.compare=c runs.continue=R
runs.delete=delete,backspace runs.duplicate=n runs.edit=e runs.filter=slash runs.open-newest=enter
select-charts.default=f6 select-charts.done=a,q table.open=enter
table.reverse=exclamation_mark table.select-down=shift+down table.select-up=shift+up table.select=space
table.sort-previous=less_than_sign table.sort=greater_than_sign
"""
"""Ids that settings may have, with their default keys."""

SOURCE = SettingSource(Path("s.toml"), {"theme": 1, "keys.run.pause": 2, "keys.run.stop": 3})


def said(**keys: str) -> list[str]:
    chosen = {name.replace("_", ".", 1): value for name, value in keys.items()}
    return keymap.key_errors(Settings(keys=chosen, source=SOURCE), key_bindings())


@pytest.mark.parametrize("theme", ["auto", "accel-ansi", *BUILTIN_THEMES])
def test_every_theme_can_be_named(theme: str) -> None:
    assert keymap.theme_errors(Settings(theme=theme)) == []


def test_an_unknown_theme_is_told() -> None:
    (mistake,) = keymap.theme_errors(Settings(theme="drakula", source=SOURCE))
    assert mistake == "s.toml:1: unknown theme 'drakula'; did you mean dracula?"


def test_every_key_is_known_with_what_it_does() -> None:
    keys = key_bindings()
    assert {"app.help", "new-run.start", "picker.close", "run.pause", "charts.in", "table.open", "help.close"} <= set(
        keys
    )
    assert keys["app.help"].keys == ("question_mark", "f1")
    assert keys["app.help"].description == "Show the keys of this screen"
    assert keys["help.close"].modal
    assert not keys["app.help"].modal


@pytest.mark.parametrize(
    "key", ["x", "X", "?", "ctrl+x", "ctrl+shift+left", "f5", "space", "comma", "pagedown", "+", "é"]
)
def test_keys_of_every_kind_can_be_set(key: str) -> None:
    assert [mistake for mistake in said(run_pause=key) if "no keyboard" in mistake] == []


@pytest.mark.parametrize("key", ["foo", "control+x", "ctrl+foo", ""])
def test_what_no_keyboard_has_is_refused(key: str) -> None:
    (mistake,) = said(run_pause=f"f9,{key}")
    assert mistake.startswith(f"s.toml:2: run.pause = 'f9,{key}': unknown key '{key}'; use e.g. x, ctrl+x")


def test_an_unknown_id_is_told_with_the_nearest() -> None:
    (mistake,) = said(run_puase="f9")
    assert mistake.startswith("s.toml: unknown key binding 'run.puase'; did you mean run.pause")


def test_two_uses_of_a_key_are_told() -> None:
    assert [mistake for mistake in said(run_pause="question_mark") if "app.help" in mistake] == [
        "s.toml:2: run.pause = 'question_mark': question_mark is already bound to app.help "
        "(Show the keys of this screen); "
        "use another key, or set another key for app.help in [keys]"
    ]
    assert any("run.pause" in mistake and "run.stop" in mistake for mistake in said(run_pause="f9", run_stop="f9"))
    assert any("charts.in" in mistake for mistake in said(run_pause="+"))


def test_a_key_that_was_given_another_is_free() -> None:
    assert said(run_pause="question_mark", app_help="f9") == []


def test_a_dialog_may_not_take_a_key_that_works_everywhere() -> None:
    (mistake,) = said(help_close="ctrl+c")
    assert "ctrl+c is already bound to app.interrupt" in mistake


def test_screens_that_are_never_together_may_share_a_key() -> None:
    assert said(**{"new-run.start": "p"}, help_close="q") == []


def test_those_that_take_turns_may_be_moved_together() -> None:
    assert said(app_quit="f9", run_quit="f9") == []


@pytest.mark.parametrize("known", KEYS.split())
def test_an_id_names_its_action(known: str, tmp_path: Path) -> None:
    name, _, pressed = known.partition("=")
    file = tmp_path / "settings.toml"
    file.write_text(f'[keys]\n"{name}" = "f9"\n')
    settings, errors = user_settings.read_settings(file)
    assert errors == []
    assert settings.keys == {name: "f9"}
    assert ",".join(key_bindings()[name].keys) == pressed
    assert settings.source.line(f"keys.{name}") == 2
    assert keymap.key_errors(settings, key_bindings()) == []
