"""Names that users give are looked up without an exception, whatever they are."""

from pathlib import Path

import pytest

from accel_engine.user_paths import absolute_path, exists, is_directory, is_file, no_file, resolved_path, user_path

TOO_LONG = "0" * 300


def test_a_home_directory_is_that_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert user_path("~/a.csv") == Path("/home/me/a.csv")
    assert user_path("~nobody-of-this-name/a.csv") == Path("~nobody-of-this-name/a.csv")


def test_files_and_directories_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.touch()
    assert (exists(file), is_file(file), is_directory(file), no_file(file)) == (True, True, False, "")
    assert (exists(tmp_path), is_file(tmp_path), is_directory(tmp_path)) == (True, False, True)
    assert no_file(tmp_path) == "no such file"


@pytest.mark.parametrize(
    ("name", "why"), [("missing", "no such file"), ("null\0", "no such file"), (TOO_LONG, "File name too long")]
)
def test_what_cannot_be_looked_up_is_not_there(tmp_path: Path, name: str, why: str) -> None:
    path = tmp_path / name
    assert (exists(path), is_file(path), is_directory(path), no_file(path)) == (False, False, False, why)


def test_a_path_in_a_working_directory_that_was_removed_stays_relative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert absolute_path(Path("a.csv")) == resolved_path(Path("a.csv")) == tmp_path / "here" / "a.csv"
    (tmp_path / "here").rmdir()
    assert absolute_path(Path("a.csv")) == resolved_path(Path("a.csv")) == Path("a.csv")
    assert absolute_path(tmp_path) == resolved_path(tmp_path) == tmp_path


def test_links_that_lead_in_a_circle_are_followed_no_further(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert resolved_path(tmp_path / "loop" / "..") == tmp_path
    assert resolved_path(Path("null\0")).name == "null\0"
