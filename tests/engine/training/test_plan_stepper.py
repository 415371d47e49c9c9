"""A trial takes the steps of a run, without a run."""

import shutil
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from accel_engine.errors import RunError
from accel_engine.plan import Plan
from accel_engine.strategies.cluster_spec import ClusterSpec
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.distributed.worker_sync import WorkerSync
from accel_engine.training.plan_stepper import PlanStepper

from .conftest import Gym

PLAN = Plan(model="mlp", epochs=2, batch_size=256, optimizer="sgd", learning_rate=0.05)
"""Twelve steps, every sixth with a smaller batch."""


def copied(directory: Path, folder: Path, step: int) -> Path:
    """A directory with a copy of a run's checkpoint."""
    (folder / "checkpoints").mkdir(parents=True)
    for path in (directory / "checkpoints").glob(f"step-{step}.*"):
        shutil.copy(path, folder / "checkpoints")
    return folder


def test_its_losses_are_those_of_a_run(gym: Gym, random_model: str, tmp_path: Path) -> None:
    plan = PLAN.replace(model=random_model)  # with dropout
    whole = gym.train_once(plan)
    trial = PlanStepper(plan, tmp_path)

    first = trial.take(7)
    assert (first.steps, first.examples) == (7, 1437 + 256)
    np.testing.assert_array_equal(np.float32(first.losses + trial.take(5).losses), whole.series["loss"])
    trial.restore()
    np.testing.assert_array_equal(np.float32(trial.take(12).losses), whole.series["loss"])
    metrics, _ = trial.validate()
    assert metrics["loss"] == pytest.approx(whole.ended.metrics["validation_loss"])
    assert trial.take(30).steps == 30  # past the last epoch


def test_it_starts_from_a_checkpoint_and_leaves_the_run_alone(gym: Gym, random_model: str, tmp_path: Path) -> None:
    plan = PLAN.replace(model=random_model, checkpoint_every="1 epoch", keep_checkpoints=2)
    whole = gym.train_once(plan)
    before = sorted((path.name, path.stat().st_mtime_ns) for path in (whole.directory / "checkpoints").iterdir())
    trial = PlanStepper(plan, copied(whole.directory, tmp_path / "0", 6), 6, whole.directory)

    np.testing.assert_array_equal(np.float32(trial.take(6).losses), whole.series["loss"][6:])
    assert (
        sorted((path.name, path.stat().st_mtime_ns) for path in (whole.directory / "checkpoints").iterdir()) == before
    )

    lower = PlanStepper(
        plan.replace(learning_rate=1e-6), copied(whole.directory, tmp_path / "1", 6), 6, whole.directory
    )
    changed = lower.take(6).losses
    assert changed[0] == whole.series["loss"][6]
    assert changed[-1] != whole.series["loss"][-1]


def test_a_seed_is_another_order_of_the_same_examples(tmp_path: Path) -> None:
    trial = PlanStepper(PLAN, tmp_path / "0")
    orders = []
    for seed in (0, 1, 0):
        trial.restore(seed)
        orders.append(trial.take(6).losses)
    assert trial.has_orders
    assert orders[0] == orders[2] != orders[1]
    assert not PlanStepper(PLAN.replace(shuffle="off"), tmp_path / "1").has_orders


def test_a_seed_can_have_initial_weights_of_its_own(tmp_path: Path) -> None:
    plan = PLAN.replace(shuffle="off")
    trial, other = PlanStepper(plan, tmp_path / "0"), PlanStepper(plan.replace(seed=5), tmp_path / "1")
    losses = []
    for seed in (5, 6, 5, plan.seed):
        trial.restore(seed, initialize=True)
        losses.append(trial.take(3).losses)
    assert losses[0] == losses[2] == other.take(3).losses
    assert len(set(map(tuple, losses))) == 3
    trial.restore()
    assert trial.take(3).losses == losses[3]


def test_steps_are_taken_for_some_seconds(tmp_path: Path) -> None:
    trial = PlanStepper(PLAN, tmp_path)
    taken = trial.take_for(0.05)
    assert taken.seconds >= 0.05
    assert taken.steps == len(taken.losses) >= 1
    assert trial.compile_seconds > 0
    before = trial.take(2)
    assert trial.save() > 0
    trial.restore()
    assert trial.take(2).losses != before.losses  # it is at the start again
    assert [path.name for path in (tmp_path / "checkpoints").glob("*.index")] == ["step-0.index"]
    assert trial.peak_memory is None or trial.peak_memory > 0


def test_a_stream_starts_again(tmp_path: Path) -> None:
    source = tmp_path / "streamed.py"
    source.write_text(STREAM)
    trial = PlanStepper(Plan(model="mlp", data=f"{source}:load", epochs=1), tmp_path)
    first = trial.take(5).losses
    trial.restore(seed=3)
    assert trial.take(5).losses == first
    assert not trial.has_orders
    trial.close()


STREAM = """
import numpy as np
import tensorflow as tf

def load():
    random = np.random.default_rng(0)
    x, y = random.random((96, 4, 4, 1)).astype("float32"), random.integers(0, 3, 96)
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(16)
    return {"train": data, "class_names": ["a", "b", "c"]}
"""


def test_a_worker_takes_the_same_steps_and_ends_a_turn_with_the_chief(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broadcast(_: WorkerSync, count: int) -> int:
        return 0 if isinstance(count, bool) else count  # the chief has no time left

    alone = PlanStepper(PLAN, tmp_path / "alone")
    worker = PlanStepper(PLAN, tmp_path / "worker", cluster=ClusterSpec(("a:1",)))
    assert worker.take(7).losses == pytest.approx(alone.take(7).losses, rel=1e-5)
    monkeypatch.setattr(WorkerSync, "broadcast", broadcast)
    assert worker.take_for(600.0).seconds < 600.0


def random_states(assembly: Assembly) -> list[keras.Variable]:
    """The state of random generators that are no part of the model."""
    return [*assembly.unseeded, *(assembly.augmentation.states if assembly.augmentation else ())]


def variables_of(trial: PlanStepper) -> dict[str, np.ndarray]:
    """Every variable of a trial: weights, statistics, random states, and the optimizer's."""
    assembly = trial.assembly
    found = [*assembly.model.variables, *assembly.model.optimizer.variables, *random_states(assembly)]
    return {f"{index} {each.path}": np.asarray(each) for index, each in enumerate(found)}


@pytest.mark.parametrize(
    "recipe",
    [
        {"optimizer": "sgd", "momentum": 0.9, "augmentation": ("flip",)},
        pytest.param(
            {"schedule": "cosine", "warmup": 3, "ema_momentum": 0.9, "strategy": "mirrored", "virtual_cpus": 2},
            marks=pytest.mark.campaign,
        ),
        {"precision": "mixed_float16", "force": "on"},
    ],
    ids=["momentum and augmentation", "schedule and averages on two replicas", "scaled loss"],
)
def test_a_ramp_of_the_learning_rate_leaves_no_trace(
    gym: Gym, random_model: str, tmp_path: Path, recipe: dict[str, Any]
) -> None:
    """In the middle of a run, with dropout and batch normalization: every bit is as before."""
    plan = PLAN.replace(model=random_model, checkpoint_every="1 epoch", keep_checkpoints=2, xla="off", **recipe)
    whole = gym.train_once(plan)
    trial = PlanStepper(plan, copied(whole.directory, tmp_path, 6), 6, whole.directory)
    before, next_losses = variables_of(trial), trial.take(6).losses
    assert before.keys() == variables_of(trial).keys()
    trial.restore(1)
    ramp = trial.take_at([1e-4, 1e-2, 1e2, 1e4])
    rate = trial.assembly.learning_rate
    assert rate == pytest.approx(1e4)
    assert len(ramp.losses) >= 3
    trial.restore()
    after = variables_of(trial)
    assert before.keys() == after.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(value, after[name], err_msg=name, strict=True)
    np.testing.assert_array_equal(trial.take(6).losses, next_losses)
    np.testing.assert_array_equal(np.float32(next_losses), whole.series["loss"][6:])


def test_the_optimizer_takes_each_given_rate_whatever_its_schedule(random_model: str, tmp_path: Path) -> None:
    losses = []
    for folder, recipe in (("0", {"learning_rate": 0.5}), ("1", {"schedule": "cosine", "learning_rate": 0.1})):
        plan = PLAN.replace(model=random_model, optimizer="sgd", xla="off", **recipe)
        trial = PlanStepper(plan, tmp_path / folder)
        losses.append(trial.take_at([0.03, 0.3, 0.003]).losses)
    assert losses[0] == losses[1]
    assert len(set(losses[0])) == 3


def test_a_ramp_ends_with_the_first_loss_that_is_not_finite(random_model: str, tmp_path: Path) -> None:
    trial = PlanStepper(PLAN.replace(model=random_model, optimizer="sgd", xla="off"), tmp_path)
    losses = trial.take_at([1e38, *[1e38] * 20]).losses
    assert np.isfinite(losses[:-1]).all()
    assert not np.isfinite(losses[-1])


def test_a_schedule_of_the_models_own_ignores_the_plans_rate(tmp_path: Path) -> None:
    path = tmp_path / "scheduled.py"
    path.write_text(
        "import keras\n\ndef build(input_shape, classes):\n"
        "    dense = keras.layers.Dense(classes, activation='softmax')\n"
        "    model = keras.Sequential([keras.Input(input_shape), keras.layers.Flatten(), dense])\n"
        "    rate = keras.optimizers.schedules.CosineDecay(0.1, 100)\n"
        "    model.compile(keras.optimizers.SGD(rate), 'sparse_categorical_crossentropy')\n"
        "    return model\n"
    )
    trial = PlanStepper(Plan(model=f"{path}:build", batch_size=256, xla="off"), tmp_path / "0")
    with pytest.raises(RunError, match="has the schedule CosineDecay, which ignores --learning-rate"):
        trial.take_at([0.1])
