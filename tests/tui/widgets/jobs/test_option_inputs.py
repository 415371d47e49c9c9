"""Completing paths: each text is completed in a thread, and threads may end in another order."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

from accel_tui.widgets.jobs import option_inputs
from accel_tui.widgets.jobs.option_inputs import PathSuggester, complete_path


async def test_the_thread_of_an_earlier_text_may_end_later(monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = threading.Event()

    def complete(text: str, suffixes: object) -> str:
        if text == "ph":
            may_end.wait()
        return "photos/"

    monkeypatch.setattr(option_inputs, "complete_path", complete)
    suggester = PathSuggester(())
    early = asyncio.create_task(suggester.get_suggestion("ph"))
    await asyncio.sleep(0)
    assert await suggester.get_suggestion("pho") == "photos/"
    may_end.set()
    await early
    assert suggester.suggestion_for("pho") == "photos/"
    assert suggester.suggestion_for("ph") is None


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
