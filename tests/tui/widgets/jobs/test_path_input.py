"""Completing paths: each text is completed in a thread, and threads may end in another order."""

import asyncio
import threading

import pytest
from accel_tui.widgets.trained import path_input

from accel_tui.widgets.jobs.path_input import PathSuggester


async def test_the_thread_of_an_earlier_text_may_end_later(monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = threading.Event()

    def complete(text: str, suffixes: object) -> str:
        if text == "ph":
            may_end.wait()
        return "photos/"

    monkeypatch.setattr(path_input, "complete_path", complete)
    suggester = PathSuggester(())
    early = asyncio.create_task(suggester.get_suggestion("ph"))
    await asyncio.sleep(0)
    assert await suggester.get_suggestion("pho") == "photos/"
    may_end.set()
    await early
    assert suggester.suggestion_for("pho") == "photos/"
    assert suggester.suggestion_for("ph") is None
