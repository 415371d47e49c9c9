"""Commands to the process of a search."""

import threading
from pathlib import Path

import pytest

from accel_engine.search.study_database import StudyDatabase
from accel_tui.study_state import study_follower
from accel_tui.study_state.study_follower import StudyFollower, StudyRequest
from example_study import write_study


def test_a_command_that_no_process_takes_is_withdrawn(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_follower, "ANSWER_SECONDS", 0.0)
    monkeypatch.setattr(study_follower, "PENDING_SECONDS", 0.01)
    directory = write_study(6, 4)
    answers: list[tuple[str, bool, str]] = []

    def take(request: StudyRequest, obeyed: bool, answer: str) -> None:
        answers.append((request.name, obeyed, answer))
        follower.stop()

    follower = StudyFollower(directory, lambda: None, lambda _: None, take)
    follower.send(StudyRequest("stop"))
    thread = threading.Thread(target=follower.run)
    thread.start()
    thread.join(30)
    ((name, obeyed, answer),) = answers
    assert (name, obeyed) == ("stop", False)
    assert answer.startswith("no process runs this search")
    with StudyDatabase(directory) as database:
        assert not database.unanswered(), "a later process does not act on it"
