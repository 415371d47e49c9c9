"""What follows from a run's events."""

from collections.abc import Mapping
from typing import Any

import pytest

from accel_engine.events import (
    ENGINE_LOST,
    NOT_A_NUMBER,
    OUT_OF_MEMORY,
    CheckpointSaved,
    CommandAnswered,
    EpochEnded,
    Event,
    LearningRateChanged,
    MicroBatchesTried,
    Outcome,
    Phase,
    PhaseChanged,
    PlanChanged,
    Recovered,
    RunEnded,
    RunStarted,
    ThreadsChosen,
    Validated,
    XlaTried,
)
from accel_engine.plan import Plan
from accel_engine.run.history.early_stopping import EarlyStopping
from accel_engine.run.history.history import History, Session, best_point, fold


def started(time: float, pid: int, first_step: int = 0, **plan: Any) -> RunStarted:
    return RunStarted(time=time, run="r", name="", plan=plan, first_step=first_step, pid=pid, host="box", versions={})


def recovered(trouble: str, **changes: Any) -> Recovered:
    return Recovered(time=2.0, trouble=trouble, step=0, failed_step=5, reason="r", action="a", changes=changes)


def rate(value: float, step: int = 7, *, obeyed: bool = True) -> list[Event]:
    answer = CommandAnswered(time=3.0, command="learning_rate", who="ann", obeyed=obeyed, answer="set", step=step)
    return [LearningRateChanged(time=3.0, step=step, learning_rate=value), answer]


def validated(step: int, loss: float) -> Validated:
    return Validated(time=1.0, epoch=1, step=step, metrics={"loss": loss}, seconds=1.0)


def epoch_ended(step: int, epoch: int, **metrics: float) -> EpochEnded:
    return EpochEnded(time=1.0, epoch=epoch, step=step, metrics=metrics, seconds=1.0)


def ended(outcome: Outcome, seconds: float = 0.0) -> RunEnded:
    return RunEnded(time=1.0, outcome=outcome, steps=1, epochs=1, seconds=seconds)


TRAINS = PhaseChanged(time=2.0, phase=Phase.TRAINING, detail="")
FIRST = [started(1.0, 1), TRAINS]
CONTINUED = started(10.0, 2)


@pytest.mark.parametrize(
    ("events", "session"),
    [
        ([], Session()),
        (FIRST, Session(1.0, 1)),
        ([*FIRST, CONTINUED, TRAINS], Session(10.0, 1)),  # a user has continued it
        ([*FIRST, CONTINUED, recovered(ENGINE_LOST), TRAINS], Session(1.0, 2)),
        ([*FIRST, CONTINUED, recovered(ENGINE_LOST)], Session(1.0, 2)),
        ([*FIRST, CONTINUED, TRAINS, started(11.0, 2), TRAINS], Session(10.0, 2)),  # a damaged checkpoint
        ([*FIRST, started(9.0, 1), recovered(NOT_A_NUMBER), TRAINS], Session(1.0, 2, 1)),
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
            Session(1.0, 3, 1),
        ),
        ([*FIRST, started(9.0, 1), recovered(NOT_A_NUMBER), CONTINUED, TRAINS], Session(10.0, 1)),
        (
            [*FIRST, CONTINUED, started(11.0, 3), recovered(ENGINE_LOST)],
            Session(10.0, 2),
        ),  # lost before its first phase
        ([*FIRST, CONTINUED, started(11.0, 2), recovered(NOT_A_NUMBER)], Session(10.0, 2, 1)),  # phases may not be read
        ([*FIRST, ended(Outcome.STOPPED), started(10.0, 1), TRAINS], Session(10.0, 1)),  # in a container, as process 1
        ([*FIRST, ended(Outcome.FAILED), started(10.0, 1), recovered(ENGINE_LOST)], Session(1.0, 2)),
    ],
)
def test_a_session_begins_with_the_engine_that_a_user_has_started(events: list[Event], session: Session) -> None:
    assert fold(History(), events).session == session
    history = History()
    for event in events:
        history = fold(history, [event])
    assert history.session == session


def test_the_learning_rate_of_a_command_is_kept_until_a_bad_loss_undoes_it() -> None:
    def rate_of(*events: Event) -> LearningRateChanged | None:
        return fold(History(), events).session.rate

    begins = LearningRateChanged(time=2.0, step=0, learning_rate=0.5)
    restart = [CONTINUED, recovered(OUT_OF_MEMORY), TRAINS, begins]
    set_twice = [*FIRST, begins, *rate(0.1), TRAINS, *rate(0.2, 9)]

    assert rate_of(*FIRST, begins) is None
    assert rate_of(*set_twice, *restart) == rate(0.2, 9)[0]
    assert rate_of(*set_twice, started(10.0, 1), recovered(NOT_A_NUMBER), TRAINS, *restart) is None
    assert rate_of(*set_twice, CONTINUED, TRAINS, begins) is None
    assert rate_of(*FIRST, *rate(0.5, obeyed=False)) is None  # the rate of the start, and a command that was refused


XLA = XlaTried(time=1.0, step=9, xla=True, plain=1.0, compiled=2.0, remembered=False)
PLAIN = XlaTried(time=2.0, step=99, xla=False, plain=3.0, compiled=2.0, remembered=False)
PARTS = MicroBatchesTried(time=1.0, step=9, micro_batches=4, tried=4, whole=1.0, split=2.0, remembered=True)
THREADS = ThreadsChosen(time=0.5, threads=1, default=2, source="earlier runs")


@pytest.mark.parametrize(
    ("plan", "events", "expected"),
    [
        (Plan(), [], {"xla": "off"}),
        (Plan(), [XLA], {"xla": "on"}),
        (Plan(), [XLA, PLAIN], {"xla": "off"}),
        (Plan(), [THREADS, PARTS], {"xla": "off", "micro_batches": 4, "threads": 1}),
        (Plan(xla="on", micro_batches=2, threads=2), [THREADS, PARTS, PLAIN], {}),
    ],
)
def test_the_mode_is_what_the_run_trains_in(plan: Plan, events: list[Event], expected: dict[str, object]) -> None:
    assert fold(History(), events).autotuned_plan(plan) == plan.replace(**expected)


CHECKPOINT = CheckpointSaved(time=1.0, epoch=3, step=30, path="c", seconds=1.0)
TRAINED = [
    started(0.0, 1, learning_rate=0.1),
    *(each for step in (10, 20, 30) for each in (epoch_ended(step, step // 10, loss=1.0), validated(step, 30 / step))),
    CHECKPOINT,
]


def test_what_came_after_the_checkpoint_of_a_continued_run_is_forgotten() -> None:
    history = fold(History(), TRAINED)
    assert (history.epoch, history.validated, history.checkpoint) == (TRAINED[-3], TRAINED[-2], CHECKPOINT)
    back = fold(history, [started(5.0, 1, 20)])
    assert (back.epoch, back.validated, back.checkpoint) == (TRAINED[3], TRAINED[4], None)
    assert back.points("validation_loss") == ((10, 3.0), (20, 1.5))
    assert back.metrics == {"loss": 1.0, "validation_loss": 1.5}
    assert (history.trained_epochs(30), back.trained_epochs(30)) == (3.0, 2.5)


def test_all_at_once_is_the_same_as_one_by_one() -> None:
    more = [*rate(0.2), started(5.0, 1, 20), recovered(NOT_A_NUMBER, skip_steps=["21"]), ended(Outcome.FINISHED)]
    history = History()
    for event in (*TRAINED, *more):
        history = fold(history, [event])
    once = fold(History(), [*TRAINED, *more])
    names = History.__dataclass_fields__
    assert {name: getattr(history, name) for name in names} == {name: getattr(once, name) for name in names}


def test_the_plan_is_the_one_that_was_changed_since() -> None:
    change = PlanChanged(time=1.0, step=3, changes={"clip_norm": 1.0}, before={"clip_norm": None})
    history = fold(History(), [started(0.0, 1, clip_norm=None, epochs=3), change])
    assert history.plan == {"clip_norm": 1.0, "epochs": 3}
    assert fold(history, [recovered(NOT_A_NUMBER, learning_rate_factor=0.5)]).plan["learning_rate_factor"] == 0.5
    assert fold(history, [started(5.0, 2, epochs=4)]).plan == {"epochs": 4}


def test_steps_are_skipped_from_where_the_plan_says_so() -> None:
    history = fold(History(), [started(0.0, 1, skip_steps=["3"]), recovered(NOT_A_NUMBER, skip_steps=["3", "9"])])
    assert history.skipped_steps == {3, 9}
    assert fold(history, [started(1.0, 2, 5, skip_steps=[])]).skipped_steps == {3}  # 9 is taken again


def test_the_time_between_engines_does_not_count() -> None:
    history = fold(History(), [started(100.0, 1), ended(Outcome.STOPPED, 30.0), started(500.0, 2, 9)])
    assert history.seconds_worked == 30.0
    phase = PhaseChanged(time=512.0, phase=Phase.TRAINING)
    assert fold(history, [phase]).seconds_worked == 42.0  # of an engine that is lost until its last event
    assert fold(History(), [started(500.0, 2, 9)]).seconds_worked is None


@pytest.mark.parametrize(
    ("monitor", "plan", "best"),
    [
        ("validation_loss", {}, (30, 0.4)),
        ("validation_loss", {"min_delta": 0.2}, (20, 0.5)),
        ("validation_loss", {"monitor_mode": "max"}, (10, 1.0)),
        ("loss", {}, (20, 0.125)),  # of training
        ("validation_x", {}, None),  # whose name does not tell
    ],
)
def test_the_best_value_is_the_one_of_early_stopping(
    monitor: str, plan: Mapping[str, Any], best: tuple[int, float] | None
) -> None:
    values = {10: (0.25, 1.0), 20: (0.125, 0.5), 30: (0.5, 0.4), 40: (0.5, float("nan"))}
    history = fold(
        History(),
        [
            event
            for step, (trained, value) in values.items()
            for event in (epoch_ended(step, 1, loss=trained), validated(step, value))
        ],
    )
    assert best_point(history.points(monitor), monitor, plan) == best
    if best:
        lower = plan.get("monitor_mode") != "max"
        stopping = EarlyStopping(monitor, lower=lower, min_delta=plan.get("min_delta", 0.0))
        stopping.restore(history)
        assert (stopping.best_step, stopping.best) == best


def test_patience_begins_anew_where_a_finished_run_is_trained_longer() -> None:
    history = fold(History(), [*TRAINED, ended(Outcome.FINISHED), started(5.0, 2, 30)])
    assert history.patience_from == 30
    assert fold(history, [started(6.0, 2, 20)]).patience_from == 20  # later steps are taken again, and count
    assert fold(history, [ended(Outcome.STOPPED), started(6.0, 3, 40)]).patience_from == 30
