"""Training with a recorder is training without one, to the last bit."""

from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine import RunRecorder
from accel_engine.events import ModelBuilt, Outcome, RunEnded
from accel_engine.recording import fit_session as fitting
from accel_engine.recording import model_description

from .conftest import Read, examples


class Variational(keras.Model):
    """An autoencoder with a custom step and no ``call``."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
        self.decoder = keras.Sequential([keras.Input((2,)), keras.layers.Dropout(0.2), keras.layers.Dense(4)])
        self.tracker = keras.metrics.Mean(name="total_loss")

    @property
    def metrics(self) -> list[Any]:
        return [self.tracker]

    def train_step(self, data: Any) -> dict[str, Any]:
        with tf.GradientTape() as tape:
            code = self.encoder(data) + tf.random.normal((1, 2))
            loss = tf.reduce_mean((self.decoder(code, training=True) - data) ** 2)
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        self.tracker.update_state(loss)
        return {"loss": self.tracker.result()}


class Adversarial(keras.Model):
    """Two models with an optimizer each, and another ``compile``."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = keras.Sequential([keras.Input((2,)), keras.layers.Dense(4)])
        self.discriminator = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
        self.seeds = keras.random.SeedGenerator(7)

    def compile(self, d_optimizer: Any, g_optimizer: Any) -> None:
        super().compile()
        self.d_optimizer, self.g_optimizer = d_optimizer, g_optimizer

    def train_step(self, data: Any) -> dict[str, Any]:
        losses = {}
        for name, model, sign in (("d", self.discriminator, 1.0), ("g", self.generator, -1.0)):
            with tf.GradientTape() as tape:
                made = self.generator(keras.random.normal((8, 2), seed=self.seeds))
                score = tf.reduce_mean(self.discriminator(made)) - tf.reduce_mean(self.discriminator(data))
                losses[f"{name}_loss"] = sign * tf.nn.softplus(score)
            weights = model.trainable_variables
            getattr(self, f"{name}_optimizer").apply(tape.gradient(losses[f"{name}_loss"], weights), weights)
        return losses


def _classifier(**compiled: Any) -> keras.Model:
    layers = [keras.Input((4,)), keras.layers.Dropout(0.3), keras.layers.Dense(3, activation="softmax")]
    model = keras.Sequential(layers)
    f1 = keras.metrics.F1Score(average=None)
    model.compile("adam", "categorical_crossentropy", metrics=["accuracy", f1], **compiled)
    return model


def _labelled() -> tuple[np.ndarray, np.ndarray]:
    x, y = examples()
    return x, np.eye(3, dtype=np.float32)[y]


def _batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    x, y = _labelled()
    for first in range(0, len(x), 8):
        yield x[first : first + 8], y[first : first + 8]


def _variational() -> keras.Model:
    model = Variational()
    model.compile(
        keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(0.0, 30, warmup_target=0.1, warmup_steps=5))
    )
    return model


def _adversarial() -> keras.Model:
    model = Adversarial()
    model.compile(keras.optimizers.Adam(1e-3), keras.optimizers.SGD(2e-3))
    return model


MODELS: dict[str, tuple[Callable[[], keras.Model], Callable[[], Any]]] = {
    "sequential": (_classifier, _labelled),
    "eager": (lambda: _classifier(run_eagerly=True), _labelled),
    "several steps an execution": (lambda: _classifier(steps_per_execution=4), _labelled),
    "batches of unknown number": (_classifier, lambda: (_batches(),)),
    "variational autoencoder": (_variational, lambda: examples()[:1]),
    "adversarial": (_adversarial, lambda: examples()[:1]),
}


ORDINARY = ("several steps an execution", "variational autoencoder", "adversarial")
MORE = ("sequential", "eager", "batches of unknown number")


def trained(kind: str, callbacks: list[Any]) -> tuple[Any, ...]:
    """All that a training leaves: its history, weights, optimizers, metrics, random states and settings."""
    build, data = MODELS[kind]
    keras.utils.set_random_seed(5)
    model = build()
    epochs = 1 if kind == "batches of unknown number" else 2
    history = model.fit(*data(), batch_size=8, epochs=epochs, verbose=0, shuffle=False, callbacks=callbacks).history
    optimizers = [each for each in vars(model).values() if isinstance(each, keras.optimizers.Optimizer)]
    variables = [
        *(weight.numpy().tolist() for weight in model.variables),
        *(weight.numpy().tolist() for optimizer in optimizers for weight in optimizer.variables),
        *(weight.numpy().tolist() for metric in model.metrics for weight in metric.variables),
    ]
    draws = [np.random.random(), float(tf.random.uniform(())), float(keras.random.uniform(()))]
    settings = [keras.config.floatx(), keras.config.dtype_policy().name, tf.config.functions_run_eagerly()]
    numbers = {name: np.asarray(values).tolist() for name, values in history.items()}
    return numbers, variables, draws, settings, model.stop_training


@pytest.mark.filterwarnings("ignore:.*ran out of data:UserWarning")
@pytest.mark.parametrize("kind", [*ORDINARY, *(pytest.param(kind, marks=pytest.mark.campaign) for kind in MORE)])
def test_nothing_differs(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(fitting, "UPDATE_SECONDS", 0.0)
    recorder = RunRecorder()

    assert trained(kind, [recorder]) == trained(kind, [])

    (ended,) = Read(recorder.directory).all(RunEnded)
    assert ended.outcome is Outcome.FINISHED


def test_what_a_model_without_call_does_not_tell_is_told_of_its_parts() -> None:
    recorder = RunRecorder()

    trained("variational autoencoder", [recorder])

    built = Read(recorder.directory).all(ModelBuilt)[-1]
    assert (built.parameters, built.trainable, built.layers, built.optimizer) == (22, 22, 2, "Adam")
    assert (built.input_shape, built.loss) == (None, "the model's own")


def test_of_several_optimizers_those_in_use_are_told_and_their_rates_recorded() -> None:
    recorder = RunRecorder()

    trained("adversarial", [recorder])

    read = Read(recorder.directory)
    assert read.all(ModelBuilt)[-1].optimizer == "Adam (d_optimizer), SGD (g_optimizer)"
    assert read.names == {"d_loss", "g_loss", "d_learning_rate", "g_learning_rate"}
    np.testing.assert_array_equal(read.series("d_learning_rate"), np.full(26, np.float32(1e-3)))
    np.testing.assert_array_equal(read.series("g_learning_rate"), np.full(26, np.float32(2e-3)))


def test_a_mean_that_a_step_tells_by_another_name_is_not_taken_for_what_a_batch_measured() -> None:
    recorder = RunRecorder()
    told: list[float] = []
    listen = keras.callbacks.LambdaCallback(on_train_batch_end=lambda _, logs: told.append(logs["loss"]))

    trained("variational autoencoder", [recorder, listen])

    losses = Read(recorder.directory).series("loss")
    means = np.concatenate([np.cumsum(part) / np.arange(1, 14) for part in np.split(losses.astype(np.float64), 2)])
    np.testing.assert_allclose(means, told, rtol=1e-5)
    assert not np.allclose(losses, told, rtol=1e-3)


def test_what_a_model_does_not_tell_is_unknown() -> None:
    built = model_description.model_built(object(), epochs=1, steps=None, batch=None, series=())

    assert (built.parameters, built.trainable, built.layers, built.xla) == (None, None, None, None)
    assert (built.optimizer, built.precision, built.input_shape) == ("", "", None)
    assert (model_description.name(object()), model_description.strategy(object())) == ("object", "default")


def test_the_parameters_of_a_model_that_is_not_built_are_unknown() -> None:
    model = keras.Sequential([keras.layers.Dense(3)])
    assert model_description.model_built(model, epochs=1, steps=None, batch=None, series=()).parameters is None

    model.build((None, 4))
    assert model_description.model_built(model, epochs=1, steps=None, batch=None, series=()).parameters == 15
