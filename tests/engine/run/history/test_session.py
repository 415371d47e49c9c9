"""Which engines of a run belong to its last session, and what they say about it."""

import pytest
from accel_engine.run.history.session import Session, session_of

from accel_engine import clock
from accel_engine.events import (
    ENGINE_LOST,
    NOT_A_NUMBER,
    OUT_OF_MEMORY,
    CommandAnswered,
    Event,
    LearningRateChanged,
    Phase,
    PhaseChanged,
    Recovered,
    RunStarted,
)


def started(time: float, pid: int) -> RunStarted:
    return RunStarted(time=time, run="r", name="", plan={}, first_step=0, pid=pid, host="box", versions={}, worker="")


def recovered(trouble: str) -> Recovered:
    return Recovered(time=2.0, trouble=trouble, step=0, failed_step=5, reason="r", action="a")


def rate(value: float, step: int = 7) -> list[Event]:
    answer = CommandAnswered(time=3.0, command="learning_rate", who="ann", obeyed=True, answer="set", step=step)
    return [LearningRateChanged(time=3.0, step=step, learning_rate=value), answer]


TRAINS = PhaseChanged(time=2.0, phase=Phase.TRAINING, detail="")
FIRST = [started(1.0, 1), TRAINS]


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: 100.0)


@pytest.mark.parametrize(
    ("events", "session"),
    [
        ([], Session()),
        (FIRST, Session(99.0)),
        ([*FIRST, started(10.0, 2), TRAINS], Session(90.0)),  # a user has continued it
        ([*FIRST, started(10.0, 2), recovered(ENGINE_LOST), TRAINS], Session(99.0, True)),
        ([*FIRST, started(10.0, 2), recovered(ENGINE_LOST)], Session(99.0, True)),
        ([*FIRST, started(10.0, 2), TRAINS, started(11.0, 2), TRAINS], Session(90.0, True)),  # a damaged checkpoint
        ([*FIRST, started(9.0, 1), recovered(NOT_A_NUMBER), TRAINS], Session(99.0, True, 1)),
        (
            [
                *FIRST,
                started(9.0, 1),
                recovered(NOT_A_NUMBER),
                TRAINS,
                started(10.0, 1),
                recovered(OUT_OF_MEMORY),
                TRAINS,
            ],
            Session(99.0, True, 1),
        ),
        ([*FIRST, started(9.0, 1), recovered(NOT_A_NUMBER), started(10.0, 2), TRAINS], Session(90.0)),
    ],
)
def test_a_session_begins_with_the_engine_that_a_user_has_started(events: list[Event], session: Session) -> None:
    assert session_of(events) == session


def test_the_learning_rate_of_a_command_is_kept_until_a_bad_loss_undoes_it() -> None:
    begins = LearningRateChanged(time=2.0, step=0, learning_rate=0.5)
    restart = [started(10.0, 2), recovered(OUT_OF_MEMORY), TRAINS, begins]
    set_twice = [*FIRST, begins, *rate(0.1), TRAINS, *rate(0.2, 9)]

    assert session_of([*FIRST, begins]).rate is None
    assert session_of([*set_twice, *restart]).rate == rate(0.2, 9)[0]
    assert session_of([*set_twice, started(10.0, 1), recovered(NOT_A_NUMBER), TRAINS, *restart]).rate is None
    assert session_of([*set_twice, started(10.0, 2), TRAINS, begins]).rate is None
