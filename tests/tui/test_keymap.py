"""The names of themes and keys that settings may have."""

from pathlib import Path

import pytest
from textual.theme import BUILTIN_THEMES

from accel_tui import keymap
from accel_tui.app import key_bindings
from accel_tui.settings import user_settings
from accel_tui.settings.old_key_ids import OLD_KEY_IDS
from accel_tui.settings.setting_source import SettingSource
from accel_tui.settings.user_settings import Settings

KEYS_BEFORE = """
app.help=question_mark,f1 app.interrupt=ctrl+c app.palette=ctrl+p app.quit=q app.repaint=ctrl+l
app.suspend=ctrl+z app.theme=t,f2 ask.back=escape ask.next=right,down ask.previous=left,up
charts-choice.default=d charts-choice.done=escape,a,q charts-choice.tick=space,enter charts.back=escape
charts.choose=a charts.clip=o charts.cursor=v charts.down=down charts.end=end charts.far-left=shift+left
charts.far-right=shift+right charts.fill=f,enter charts.home=home charts.in=plus,equals_sign charts.left=left
charts.log=y charts.out=minus charts.right=right charts.smooth=m charts.up=up charts.whole=0 charts.x=x
compare.back=escape compare.table=tab confusion.down=down confusion.far-left=shift+left
confusion.far-right=shift+right confusion.left=left confusion.list=f confusion.page-down=pagedown
confusion.page-up=pageup confusion.right=right confusion.shares=percent_sign confusion.up=up
gallery.before=left,pageup,up gallery.end=end gallery.filter=ampersand gallery.home=home
gallery.larger=plus,equals_sign gallery.next=right,pagedown,down gallery.smaller=minus
help.close=escape,question_mark,f1,q inside.back=escape,w inside.confusion=1 inside.layers=3 inside.pictures=2
inside.quit=q inside.validate=V labels.back=escape labels.next=down labels.previous=up layers.down=down
layers.end=end layers.home=home layers.page-down=pagedown,space layers.page-up=pageup layers.up=up
learning-rate.back=escape log.close=escape log.down=down,j log.end=end log.filter=ampersand log.home=home
log.level=L log.next=n log.page_down=pagedown log.page_up=pageup log.previous=N log.search=slash log.up=up,k
picker.close=escape picker.down=down picker.enter=enter picker.page_down=pagedown picker.page_up=pageup
picker.take=tab picker.up=up plan.copy=c,f5 plan.defaults=d,f6 plan.down=down plan.leave=escape
plan.page-down=pagedown plan.page-up=pageup plan.runs=r,ctrl+r plan.start=s,ctrl+s plan.up=up run.back=escape
run.checkpoint=c run.detach=d run.details=i run.go-on=p,space run.inside=w run.learning-rate=r run.log=l
run.pause=p,space run.quit=q run.resume=R run.search=slash run.stop=s runs.back=escape runs.compare=c
runs.delete=D,delete runs.down=j,down runs.end=end runs.filter=slash runs.home=home runs.label=e runs.mark=space
runs.mark-down=shift+down runs.mark-up=shift+up runs.open=enter runs.open_early=enter
runs.order=greater_than_sign runs.order-before=less_than_sign runs.page-down=pagedown runs.page-up=pageup
runs.plan=n runs.resume=R runs.to-plan=p runs.turn=o runs.up=k,up table.down=down table.end=end table.home=home
table.left=left table.page-down=pagedown table.page-up=pageup table.right=right table.up=up
"""
"""Every id with its default keys, before ids were named after the screens."""

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
    assert {"app.help", "new-run.start", "picker.close", "run.pause", "charts.in", "runs.open", "help.close"} <= set(
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


@pytest.mark.parametrize("before", KEYS_BEFORE.split())
def test_an_id_of_before_still_names_its_action(before: str, tmp_path: Path) -> None:
    name, _, pressed = before.partition("=")
    file = tmp_path / "settings.toml"
    file.write_text(f'[keys]\n"{name}" = "f9"\n')
    settings, errors = user_settings.read(file)
    assert errors == []
    ((current, chosen),) = settings.keys.items()
    assert chosen == "f9"
    assert ",".join(key_bindings()[current].keys) == pressed
    assert settings.source.line(f"keys.{current}") == 2
    assert keymap.key_errors(settings, key_bindings()) == []


def test_ids_of_before_are_no_longer_used() -> None:
    assert not OLD_KEY_IDS.keys() & key_bindings().keys()
    assert set(OLD_KEY_IDS.values()) <= key_bindings().keys()


def test_a_key_given_by_both_its_ids_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('[keys]\nrun.diagnostics = "f8"\nrun.inside = "f9"\n')
    assert user_settings.read(file)[1] == [
        f"{file}:3: run.diagnostics and run.inside are the same key binding; keep only run.diagnostics"
    ]


def test_pause_has_the_keys_of_both_its_ids_of_before(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('[keys]\nrun.go-on = ["f8", "f9"]\nrun.pause = "f8"\n')
    settings, errors = user_settings.read(file)
    assert errors == []
    assert settings.keys == {"run.pause": "f8,f9"}
