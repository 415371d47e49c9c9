"""In which way a cure is applied, and what is refused; without engines."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from accel_engine.advice.cures.apply_cure import Method, apply, cure_of, undo
from accel_engine.errors import AccelError, RunError
from accel_engine.events import CommandAnswered, Event, LearningRateChanged, Outcome, PlanChanged, RunEnded
from accel_engine.places.own_process import set_place
from accel_engine.plan import Plan
from accel_engine.plan.changed_plan import changed_plan, command_arguments, options_text, with_planned_rate
from accel_engine.run import Command, RunReader, RunWriter, create
from accel_engine.run.directory.checkpoint_files import write_checksums
from accel_engine.run.history.history import CureChange, History, fold
from accel_engine.run.runs.creation import create_recorded
from accel_engine.run.store.database import reading
from accel_engine.run.store.meta import PlacedRun
from tui.fake_engine import FakeEngine


def ended(plan: Plan, outcome: Outcome, *steps: int) -> Path:
    """An ended run with files of checkpoints."""
    directory = create(plan)
    with closing(RunWriter(directory)) as writer:
        writer.begin()
        writer.end(RunEnded(time=1.0, outcome=outcome, steps=max(steps, default=0), epochs=0, seconds=1.0))
    save(directory, *steps)
    return directory


def save(directory: Path, *steps: int) -> None:
    """Write files of checkpoints."""
    folder = directory / "checkpoints"
    folder.mkdir()
    for step in steps:
        (folder / f"step-{step}.index").write_bytes(b"i")
        (folder / f"step-{step}.data-00000-of-00001").write_bytes(b"d")
        write_checksums(folder, step)


def changed_in(directory: Path) -> list[Any]:
    with closing(RunReader(directory)) as reader:
        return [event for event in reader.poll().events if isinstance(event, PlanChanged)]


def test_a_stopped_run_continues_with_the_changed_plan() -> None:
    directory, launched = ended(Plan(model="mlp"), Outcome.STOPPED, 23), []
    applied = apply(directory, {"clip_norm": 1.0}, finding="spikes", launch=launched.append)
    assert launched == [directory]
    assert (applied.method, applied.before) == (Method.CONTINUED, {"clip_norm": None})
    assert applied.text == f"run {directory.name} was continued from step 23 with --clip-norm 1.0"
    (event,) = changed_in(directory)
    assert (event.step, event.changes, event.reason) == (23, {"clip_norm": 1.0}, "advice spikes")
    with closing(RunReader(directory)) as reader:
        assert reader.info().plan_values["clip_norm"] == 1.0


@pytest.mark.parametrize(
    ("changes", "outcome", "steps", "why"),
    [
        ({"batch_size": 128}, Outcome.STOPPED, (23,), "batch_size cannot change within a run"),
        ({"clip_norm": 1.0}, Outcome.FINISHED, (23,), "is finished, and cannot be continued"),
        ({"clip_norm": 1.0}, Outcome.STOPPED, (), "has no checkpoint to continue from"),
    ],
)
def test_otherwise_a_new_run_is_advised(
    changes: dict[str, Any], outcome: Outcome, steps: tuple[int, ...], why: str
) -> None:
    directory = ended(Plan(model="mlp"), outcome, *steps)
    with pytest.raises(RunError, match=rf"{why}: start a new run with accel-tui train .*{options_text(changes)}"):
        apply(directory, changes, launch=pytest.fail)
    assert changed_in(directory) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "changes no field"),
        ({"loss_rate": 1}, "no field loss_rate"),
        ({"model": "mlp"}, "has these settings already"),
        ({"clip_norm": -1.0}, "must be a number above 0"),
        ({"devices": ("gpu:7",)}, "gpu:7"),
    ],
)
def test_what_is_impossible_changes_nothing(changes: dict[str, Any], words: str) -> None:
    directory = ended(Plan(model="mlp"), Outcome.STOPPED, 23)
    with pytest.raises(AccelError, match=words):
        apply(directory, changes, launch=pytest.fail)
    with closing(RunReader(directory)) as reader:
        assert reader.info().plan_values == Plan(model="mlp").absolute().to_mapping()


def test_a_script_is_not_changed() -> None:
    directory = create_recorded({"name": "", "model": "m", "data": "d"}, "python train.py")
    with pytest.raises(RunError, match="recorded by a script"):
        apply(directory, {"xla": "on"}, launch=pytest.fail)


@pytest.mark.parametrize(
    ("options", "shown"), [(("--on", "slurm", "--cpus", "4"), "--on slurm --cpus 4"), ((), "--on slurm")]
)
def test_a_run_at_a_place_is_not_continued_here(options: tuple[str, ...], shown: str) -> None:
    directory = ended(Plan(model="mlp"), Outcome.STOPPED, 23)
    set_place(directory, PlacedRun("slurm", "7", options=options))
    with pytest.raises(RunError, match=rf"is at slurm.* continue {directory.name} {shown} --clip-norm 1.0$") as refused:
        apply(directory, {"clip_norm": 1.0}, launch=pytest.fail)
    assert "accel-tui stop" not in str(refused.value)
    assert changed_in(directory) == []


def test_a_live_run_at_a_place_trains_on() -> None:
    engine = FakeEngine(Plan(model="mlp")).begin().build().train(10)
    set_place(engine.directory, PlacedRun("slurm", "7"))
    name = engine.directory.name
    with pytest.raises(RunError, match=f"with accel-tui stop {name}, then accel-tui continue {name} --on slurm --clip"):
        apply(engine.directory, {"clip_norm": 1.0}, launch=pytest.fail)
    with reading(engine.directory) as database:
        assert database.unanswered(Command) == []


def test_a_live_trial_of_a_search_is_not_stopped_and_continued_beside_it() -> None:
    plan = Plan(model="mlp")
    engine = FakeEngine(plan, directory=create(plan, study="cnn-digits", trial=0)).begin().build().train(10)
    with pytest.raises(RunError, match=r"a trial of the search cnn-digits, which .*: start a new run with accel-tui"):
        apply(engine.directory, {"clip_norm": 1.0}, launch=pytest.fail)
    with reading(engine.directory) as database:
        assert database.unanswered(Command) == []


def test_a_live_run_without_a_step_has_no_checkpoint_to_continue_from() -> None:
    directory = create(Plan(model="mlp"))
    with closing(RunWriter(directory)) as writer:
        writer.begin()
        with pytest.raises(RunError, match="has taken no step yet"):
            apply(directory, {"clip_norm": 1.0}, launch=pytest.fail)


@pytest.mark.parametrize(
    ("plan", "changes", "arguments"),
    [
        (Plan(model="mlp"), {"learning_rate": 0.01}, {"learning_rate": 0.01}),
        (Plan(model="mlp", schedule="cosine"), {"learning_rate": 0.01}, None),
        (Plan(model="mlp"), {"validation_every": "500 steps"}, {"validation_every": 500.0}),
        (Plan(model="mlp", validation="end"), {"validation_every": "500 steps"}, None),
        (Plan(model="mlp"), {"learning_rate": 0.01, "clip_norm": 1.0}, None),
    ],
)
def test_commands_change_what_they_can(plan: Plan, changes: dict[str, Any], arguments: Any) -> None:
    assert command_arguments(plan, 0, changes) == arguments


def test_changes_are_shown_as_options() -> None:
    assert options_text({"batch_size": 128, "devices": ("gpu:0", "gpu:1")}) == "--batch-size 128 --devices gpu:0,gpu:1"


def test_a_changed_plan_has_no_field_without_effect() -> None:
    plan = changed_plan(Plan(model="mlp", optimizer="sgd", momentum=0.9), {"optimizer": "adamw"})
    assert (plan.optimizer, plan.momentum) == ("adamw", None)


def test_a_plan_gets_the_rate_that_it_multiplies_to_that_of_the_optimizer() -> None:
    plan = Plan(model="mlp", rate_scaling="linear", learning_rate_factor=0.5)
    assert with_planned_rate({"learning_rate": 0.02, "xla": "on"}, plan, 4) == {"learning_rate": 0.01, "xla": "on"}
    assert with_planned_rate({"learning_rate": None}, plan, 4) == {"learning_rate": None}
    assert with_planned_rate({"learning_rate": 0.3}, Plan(model="mlp"), 4) == {"learning_rate": 0.3}


def test_a_run_continues_with_the_rate_of_the_optimizer() -> None:
    directory = ended(Plan(model="mlp", learning_rate_factor=0.5), Outcome.STOPPED, 23)
    applied = apply(directory, {"learning_rate": 0.01}, launch=lambda _: None)
    assert (applied.changes, applied.before) == ({"learning_rate": 0.02}, {"learning_rate": None})


def test_a_cure_is_taken_back_by_the_inverse_change_once() -> None:
    directory, launched = ended(Plan(model="mlp"), Outcome.STOPPED, 23), []
    apply(directory, {"clip_norm": 1.0}, finding="spikes", launch=launched.append)
    stop_again(directory)
    undone = undo(directory, launch=launched.append)
    assert launched == [directory, directory]
    assert (undone.method, undone.changes, undone.before) == (Method.CONTINUED, {"clip_norm": None}, {"clip_norm": 1.0})
    event = changed_in(directory)[-1]
    assert (event.changes, event.before) == ({"clip_norm": None}, {"clip_norm": 1.0})
    assert (event.reason, event.purpose) == ("undo of advice spikes", "undo")
    with closing(RunReader(directory)) as reader:
        assert reader.info().plan_values["clip_norm"] is None
    assert cure_of(directory) is None
    with pytest.raises(RunError, match="has no cure that could be taken back"):
        undo(directory, launch=pytest.fail)


@pytest.mark.parametrize(
    "changes",
    [
        {"patience": 3, "restore_best": "on"},
        {"skip_steps": ("7",)},
        {"micro_batches": 2, "remat": "on"},
        {"learning_rate": 0.01},
        {"xla": "on", "checkpoint_every": "2 epochs"},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_a_plan_is_as_before_once_a_cure_is_taken_back(changes: dict[str, Any]) -> None:
    plan = Plan(model="mlp", learning_rate=0.001)
    directory = ended(plan, Outcome.STOPPED, 23)
    apply(directory, changes, launch=lambda _: None)
    stop_again(directory)
    undo(directory, launch=lambda _: None)
    with closing(RunReader(directory)) as reader:
        assert reader.info().plan == plan.absolute()


def stop_again(directory: Path) -> None:
    with closing(RunWriter(directory)) as writer:
        writer.begin()
        writer.end(RunEnded(time=2.0, outcome=Outcome.STOPPED, steps=23, epochs=0, seconds=1.0))


def test_a_run_that_has_ended_cannot_be_continued_without_its_cure() -> None:
    directory = ended(Plan(model="mlp"), Outcome.STOPPED, 23)
    apply(directory, {"clip_norm": 1.0}, launch=lambda _: None)
    with closing(RunWriter(directory)) as writer:
        writer.begin()
        writer.end(RunEnded(time=2.0, outcome=Outcome.FINISHED, steps=40, epochs=1, seconds=1.0))
    with pytest.raises(RunError, match="is finished, and cannot be continued: start a new run with"):
        undo(directory, launch=pytest.fail)


def test_the_rate_of_an_optimizer_by_default_can_be_set_back() -> None:
    directory = create(Plan(model="mlp", learning_rate_factor=0.5))
    with closing(RunWriter(directory)) as writer:
        writer.begin()
        writer.write_event(LearningRateChanged(time=1.0, step=0, learning_rate=0.001))
        writer.end(RunEnded(time=1.0, outcome=Outcome.STOPPED, steps=23, epochs=0, seconds=1.0))
    save(directory, 23)
    applied = apply(directory, {"learning_rate": 0.01}, launch=lambda _: None)
    assert applied.before == {"learning_rate": 0.002}


def rate_set(rate: float, **why: str) -> list[Event]:
    answer = CommandAnswered(time=1.0, command="learning_rate", who="me", obeyed=True, answer="", step=9, **why)  # type: ignore[arg-type]
    return [LearningRateChanged(time=1.0, step=9, learning_rate=rate), answer]


def last_cure(events: list[Event]) -> CureChange | None:
    cures = fold(History(), events).cures
    return cures[-1] if cures else None


def plan_changed(reason: str, purpose: str, **changes: Any) -> Event:
    before = dict.fromkeys(changes)
    return PlanChanged(time=1.0, step=9, changes=changes, before=before, reason=reason, purpose=purpose)


def test_cures_are_taken_back_from_the_last_one_on() -> None:
    spikes = plan_changed("advice spikes", "cure", clip_norm=1.0)
    events: list[Event] = [LearningRateChanged(time=0.0, step=0, learning_rate=0.1), spikes]
    events += rate_set(0.01, reason="advice rate-high", purpose="cure")
    events += [*rate_set(0.02, reason="advice of a friend"), plan_changed("me@here", "")]
    found = last_cure(events)
    assert found
    assert (found.changes, found.before, found.is_rate) == ({"learning_rate": 0.01}, {"learning_rate": 0.1}, True)
    assert found.reason == "advice rate-high"
    events += rate_set(0.1, reason="undo of advice rate-high", purpose="undo")
    found = last_cure(events)
    assert found
    assert (found.changes, found.reason) == ({"clip_norm": 1.0}, "advice spikes")
    assert last_cure([*events, plan_changed("undo of advice spikes", "undo", clip_norm=None)]) is None
