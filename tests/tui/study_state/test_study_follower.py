"""Commands to the process of a search."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from accel_engine.search.study_database import StudyDatabase
from accel_tui.study_state import study_follower
from accel_tui.study_state.study_follower import Answered, StudyFollower, StudyRequest
from example_study import write_study


def test_a_command_that_no_process_takes_is_withdrawn(
    home: Path, monkeypatch: pytest.MonkeyPatch, wait_until: Callable[..., None]
) -> None:
    monkeypatch.setattr(study_follower, "ANSWER_SECONDS", 0.0)
    monkeypatch.setattr(study_follower, "PENDING_SECONDS", 0.01)
    directory = write_study(6, 4)
    follower = StudyFollower(directory)
    follower.send(StudyRequest("stop"))
    thread = threading.Thread(target=follower.run)
    thread.start()
    wait_until(lambda: any(isinstance(news, Answered) for news in follower.told))
    follower.stop()
    thread.join(120)
    (told,) = [news for news in follower.told if isinstance(news, Answered)]
    assert (told.request.name, told.obeyed) == ("stop", False)
    assert told.answer.startswith("no process runs this search")
    with StudyDatabase(directory) as database:
        assert not database.commands(), "a later process does not act on it"
