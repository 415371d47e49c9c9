"""Saving checkpoints and the trained model."""

import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import pytest

from accel_engine.errors import RunError
from accel_engine.events import CheckpointSaved, Outcome, Phase, PhaseChanged, Validated, Warned
from accel_engine.keras_support.optimizers import inner_optimizer
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.private_names.keras_names import schedule_of
from accel_engine.run.directory.run_paths import CHECKPOINTS, MODEL, checkpoint_steps
from accel_engine.training.checkpoints import run_saver
from accel_engine.training.checkpoints.checkpoint import Checkpoints
from accel_engine.training.checkpoints.run_saver import averages_as_weights, portable_optimizer
from accel_engine.training.core.assembly import Assembly, assemble
from accel_engine.training.core.recipe.rate_schedule import JoinedSchedule

from ..conftest import Gym
from .conftest import Parts

Make = Callable[..., Parts]


def save_at(run: Parts, step: int, loss: float | None = None) -> str:
    """Save the checkpoint of a step, whose weights are all the step's number."""
    run.reporter.step = step
    run.fill(step)
    if loss is not None:
        run.progress.observe(Validated(time=0.0, epoch=1, step=step, metrics={"loss": loss}, seconds=1.0))
    return run.saver.save_checkpoint()


def saved_weight(run: Parts) -> float:
    return float(np.ravel(keras.models.load_model(run.directory / MODEL).weights[0])[0])


def messages(run: Parts) -> list[str]:
    return [event.message for event in run.events(Warned)]


def test_a_model_that_cannot_be_saved_leaves_no_part_of_a_file(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(model: keras.Model, path: Path) -> None:
        path.write_bytes(b"half a model")
        raise OSError("no more room")

    monkeypatch.setattr(keras.Model, "save", fail)

    trained = gym.train(Plan(model="mlp", epochs=1, batch_size=256, validation="off"))

    assert trained.ended.outcome is Outcome.FINISHED
    assert list(trained.directory.glob("*.keras")) == []
    assert "no more room" in trained.all(Warned)[-1].message


def test_checkpoints_take_their_share_of_the_time(parts: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, save = [100.0], Checkpoints.save

    def save_for_a_second(self: Checkpoints, *args: Any) -> str:
        seconds[0] += 1
        return save(self, *args)

    monkeypatch.setattr(run_saver, "time", SimpleNamespace(perf_counter=lambda: seconds[0]))
    monkeypatch.setattr(Checkpoints, "save", save_for_a_second)
    run = parts()
    assert run.saver.is_due
    assert save_at(run, 5) == ""
    due = []
    for seconds[0] in (101.0, 150.75, 151.0, 200.0):  # a second is 2 percent of 50
        due.append(run.saver.is_due)

    assert due == [False, False, True, True]
    (saved,) = run.events(CheckpointSaved)
    assert (saved.step, saved.seconds, saved.path, saved.best) == (5, 1.0, f"{CHECKPOINTS}/step-5", False)
    assert run.events(PhaseChanged)[-1].phase is run.reporter.phase is Phase.CHECKPOINTING


def test_a_step_is_saved_once_unless_its_learning_rate_changes(parts: Make) -> None:
    run = parts()
    save_at(run, 5)
    save_at(run, 5)
    assert len(run.events(CheckpointSaved)) == 1
    run.assembly.model.optimizer.learning_rate = 0.5
    save_at(run, 5)
    assert len(run.events(CheckpointSaved)) == 2

    save_at(parts(run.directory, step=5, learning_rate=0.5), 5)  # it continues from this one
    assert len(run.events(CheckpointSaved)) == 2


def test_old_checkpoints_are_deleted_but_the_best(parts: Make) -> None:
    run = parts(keep_checkpoints=1)
    for step, loss in ((2, 0.9), (4, 0.1), (6, 0.5), (8, 0.5)):
        save_at(run, step, loss)
    assert checkpoint_steps(run.directory) == [4, 8]
    assert [event.step for event in run.events(CheckpointSaved) if event.best] == [2, 4]


def test_weights_that_are_not_finite_are_not_saved_which_is_said_once(parts: Make) -> None:
    run = parts(keep_checkpoints=3)
    reason = save_at_infinite(run, 1)
    assert reason.endswith("is not finite after step 1: there is none to continue from")
    for step in (1000, 2000, 3000):
        save_at(run, step)
    for step in (4000, 5000):
        reason = save_at_infinite(run, step)
        assert reason.startswith("no checkpoint is saved, as ")
        assert reason.endswith(f"is not finite after step {step:,}: the last one remains at step 3,000")
    assert len(messages(run)) == 2
    save_at(run, 6000)
    save_at_infinite(run, 7000)
    assert len(messages(run)) == 3


def save_at_infinite(run: Parts, step: int) -> str:
    run.reporter.step = step
    run.assembly.model.weights[0].assign(np.full(run.assembly.model.weights[0].shape, np.inf))
    return run.saver.save_checkpoint()


def test_only_the_chief_saves_the_model(parts: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    run = parts()
    monkeypatch.setattr(Assembly, "chief", property(lambda _: False))
    run.saver.save_model()
    assert not (run.directory / MODEL).exists()


def test_a_model_that_is_not_finite_has_the_weights_of_its_last_whole_checkpoint(parts: Make) -> None:
    run = parts(keep_checkpoints=3)
    first, second = run.assembly.model.weights[:2]
    first.assign(np.full(first.shape, np.nan))
    second.assign(np.full(second.shape, np.nan))
    run.reporter.step = 1000
    run.saver.save_model()
    assert messages(run) == [f"{first.path} is not finite after step 1,000: the model is not saved"]
    assert not (run.directory / MODEL).exists()

    for step in (2000, 3000, 4000):
        save_at(run, step)
    path = run.directory / CHECKPOINTS / "step-4000.data-00000-of-00001"
    path.write_bytes(path.read_bytes()[:-1])
    run.reporter.step = 5000
    first.assign(np.full(first.shape, np.nan))
    run.saver.save_model()
    assert messages(run)[1:] == [
        f"{first.path} is not finite after step 5,000: the model has the weights of its last checkpoint, of step 3,000"
    ]
    assert saved_weight(run) == run.saver.model_step == 3000


@pytest.mark.parametrize(
    ("restore_best", "last", "has", "words"),
    [
        ("off", 0.5, 3000, ""),
        ("on", 0.05, 3000, ""),
        ("on", 0.5, 1000, "the model has the weights of its best step, 1,000"),
    ],
)
def test_the_model_has_the_best_weights_if_they_are_to_be_restored(
    parts: Make, restore_best: str, last: float, has: int, words: str
) -> None:
    run = parts(keep_checkpoints=3, restore_best=restore_best)
    for step, loss in ((1000, 0.1), (2000, 0.3), (3000, last)):
        save_at(run, step, loss)
    run.saver.save_model()
    assert saved_weight(run) == has
    assert run.saver.model_step == (has if words else None)
    assert [(event.message, event.severity) for event in run.events(Warned)] == [(words, "information")] * bool(words)


@pytest.mark.parametrize(("loss", "has"), [(0.3, 2000), (0.2, 3000)])
def test_without_the_best_checkpoint_the_model_has_the_next_best(parts: Make, loss: float, has: int) -> None:
    run = parts(keep_checkpoints=3, restore_best="on")
    for step, value in ((1000, 0.1), (2000, 0.25), (3000, loss)):
        save_at(run, step, value)
    (run.directory / CHECKPOINTS / "step-1000.index").unlink()
    run.saver.save_model()
    assert saved_weight(run) == has
    assert run.saver.model_step == (has if has == 2000 else None)
    assert messages(run) == [
        f"the checkpoint of the best step, 1,000, is missing or damaged: the model has the weights of step {has:,}"
    ]


def test_a_model_that_a_killed_engine_has_left_is_deleted(parts: Make) -> None:
    run = parts()
    partial = run.directory / run_saver.PARTIAL_MODEL
    partial.touch()
    parts(run.directory)
    assert not partial.exists()


@pytest.mark.parametrize("lose", [shutil.rmtree, lambda directory: directory.rename(directory.with_name("moved"))])
def test_nothing_is_saved_where_the_run_is_no_more(parts: Make, lose: Callable[[Path], object]) -> None:
    run = parts()
    run.reporter.run.begin()
    save_at(run, 5)
    lose(run.directory)
    for save in (lambda: save_at(run, 10), run.saver.save_model):
        with pytest.raises(RunError):
            save()
    assert not run.directory.exists()


def test_an_engine_waits_if_the_disk_is_the_cause(parts: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    run = parts()
    run.reporter.run.begin()

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(keras.Model, "save", fail)
    with pytest.raises(OSError, match="No space left"):  # for which an engine waits
        run.saver.save_model()
    assert messages(run) == []


def test_the_model_of_a_table_takes_its_columns(parts: Make, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(64, 2))
    lines = [f"{a},{b},{'yes' if a > b else 'no'}" for a, b in rows]
    (tmp_path / "table.csv").write_text("\n".join(["a,b,label", *lines]))
    run = parts(data=str(tmp_path / "table.csv"), batch_size=16)
    run.saver.save_model()
    saved = keras.models.load_model(run.directory / MODEL)
    assert [each.name for each in saved.inputs] == ["a", "b"]
    assert saved.name == run.assembly.model.name


class Starved:
    """Stands for ``Checkpoints.save``, which runs out of memory some times."""

    def __init__(self, patch: pytest.MonkeyPatch, times: int) -> None:
        self.left, works = times, Checkpoints.save

        def save(*arguments: Any) -> str:
            self.left -= 1
            if self.left >= 0:
                np.empty(1 << 55, np.uint8)
            return works(*arguments)

        patch.setattr(Checkpoints, "save", save)


def test_a_checkpoint_is_saved_at_the_second_try_if_memory_runs_out(
    parts: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = parts()
    Starved(monkeypatch, 1)

    assert save_at(run, 5) == ""
    assert checkpoint_steps(run.directory) == [5]
    assert messages(run) == []


def test_training_continues_without_a_checkpoint_that_takes_too_much_memory(
    parts: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = parts()
    assert save_at(run, 5) == ""
    Starved(monkeypatch, 4)

    message = "no checkpoint is saved, as memory ran out: the last one remains at step 5"
    assert save_at(run, 10) == save_at(run, 15) == message
    assert messages(run) == [message]
    assert save_at(run, 20) == ""
    assert checkpoint_steps(run.directory) == [5, 20]


@pytest.mark.parametrize(("on_oom", "epochs"), [("fail", 0), ("adapt", 1)])
def test_the_last_checkpoint_is_not_given_up(
    parts: Make, monkeypatch: pytest.MonkeyPatch, on_oom: str, epochs: int
) -> None:
    """The run then returns to the checkpoint before."""
    run = parts(on_oom=on_oom, epochs=1)
    run.reporter.epochs = epochs
    Starved(monkeypatch, 2)

    with pytest.raises(MemoryError):
        save_at(run, 5)


PLAN = Plan(model="mlp", batch_size=64, epochs=2, optimizer="sgd", learning_rate=0.1, validation="off")


def made(**fields: Any) -> Assembly:
    plan = PLAN.replace(**fields)
    return assemble(resolve(plan), tuple(f"CPU:{index}" for index in range(plan.virtual_cpus)), None)


def test_the_weights_are_their_averages_while_they_are_saved() -> None:
    assembly = made(ema_momentum=0.9)
    weights = [variable for variable, _ in assembly.averages]
    for number, (variable, average) in enumerate(assembly.averages):
        variable.assign(np.full(variable.shape, 2.0 * number))
        average.assign(np.full(variable.shape, 2.0 * number + 1))

    def save() -> None:
        with averages_as_weights(assembly):
            assert [float(np.ravel(weight)[0]) for weight in weights] == [1.0, 3.0, 5.0, 7.0]
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        save()
    assert [float(np.ravel(weight)[0]) for weight in weights] == [0.0, 2.0, 4.0, 6.0]


@pytest.mark.parametrize("precision", ["float32", "mixed_float16"])
def test_a_schedule_of_our_own_is_its_present_rate_while_it_is_saved(precision: str) -> None:
    assembly = made(schedule="linear", warmup=0.25, precision=precision)
    inner = inner_optimizer(assembly.model.optimizer)
    inner.iterations.assign(20)
    ours, rate = schedule_of(inner), float(inner.learning_rate)
    assert isinstance(ours, JoinedSchedule)
    assert 0 < rate < 0.1

    with portable_optimizer(assembly):
        saved = schedule_of(inner)
        assert type(saved) is keras.optimizers.schedules.PolynomialDecay
        assert [float(saved(step)) for step in (0, 20, 1000)] == pytest.approx([rate] * 3)
        assert saved.get_config()["decay_steps"] == 1  # which Keras divides by

    assert schedule_of(inner) is ours


def test_a_schedule_of_keras_and_a_constant_rate_are_saved_as_they_are() -> None:
    for fields in ({"schedule": "cosine"}, {}):
        assembly = made(**fields)
        before = schedule_of(assembly.model.optimizer)
        with portable_optimizer(assembly):
            assert schedule_of(assembly.model.optimizer) is before
            assert float(assembly.model.optimizer.learning_rate) == pytest.approx(0.1)


LIMITS = {"clip_norm": "clipnorm", "global_clip_norm": "global_clipnorm", "clip_value": "clipvalue"}


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("field", LIMITS)
def test_the_saved_limit_of_gradients_is_that_of_all_replicas(field: str, replicas: int) -> None:
    spread = {"strategy": "mirrored", "virtual_cpus": 2} if replicas == 2 else {}
    assembly = made(**{field: 3.0}, **spread)
    optimizer = assembly.model.optimizer

    def limits() -> dict[str, float | None]:
        return {name: getattr(optimizer, name) for name in LIMITS.values()}

    before = limits()
    assert before[LIMITS[field]] == 3.0 / replicas
    with portable_optimizer(assembly):
        assert limits() == before | {LIMITS[field]: 3.0}
    assert limits() == before
