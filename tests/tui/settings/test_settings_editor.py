"""One setting of the settings file is written, and nothing else is touched."""

import os
from pathlib import Path

import pytest
import tomlkit
from tomlkit.exceptions import ParseError

from accel_engine.errors import UsageError
from accel_tui.settings import user_settings
from accel_tui.settings.user_settings import save_setting


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, 'theme = "nord"\n'),
        ("", 'theme = "nord"\n'),
        ('# mine\ntheme = "x" # old\n[rates]\n', '# mine\ntheme = "nord" # old\n[rates]\n'),
        ('theme="x"', 'theme="nord"'),
        ('theme = """\\\nnord"""\n', 'theme = "nord"\n'),
        ('# Theme\n# theme = "auto"\n[plan]\n', '# Theme\ntheme = "nord"\n[plan]\n'),
        ('theme = "x"\n# theme = "auto"\n', 'theme = "nord"\n# theme = "auto"\n'),
        ("[rates]\n# theme = 1\nframes = 3\n", 'theme = "nord"\n\n[rates]\n# theme = 1\nframes = 3\n'),
    ],
)
def test_the_line_is_put_where_it_belongs(tmp_path: Path, before: str | None, after: str) -> None:
    file = tmp_path / "there" / "settings.toml"
    if before is not None:
        file.parent.mkdir()
        file.write_text(before)
    save_setting(file, "theme", "nord")
    assert file.read_text() == after
    assert [path.name for path in file.parent.iterdir()] == ["settings.toml"]


def test_new_settings_are_private_under_any_umask_and_old_ones_stay_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "there" / "settings.toml"
    before = os.umask(0)
    try:
        save_setting(file, "theme", "nord")
        assert [oct(path.stat().st_mode & 0o777) for path in (file.parent, file)] == ["0o700", "0o600"]
        file.chmod(0o640)
        save_setting(file, "theme", "dracula")
        assert file.stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)


def test_a_device_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "settings.toml"
    link.symlink_to("/dev/null")
    monkeypatch.setattr(user_settings, "replacing", lambda file: pytest.fail(f"{file} would be replaced"))
    with pytest.raises(UsageError, match="not a regular file; add it yourself"):
        save_setting(link, "theme", "nord")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[runs]\ngroup = "tag"\n'),
        ('[runs]\ngroup = "none"\n', '[runs]\ngroup = "tag"\n'),
        ('[runs]\n# group = "data"\n', '[runs]\ngroup = "tag"\n'),
        ('theme = "nord"\nruns.group = "none"\n', 'theme = "nord"\nruns.group = "tag"\n'),
    ],
)
def test_a_setting_is_put_in_its_table(tmp_path: Path, before: str, after: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(before)
    save_setting(file, "runs.group", "tag")
    assert file.read_text() == after


@pytest.mark.parametrize("text", ["them = 3\n", "theme = \n"])
def test_a_file_that_is_wrong_stays_as_it_is(tmp_path: Path, text: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match='add it yourself: theme = "nord"'):
        save_setting(file, "theme", "nord")
    assert file.read_text() == text


def test_what_tomlkit_cannot_change_is_left_to_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "rates.frames = 30 # no line end"  # after which tomlkit begins no line
    file = tmp_path / "settings.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match="theme cannot be changed automatically here; add it yourself"):
        save_setting(file, "theme", "nord")

    def refuse(text: str) -> None:
        raise ParseError(1, 1)

    monkeypatch.setattr(tomlkit, "parse", refuse)
    with pytest.raises(UsageError, match="theme cannot be changed automatically here; add it yourself"):
        save_setting(file, "theme", "nord")
    assert file.read_text() == text


def test_a_link_stays_one(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.touch()
    link = tmp_path / "settings.toml"
    link.symlink_to(real)
    save_setting(link, "theme", "nord")
    assert link.is_symlink()
    assert real.read_text() == 'theme = "nord"\n'


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()  # where a directory would have to be
    with pytest.raises(UsageError, match=r"cannot write .*: File exists; add it yourself"):
        save_setting(tmp_path / "file" / "settings.toml", "theme", "nord")
