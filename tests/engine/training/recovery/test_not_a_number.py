"""Runs whose losses or weights are not a number, or whose loss explodes: what is found, and how they continue."""

import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine.events import CheckpointSaved, Outcome, Recovered
from accel_engine.plan import Plan
from accel_engine.run import RunWriter, create
from accel_engine.run.directory.checkpoint_files import delete_after
from accel_engine.run.directory.run_paths import CHECKPOINTS
from recorded_run import started

from ..conftest import Gym, Trained

EXAMPLES, BATCH, COLUMNS = 320, 8, 4
"""40 steps an epoch."""

MODELS = """
import keras
from keras import layers, ops

def linear(input_shape):
    model = keras.Sequential([keras.Input(input_shape), layers.Dense(1, use_bias=False, name="only")])
    model.compile("sgd", "mse")
    return model

def hidden(input_shape):
    model = keras.Sequential([keras.Input(input_shape), layers.Dense(8, activation="relu"), layers.Dense(1)])
    model.compile("adam", "mse")
    return model

def log_of_zero(input_shape):
    def loss(targets, outputs):
        return -ops.log(ops.relu(outputs - ops.cast(ops.max(targets) > 2.5, "float32") * 1e9))
    model = keras.Sequential([keras.Input(input_shape), layers.Dense(1, activation="softplus")])
    model.compile("sgd", loss)
    return model

def recurrent(input_shape):
    model = keras.Sequential([keras.Input(input_shape), layers.Reshape((-1, 1)), layers.Dense(4, name="before"),
                              layers.SimpleRNN(4, activation="relu", name="loop",
                                               recurrent_initializer=keras.initializers.Constant(1e14)),
                              layers.Dense(1)])
    model.compile("sgd", "mse")
    return model

class Custom(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(1)

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        import tensorflow as tf
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(x) - y) ** 2)
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        return {"loss": loss}

def custom(input_shape):
    model = Custom()
    model(ops.zeros((1, *input_shape)))
    model.compile("sgd", "mse")
    return model

class Game(Custom):
    def train_step(self, data):
        return {**super().train_step(data), "g_loss": ops.log(-1.0)}

def game(input_shape):
    model = Game()
    model(ops.zeros((1, *input_shape)))
    model.compile("sgd", "mse")
    return model

def stream(split):
    import tensorflow as tf
    import numpy as np
    random = np.random.default_rng(0)
    x = random.normal(size=(96, 4)).astype("float32")
    y = x.sum(1, keepdims=True)
    x[43, 2] = np.nan
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
"""

X = np.random.default_rng(1).normal(size=(EXAMPLES, COLUMNS)).astype(np.float32)
Y = X.sum(axis=1, keepdims=True)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """One epoch of a linear regression, which trains well."""
    (tmp_path / "models.py").write_text(MODELS)
    return with_data(
        Plan(
            model=f"{tmp_path / 'models.py'}:linear",
            task="regression",
            split="none",
            epochs=1,
            batch_size=BATCH,
            learning_rate=0.05,
            checkpoint_every="10 steps",
            xla="off",
        ),
        tmp_path,
    )


def with_data(plan: Plan, folder: Path, **values: float) -> Plan:
    """A plan with data whose values of row 77 are replaced: ``x2=1e30`` for column 2 of the inputs."""
    x, y = X.copy(), Y.copy()
    for place, value in values.items():
        (x if place[0] == "x" else y)[77, int(place[1:])] = value
    path = folder / f"data{'-'.join(values)}.npz"
    np.savez(path, x=x, y=y)
    return plan.replace(data=str(path))


def model(plan: Plan, name: str) -> str:
    return plan.model.rpartition(":")[0] + f":{name}"


def by_hand(gym: Gym, plan: Plan, step: int, **changes: Any) -> np.ndarray:
    """The losses after a checkpoint of a run that stops at the trouble, and is continued with changes by hand."""
    stopped = gym.train(plan.replace(on_nan="stop"))
    assert stopped.ended.outcome is Outcome.FAILED
    assert stopped.all(CheckpointSaved)[-1].step == step
    return gym.train(plan.replace(**changes), run=stopped.directory).series["loss"][-(EXAMPLES // BATCH - step) :]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        pytest.param({"xla": "on"}, marks=pytest.mark.campaign),
        pytest.param({"schedule": "cosine", "warmup": 3.0}, marks=pytest.mark.campaign),
        pytest.param({"strategy": "mirrored", "virtual_cpus": 2}, marks=pytest.mark.campaign),
    ],
)
def test_a_batch_with_extreme_values_is_skipped(gym: Gym, plan: Plan, tmp_path: Path, changes: dict[str, Any]) -> None:
    plan = with_data(plan, tmp_path, x2=1e30).replace(**changes)
    trained = gym.train(plan)

    recovered = trained.only(Recovered)
    step = recovered.failed_step - recovered.failed_step % 2  # of a chunk of two
    (fault,) = recovered.changes["skip_steps"]
    assert int(fault) in (step - 2, step - 1)
    assert recovered.action == f"the batch of step {fault} is skipped"
    assert "inputs extreme in column 2 (training examples 77)" in recovered.reason
    assert trained.ended.outcome is Outcome.FINISHED
    losses = trained.series["loss"][-(EXAMPLES // BATCH - recovered.step) :]
    assert np.flatnonzero(np.isnan(losses)).tolist() == [int(fault) - recovered.step]
    hand = by_hand(gym, plan, recovered.step, skip_steps=(fault,))
    np.testing.assert_array_equal(losses, hand)
    if "schedule" in changes:  # it goes on as planned
        whole = gym.train(plan.replace(data=str(tmp_path / "data.npz")))
        rates = trained.series["learning_rate"][-10:]
        np.testing.assert_array_equal(rates, whole.series["learning_rate"][-10:])
    kept = tmp_path / trained.directory / f"not-a-number-step-{fault}.npz"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    with np.load(kept) as file:
        assert file["rows"][0] == 77
        np.testing.assert_array_equal(file["targets"], Y[file["rows"]])


@pytest.mark.parametrize(
    "changes", [{"strategy": "mirrored", "virtual_cpus": 2}, pytest.param({}, marks=pytest.mark.campaign)]
)
def test_a_stream_with_nan_inputs(gym: Gym, plan: Plan, changes: dict[str, Any]) -> None:
    data = model(plan, "stream")
    trained = gym.train(plan.replace(data=data, steps_per_epoch=12, validation="off", batch_size=64, **changes))

    recovered = trained.only(Recovered)
    assert recovered.changes == {"skip_steps": ["5"]}
    assert "inputs not finite in column 2 (examples 3 of the batch of step 5)" in recovered.reason
    assert (trained.ended.outcome, trained.ended.steps) == (Outcome.FINISHED, 12)


def test_weights_that_are_not_finite_behind_finite_losses(gym: Gym, plan: Plan) -> None:
    """The gradient of the first layer is NaN, and ReLU hides it: only the checkpoint notices."""
    plan = plan.replace(data=model(plan, "stream"), model=model(plan, "hidden"), steps_per_epoch=12, batch_size=64)
    trained = gym.train(plan.replace(validation="off", checkpoint_every="auto"))

    recovered = trained.only(Recovered)
    assert recovered.failed_step == 12
    assert recovered.changes == {"skip_steps": ["5"]}
    assert "inputs not finite in column 2" in recovered.reason
    assert trained.ended.outcome is Outcome.FINISHED


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, marks=pytest.mark.campaign),
        {"schedule": "cosine"},
        pytest.param({"strategy": "mirrored", "virtual_cpus": 2}, marks=pytest.mark.campaign),
    ],
)
def test_a_learning_rate_that_is_too_high_is_halved(gym: Gym, plan: Plan, changes: dict[str, Any]) -> None:
    """The losses from the checkpoint on equal a run's that is given the same change by hand."""
    scheduled = "schedule" in changes
    plan = plan.replace(epochs=2, learning_rate=4.0 if scheduled else 0.05, keep_checkpoints=9, **changes)
    commands: dict[int, list[tuple[Any, ...]]] = {} if scheduled else {20: [("learning_rate", 3.0)]}
    trained = gym.train(plan, at=commands)

    *_, last = trained.all(Recovered)
    assert trained.ended.outcome is Outcome.FINISHED
    assert "is not finite" in last.reason
    assert trained.all(Recovered)[0].changes == {"learning_rate_factor": 0.5}
    assert last.step == (10 if scheduled else 20)
    hand = gym.train(plan.replace(on_nan="stop"), at=commands)
    delete_after(hand.directory / CHECKPOINTS, last.step)
    continued = gym.train(plan.replace(**last.changes), run=hand.directory)
    count = 2 * EXAMPLES // BATCH - last.step
    np.testing.assert_array_equal(trained.series["loss"][-count:], continued.series["loss"][-count:])
    np.testing.assert_array_equal(trained.series["learning_rate"][-count:], continued.series["learning_rate"][-count:])


def test_a_learning_rate_that_a_command_has_set_since_the_checkpoint_is_undone(gym: Gym, plan: Plan) -> None:
    plan = plan.replace(epochs=2)
    directory = create(plan)
    with closing(RunWriter(directory)) as writer:
        writer.write_event(started())
    trained = gym.train_directory(directory, plan, at={14: [("learning_rate", 1e10)]})

    recovered = trained.only(Recovered)
    assert (recovered.step, recovered.changes) == (10, {})
    assert recovered.reason.endswith("; the learning rate was set to 1e+10 at step 14")
    assert trained.ended.outcome is Outcome.FINISHED
    np.testing.assert_array_equal(trained.series["loss"], gym.train_once(plan).series["loss"])


def test_another_loss_of_a_custom_step_may_be_missing_in_some_steps(gym: Gym, plan: Plan) -> None:
    trained = gym.train(plan.replace(model=model(plan, "game")))

    assert np.isnan(trained.series["g_loss"]).all()
    assert trained.ended.outcome is Outcome.FINISHED
    assert not trained.all(Recovered)


def test_after_three_repairs_the_run_stops(gym: Gym, plan: Plan) -> None:
    trained = gym.train(plan.replace(learning_rate=1.5e3))

    assert trained.ended.outcome is Outcome.FAILED
    assert len(trained.all(Recovered)) == 3
    assert "also after 3 repairs" in trained.ended.reason
    assert "try a lower learning rate" in trained.ended.hint


def test_overflows_of_float16_are_no_trouble(gym: Gym, plan: Plan) -> None:
    """The gradients of the scaled loss overflow in the first steps, whose updates the optimizer leaves out."""
    trained = gym.train(plan.replace(precision="mixed_float16", force="on", gradient_norm="on", learning_rate=1e-3))

    assert trained.ended.outcome is Outcome.FINISHED
    assert not np.isfinite(trained.series["gradient_norm"]).all()
    assert not trained.all(Recovered)


def test_a_continued_run_is_repaired(gym: Gym, plan: Plan, tmp_path: Path) -> None:
    plan = with_data(plan, tmp_path, x2=1e30).replace(epochs=2)
    order = gym.train(plan).all(Recovered)[0].failed_step
    stopped = gym.train(plan, at={order - 6: [("stop",)]})
    assert stopped.ended.outcome is Outcome.STOPPED
    continued = gym.train(plan, run=stopped.directory)

    assert continued.ended.outcome is Outcome.FINISHED
    repairs = continued.all(Recovered)
    assert len(repairs) == 2  # one in each epoch
    assert repairs[0].step == stopped.ended.steps
    assert len(continued.series["loss"]) >= 80


def test_stop_ends_the_run_with_what_was_found(gym: Gym, plan: Plan) -> None:
    trained = gym.train(plan.replace(learning_rate=1e20, on_nan="stop"))

    assert trained.ended.outcome is Outcome.FAILED
    assert "of step" in trained.ended.reason
    assert "the loss is not finite, although the outputs of all layers are; the batch of step 1" in trained.ended.reason
    assert not trained.all(Recovered)
    assert not trained.all(CheckpointSaved)


def test_a_custom_loss_of_zero(gym: Gym, plan: Plan) -> None:
    trained = gym.train(plan.replace(model=model(plan, "log_of_zero"), on_nan="stop"))

    assert trained.ended.outcome is Outcome.FAILED
    assert "the loss is not finite, although the outputs of all layers are" in trained.ended.reason


def test_an_exploding_recurrent_layer(gym: Gym, plan: Plan) -> None:
    trained = gym.train(plan.replace(model=model(plan, "recurrent"), on_nan="stop"))

    assert trained.ended.outcome is Outcome.FAILED
    assert "the output of layer loop (SimpleRNN) is not finite first" in trained.ended.reason


def test_a_custom_train_step_names_the_batch_only(gym: Gym, plan: Plan, tmp_path: Path) -> None:
    plan = with_data(plan, tmp_path, x1=1e30).replace(model=model(plan, "custom"))
    trained = gym.train(plan)

    assert trained.ended.outcome is Outcome.FINISHED
    reason = trained.only(Recovered).reason
    assert "inputs extreme in column 1 (training examples 77)" in reason
    assert "more is unknown: the model has a custom train_step" in reason


def test_a_loss_that_explodes_returns_to_a_checkpoint_before(gym: Gym, plan: Plan) -> None:
    gym.steps = 10
    plan = plan.replace(epochs=12, validation="off", checkpoint_every="20 steps")
    trained: Trained = gym.train(plan, at={330: [("learning_rate", 1.05)]})

    recovered = trained.all(Recovered)[0]
    assert "the loss explodes from step 3" in recovered.reason
    assert recovered.step in (320, 340)
