"""What a checkpoint restores, and which checkpoints are kept; without training."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine.errors import RunError
from accel_engine.run.directory.checkpoint_files import has_checksums
from accel_engine.run.directory.run_paths import CHECKPOINTS
from accel_engine.training.checkpoints.checkpoint import Checkpoints, Finiteness, NotFiniteError
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.saved_weights import DamagedCheckpointError

from .conftest import Parts

Make = Callable[..., Parts]


def random_states(assembly: Assembly) -> list[keras.Variable]:
    """The state of random generators that are no part of the model."""
    return [*assembly.unseeded, *(assembly.augmentation.states if assembly.augmentation else ())]


def states(parts: Parts) -> list[np.ndarray]:
    """The values of the model's variables, of its optimizer's, and of what draws random numbers."""
    assembly = parts.assembly
    found = [*assembly.model.variables, *assembly.model.optimizer.variables, *random_states(assembly)]
    return [variable.numpy() for variable in {id(each): each for each in found}.values()]


def advance(parts: Parts) -> None:
    """Give all variables, and the position in the data, other values."""
    assembly = parts.assembly
    for variable in (*assembly.model.variables, *assembly.model.optimizer.variables, *random_states(assembly)):
        variable.assign(variable.numpy() + 1)
    parts.batches.position = [each + 1 for each in parts.batches.position]


@pytest.mark.parametrize(
    "fields", [{"momentum": 0.9, "ema_momentum": 0.9, "augmentation": ("flip",)}, {"optimizer": "adam"}], ids=str
)
def test_all_that_a_run_continues_with_is_restored(parts: Make, random_model: str, fields: dict[str, Any]) -> None:
    run = parts(model=random_model, **fields)
    advance(run)
    assert run.checkpoints.save(7) == f"{CHECKPOINTS}/step-7"
    before, position = states(run), run.batches.position
    advance(run)

    again = parts(run.directory, model=random_model, **fields)
    for each in (run, again):
        each.checkpoints.restore(7)
        for restored, saved in zip(states(each), before, strict=True):
            np.testing.assert_array_equal(restored, saved)
        assert each.batches.position == position == [1, 1, 1, 1]


def test_the_weights_alone_are_restored_with_their_averages(parts: Make) -> None:
    run = parts(ema_momentum=0.9, momentum=0.9)
    advance(run)
    run.checkpoints.save(7)
    saved = [[each.numpy() for each in pair] for pair in run.assembly.averages]
    advance(run)
    rest = {id(each) for pair in run.assembly.averages for each in pair}
    others = [each for each in run.assembly.model.optimizer.variables if id(each) not in rest]
    kept = [each.numpy() for each in others]

    run.checkpoints.restore_weights(7)

    for restored, expected in zip(run.assembly.averages, saved, strict=True):
        np.testing.assert_array_equal(restored[0], expected[0])
        np.testing.assert_array_equal(restored[1], expected[1])
    for variable, value in zip(others, kept, strict=True):
        np.testing.assert_array_equal(variable, value)


def test_the_newest_whole_checkpoint_up_to_a_step_is_restored(parts: Make) -> None:
    run = parts()
    for step in (2, 4, 6, 8):
        run.fill(step)
        run.checkpoints.save(step)
    assert run.checkpoints.steps == [2, 4, 6, 8]
    for step in (4, 8):
        path = run.directory / CHECKPOINTS / f"step-{step}.data-00000-of-00001"
        path.write_bytes(path.read_bytes()[:-1])

    assert run.checkpoints.restore_newest(6) == (6, [])
    assert run.first_weight == 6
    step, problems = run.checkpoints.restore_newest(5)
    assert (step, run.first_weight) == (2, 2)
    assert [problem.split(" (")[0] for problem in problems] == ["the checkpoint of step 4 is damaged"]
    assert run.checkpoints.restore_first_weights([8, 4, 6, 2]) == 6
    assert run.first_weight == 6
    assert run.checkpoints.restore_first_weights([8, 4]) is None
    assert [problem.split(" (")[0] for problem in run.checkpoints.damage_after(4)] == [
        "the checkpoint of step 8 is damaged"
    ]
    with pytest.raises(RunError, match="has no whole checkpoint"):
        run.checkpoints.restore_newest(1)


def test_checkpoints_after_a_step_are_deleted(parts: Make) -> None:
    run = parts()
    for step in (2, 4, 6):
        run.checkpoints.save(step)
    run.checkpoints.delete_after(4)
    assert run.checkpoints.steps == [2, 4]


@pytest.mark.parametrize(
    ("cluster", "kept"), [(None, [2, 8]), ({"coordinated": True}, [2, 8]), ({"coordinated": False}, [2, 6, 8])], ids=str
)
def test_the_best_and_the_newest_are_kept_and_two_by_several_workers(
    parts: Make, cluster: dict[str, bool] | None, kept: list[int]
) -> None:
    run = parts(keep_checkpoints=1)
    for step in (2, 4, 6, 8):
        run.checkpoints.save(step)
    plan = run.assembly.plan
    run.checkpoints._assembly = cast(Any, SimpleNamespace(plan=plan, cluster=cluster and SimpleNamespace(**cluster)))
    run.checkpoints.prune(2)
    assert run.checkpoints.steps == kept


def test_values_that_are_not_finite_are_not_saved(parts: Make) -> None:
    run = parts()
    first, second = run.assembly.model.weights[:2]
    run.checkpoints.save(2)
    first.assign(np.full(first.shape, np.nan))
    with pytest.raises(NotFiniteError, match=f"^{first.path} is not finite after step 1,234$"):
        run.checkpoints.save(1234)
    second.assign(np.full(second.shape, np.inf))
    with pytest.raises(NotFiniteError, match=f"^{first.path} and 1 more are not finite"):
        run.checkpoints.save(1234)
    assert run.checkpoints.steps == [2]


def test_checkpoints_without_checksums_are_checked_and_get_them(parts: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    run = parts()
    folder = run.directory / CHECKPOINTS
    run.checkpoints.save(2)
    (folder / "step-2.json").unlink()
    run.checkpoints.restore(2)
    assert has_checksums(folder, 2)

    first = run.assembly.model.weights[0]
    first.assign(np.full(first.shape, np.nan))
    with monkeypatch.context() as unchecked:
        unchecked.setattr(Checkpoints, "not_finite", lambda _: [])
        run.checkpoints.save(4)
    (folder / "step-4.json").unlink()
    with pytest.raises(DamagedCheckpointError, match=rf"step 4 is damaged \({first.path} is not finite after step 4\)"):
        run.checkpoints.restore(4)
    assert not has_checksums(folder, 4)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"batch_size": 128}, "6 steps of 256 examples from 1437 and is now 12 steps of 128 examples from 1437"),
        ({"steps_per_epoch": 5}, "6 steps of 256 examples from 1437 and is now 5 steps of 256 examples from 1437"),
    ],
    ids=str,
)
def test_a_checkpoint_of_other_epochs_is_refused(parts: Make, fields: dict[str, int], words: str) -> None:
    run = parts()
    run.checkpoints.save(2)
    with pytest.raises(RunError, match=f"does not match the data or the number of replicas: an epoch was {words}"):
        parts(run.directory, **fields).checkpoints.restore(2)


def test_a_checkpoint_of_another_model_is_refused(parts: Make, random_model: str) -> None:
    run = parts()
    run.checkpoints.save(2)
    other = parts(run.directory, model=random_model).checkpoints
    with pytest.raises(RunError):
        other.restore(2)
    with pytest.raises(RunError):
        other.restore_weights(2)


def test_a_rate_that_the_plan_has_not_changed_stays_as_it_was_set(parts: Make) -> None:
    scaled = {"strategy": "mirrored", "virtual_cpus": 2, "rate_scaling": "linear"}
    run = parts(**scaled)
    run.assembly.model.optimizer.learning_rate = 0.7
    run.checkpoints.save(2)

    def restored(step: int, **fields: Any) -> Parts:
        made = parts(run.directory, **scaled, **fields)
        made.checkpoints.restore(step)
        return made

    assert restored(2).assembly.learning_rate == pytest.approx(0.7)
    changed = restored(2, learning_rate=0.3)
    assert changed.assembly.learning_rate == pytest.approx(0.6)  # of two replicas
    changed.assembly.model.optimizer.learning_rate = 0.5
    changed.checkpoints.save(4)
    assert restored(4, learning_rate=0.3).assembly.learning_rate == pytest.approx(0.5)
    assert restored(4, learning_rate=None).assembly.learning_rate == pytest.approx(0.5)


def test_a_rate_that_follows_a_schedule_is_not_set(parts: Make) -> None:
    run = parts(schedule="cosine")
    run.checkpoints.save(2)
    again = parts(run.directory, schedule="cosine", learning_rate=0.3)
    again.checkpoints.restore(2)
    assert isinstance(again.assembly.model.optimizer._learning_rate, keras.optimizers.schedules.CosineDecay)


STREAM = """
import numpy as np

def data():
    def batches():
        for _ in range(4):
            yield np.ones((8, 3), np.float32), np.ones((8, 1), np.float32)
    return {"train": batches}
"""


def test_a_checkpoint_of_a_stream_has_no_number_of_examples(parts: Make, tmp_path: Path) -> None:
    (tmp_path / "stream.py").write_text(STREAM)
    run = parts(model="linear", data=f"{tmp_path}/stream.py:data", task="regression", steps_per_epoch=4, batch_size=8)
    run.checkpoints.save(2)
    stored = tf.train.load_checkpoint(str(run.directory / CHECKPOINTS / "step-2"))
    layout = stored.get_tensor("layout/.ATTRIBUTES/VARIABLE_VALUE")  # which later versions compare with theirs
    assert layout.tolist() == [0, 4, 8]


def test_a_checkpoint_has_the_mean_of_the_replicas_statistics(parts: Make, random_model: str) -> None:
    run = parts(model=random_model, strategy="mirrored", virtual_cpus=2)
    (mean,) = [each for each in run.assembly.model.non_trainable_variables if "moving_mean" in each.path]
    for number, copy in enumerate(mean.value.values):
        copy.assign(np.full(mean.shape, 2.0 * number))
    run.checkpoints.save(2)
    run.checkpoints.restore(2)
    for copy in mean.value.values:
        np.testing.assert_array_equal(copy, np.ones(mean.shape))


class Masked(keras.layers.Layer):
    def build(self, _: Any) -> None:
        self.mask = self.add_weight(shape=(2,), initializer=keras.initializers.Constant(-np.inf), trainable=False)

    def call(self, x: Any) -> Any:
        return x


@pytest.mark.parametrize(
    "strategy",
    [
        tf.distribute.get_strategy,
        lambda: tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]),
        lambda: tf.distribute.OneDeviceStrategy("CPU:1"),
        lambda: tf.distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"]),
    ],
    ids=["default", "mirrored", "one-device", "central-storage"],
)
def test_the_variables_that_are_not_finite_are_named(strategy: Any) -> None:
    with strategy().scope():
        model = keras.Sequential(
            [keras.Input((3,)), Masked(), keras.layers.Dense(2), keras.layers.BatchNormalization()]
        )
        model.compile("adam", "mse")
        model.optimizer.build(model.trainable_variables)
        finiteness = Finiteness(cast(Assembly, SimpleNamespace(model=model)))
        assert finiteness.failures() == []  # the mask was infinite from the start
        kernel, variance = model.layers[1].kernel, model.layers[2].moving_variance
        momentum = model.optimizer.variables[2]
        for variable in (kernel, variance, momentum):
            before = variable.numpy()
            variable.assign(np.where(np.arange(before.size).reshape(before.shape) == 0, np.nan, before))
            assert finiteness.failures() == [variable]
            variable.assign(np.full(before.shape, np.inf))
            assert finiteness.failures() == [variable]
            variable.assign(before)
        assert finiteness.failures() == []


class Counting(keras.layers.Layer):
    def build(self, _: Any) -> None:
        self.count = self.add_weight(shape=(), dtype="int64", initializer="zeros", trainable=False)

    def call(self, x: Any) -> Any:
        return x


def test_weights_that_are_no_floating_point_numbers_are_finite() -> None:
    model = keras.Sequential([keras.Input((3,)), Counting(), keras.layers.Dense(2)])
    model.compile("adam", "mse")

    assert Finiteness(cast(Assembly, SimpleNamespace(model=model))).failures() == []
