"""Follows the study of a search in a thread, and sends commands to the search."""

import time
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from accel_engine.errors import AccelError
from accel_engine.search.launch import is_search_running, last_log_line, open_study
from accel_engine.search.trial import TrialReport
from accel_engine.text import printable_fields, printable_line
from accel_tui.follower import Follower, Unreadable
from accel_tui.study_state.state import StudyState, TrialCurve

if TYPE_CHECKING:  # it imports Optuna
    from accel_engine.search.study_database import StudyDatabase
    from accel_engine.search.study_reader import StudyReader

POLL_SECONDS = 0.5
"""Seconds between two polls: a trial reports once an epoch."""

PENDING_SECONDS = 0.1
"""Seconds between two polls while a command has no answer."""

ANSWER_SECONDS = 10.0
"""Seconds that a command waits for an answer while no process runs the study."""


@dataclass(frozen=True, slots=True)
class StudyRequest:
    """A command to the process that runs a study."""

    name: str
    """One of :data:`accel_engine.search.study_database.COMMANDS`."""
    trial: int | None = None
    """Number of the trial, for commands about one trial."""
    argument: Any = None
    """The argument of :class:`accel_engine.search.study_database.StudyCommand`."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """A command without an answer."""

    row: int
    request: StudyRequest
    time: float
    """When it was sent, on the monotonic clock."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a command."""

    request: StudyRequest
    obeyed: bool
    answer: str


class StudyFollower(Follower[StudyState]):
    """Reads the state of a study, sends commands to its search, and tells what is :class:`Answered`.

    Args:
        directory: The study's directory.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(StudyState(printable_line(directory.name)))
        self._directory = directory
        self._requests: deque[StudyRequest] = deque()
        self._sent: list[_Sent] = []

    def run(self) -> None:
        """Follow the study; one that cannot be read is tried again."""
        problem = ""
        while self.is_wanted:
            try:
                with open_study(self._directory) as study:
                    problem = ""
                    self._follow(study)
            except AccelError as error:  # the disk may be back at the next poll: reported once, and tried again
                if str(error) != problem:
                    problem = str(error)
                    self.tell(Unreadable(problem))
                self._wait()

    def send(self, request: StudyRequest) -> None:
        """Send a command; callable from any thread."""
        self._requests.append(request)
        self._wakeup.set()

    def _follow(self, study: "StudyReader") -> None:
        while self.is_wanted:
            self._send_requests(study.database)
            after = read_study(study, self._latest)
            if after is not self._latest:
                _ = after.best, after.front, after.counts  # computed here, not on the event loop
                self.put(after)
            self._read_answers(study.database)
            self._wait()

    def _wait(self) -> None:
        self.wait(0.0 if self._requests else PENDING_SECONDS if self._sent else POLL_SECONDS)

    def _send_requests(self, database: "StudyDatabase") -> None:
        while self._requests:
            request = self._requests.popleft()
            row = database.request(request.name, request.trial, request.argument)
            self._sent.append(_Sent(row, request, time.monotonic()))

    def _read_answers(self, database: "StudyDatabase") -> None:
        for sent in tuple(self._sent):
            answer = database.answer_to(sent.row)
            waited = time.monotonic() - sent.time
            if answer is None and (self._latest.is_running or waited < ANSWER_SECONDS):
                continue
            self._sent.remove(sent)
            if answer is None:  # so that a later process does not act on it
                answer = (False, "no process runs this search: continue it, then send the command again")
                database.answer(sent.row, answer[1], obeyed=False)
            obeyed, text = answer
            self.tell(Answered(sent.request, obeyed, printable_line(text)))


def read_study(study: "StudyReader", state: StudyState) -> StudyState:
    """Read what is new in a study into a state; returns the same object if nothing is new.

    Texts of the study, which another user or program may have written, are made printable.

    Raises:
        RunError: The study cannot be read.
    """
    changed = study.refresh() | (study.trials.keys() - state.trials.keys())
    directory, part = study.database.directory, study.database.part
    is_running = is_search_running(directory)
    rest: dict[str, Any] = {
        "definition": study.definition,
        "created": part.created,
        "ended": part.ended,
        "confirmation": part.confirmation,
        "spent": part.spent,
        "spent_at_end": part.spent_at_end,
        "is_running": is_running,
        "last_words": "" if is_running or part.ended else last_log_line(directory),
    }
    if not changed and all(getattr(state, name) == value for name, value in rest.items()):
        return state
    trials = {
        number: replace(printable_fields(study.trials[number]), values=study.trials[number].values)
        for number in changed
    }
    curves = {number: _curve(study.reports[number].values()) for number in changed if study.reports.get(number)}
    trials = dict(sorted({**state.trials, **trials}.items()))
    return replace(state, trials=trials, curves={**state.curves, **curves}, **rest)


def _curve(reports: Collection[TrialReport]) -> TrialCurve:
    """The monitored metric by epoch, as the last report of each epoch has it."""
    by_epoch = {each.epoch: each.value for each in reports}
    epochs = sorted(by_epoch)
    return TrialCurve(np.array(epochs, np.float64), np.array([by_epoch[epoch] for epoch in epochs], np.float64))
