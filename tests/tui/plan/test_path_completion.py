import os
from pathlib import Path

import pytest

from accel_tui.plan.path_completion import complete_path


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "photos").mkdir()
    for name in ("photos/cat.PNG", "photos/notes.txt", "phone.csv", "phase.png", "bad\nname.png"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "suffixes", "completed"),
    [
        ("ph", (), f"photos{os.sep}"),
        ("ph", (".png",), "phase.png"),
        ("phot", (".png",), f"photos{os.sep}"),
        (os.path.join("photos", "c"), (".png",), os.path.join("photos", "cat.PNG")),
        (os.path.join("photos", "n"), (".png",), None),
        ("phase.png", (".png",), None),
        ("bad", (".png",), None),
        (f"photos{os.sep}", (".png",), None),
        ("", (".png",), None),
        (os.path.join("absent", "x"), (), None),
        ("null\0", (), None),
    ],
)
def test_a_path_is_completed_with_the_first_name_that_counts(
    text: str, suffixes: tuple[str, ...], completed: str | None
) -> None:
    assert complete_path(text, suffixes) == completed


def test_the_home_directory_is_kept_as_it_was_typed(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(here))
    assert complete_path("~/phot") == os.path.join("~", f"photos{os.sep}")
