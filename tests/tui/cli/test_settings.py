"""``accel-tui settings``."""

import tomllib
from pathlib import Path

import pytest

from accel_engine.errors import UsageError
from accel_engine.plan import DEFAULTS, Plan, resolved_plan
from accel_tui.app import key_bindings
from accel_tui.cli import main
from accel_tui.settings import user_settings
from accel_tui.settings.user_settings import Settings


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the user's settings would be."""
    place = tmp_path / "there" / "settings.toml"
    monkeypatch.setenv("ACCEL_TUI_SETTINGS", str(place))
    return place


def test_the_path_is_told(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings", "path"]) == 0
    assert capsys.readouterr().out == f"{file}\n"


def test_a_first_file_changes_nothing_and_can_be_uncommented(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings", "init"]) == 0
    assert capsys.readouterr().out == f"{file}\n"
    assert user_settings.load_settings() == Settings()
    uncommented = [
        line.removeprefix("# ") if " = " in line and not line.startswith("# Settings") else line
        for line in file.read_text().splitlines()
    ]
    assert all(line.startswith(("#", "[")) or not line or " = " in line for line in uncommented)
    file.write_text("\n".join(uncommented))
    values = tomllib.loads(file.read_text())
    assert values["keys"] == {
        key.id: key.keys[0] if len(key.keys) == 1 else list(key.keys) for key in key_bindings().values()
    }
    assert values["plan"] == {
        name: "auto" if value is None else list(value) if isinstance(value, tuple) else value
        for name, value in DEFAULTS.items()
    }
    assert main(["settings", "check"]) == 0


def test_a_file_that_is_there_is_not_written_over(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.parent.mkdir()
    file.write_text("mine")
    assert main(["settings", "init"]) == 2
    assert capsys.readouterr().err == f"accel-tui: {file} already exists\n"
    assert file.read_text() == "mine"


def test_all_mistakes_are_told_by_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.parent.mkdir()
    file.write_text('theme = "x"\n[keys]\n"run.puase" = "f9"\n[rates]\nframes = 0\n')
    assert main(["settings", "check"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "accel-tui: the settings have errors"
    assert [line.removeprefix(f"{file}:").partition(":")[0] for line in lines[1:]] == ["1", "3", "5"]


def test_what_holds_is_shown_with_where_it_comes_from(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.parent.mkdir()
    file.write_text('glyphs = "ascii"\nplan = { epochs = 3 }\n[keys]\nrun.pause = "f9"\n')
    assert main(["settings", "show"]) == 0
    place, *lines = capsys.readouterr().out.splitlines()
    assert place == str(file)
    rows = {line.split()[0]: line.split()[1:] for line in lines}
    assert rows["glyphs"] == ['"ascii"', "line", "1"]
    assert rows["plan.epochs"] == ["3", "line", "2"]
    assert rows["keys.run.pause"] == ["f9", "line", "4"]
    assert rows["plan.model"] == ['"auto"', "default"]
    assert rows["keys.app.quit"] == ["q", "default"]


def test_training_says_what_is_wrong_with_settings(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.parent.mkdir()
    file.write_text("[plan]\nepochs = 0\n")
    assert main(["train"]) == 2
    assert f"{file}:2: epochs = 0" in capsys.readouterr().err


def test_the_command_line_goes_before_a_plan_file_and_that_before_settings(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.parent.mkdir()
    file.write_text("[plan]\nepochs = 2\nbatch_size = 2\nseed = 2\n")
    plan_file = tmp_path / "plan.toml"
    plan_file.write_text("batch_size = 3\nseed = 3\n")
    asked: list[Plan] = []

    def refuse(plan: Plan, devices: object, **_: bool) -> None:
        asked.append(plan)
        raise UsageError("enough is known")

    monkeypatch.setattr(resolved_plan, "resolve_to_train", refuse)
    assert main(["train", str(plan_file), "--seed", "4"]) == 2
    assert asked == [Plan(epochs=2, batch_size=3, seed=4)]


def test_help_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings", "--help"]) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("path", "show", "check", "init", "ACCEL_TUI_SETTINGS"))
