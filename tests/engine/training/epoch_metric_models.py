"""Models with metrics that are no means of batches, and data of which few examples are positive."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, metrics


def rare() -> dict[str, Any]:
    """330 weighted examples of which one in fifteen is positive."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=(330, 6)).astype("float32")
    y = (x[:, :1] + 0.5 * rng.normal(size=(330, 1)) > 1.6).astype("float32")
    return {"train": (x, y, rng.uniform(0.2, 2.0, 330).astype("float32"))}


def _model(kind: type[keras.Model] = keras.Model) -> keras.Model:
    inputs = keras.Input((6,))
    hidden = layers.Dense(8, activation="tanh", kernel_initializer=keras.initializers.GlorotUniform(1))(inputs)
    last = layers.Dense(1, activation="sigmoid", kernel_initializer=keras.initializers.GlorotUniform(2))
    return kind(inputs, last(hidden))


class Total(metrics.Sum):
    """The sum of the outputs of positive examples."""

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        super().update_state(keras.ops.cast(y_true, "float32") * y_pred, sample_weight)


def compiled() -> keras.Model:
    """A model with metrics of any kind."""
    model = _model()
    model.compile(
        keras.optimizers.SGD(0.5),
        "binary_crossentropy",
        metrics=[
            metrics.Precision(name="precision"),
            metrics.Recall(name="recall"),
            metrics.AUC(name="auc"),
            metrics.RootMeanSquaredError(name="rmse"),
            metrics.R2Score(name="r2"),
            metrics.TruePositives(name="hits"),
            Total(name="total"),
        ],
        weighted_metrics=[metrics.Recall(name="weighted_recall"), metrics.MeanAbsoluteError(name="weighted_mae")],
    )
    return model


def many_classes() -> keras.Model:
    """A classifier of 100 classes, whose confusion matrix has 10,000 values."""
    model = keras.Sequential([keras.Input((6,)), layers.Dense(100, activation="softmax")])
    model.compile(
        keras.optimizers.SGD(0.5),
        "sparse_categorical_crossentropy",
        metrics=[
            metrics.SparseCategoricalAccuracy(name="right"),
            metrics.MeanIoU(100, sparse_y_pred=False, name="iou"),
        ],
    )
    return model


def classes() -> dict[str, Any]:
    """Examples of 100 classes."""
    rng = np.random.default_rng(5)
    split = rng.normal(size=(64, 6)).astype("float32"), np.arange(64) % 100
    return {"train": split, "validation": split}


class OwnStep(keras.Model):
    """Takes its steps itself, and returns its metrics beside a number that is none."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.recall = metrics.Recall(name="recall")
        self.error = metrics.RootMeanSquaredError(name="rmse")
        self.total = metrics.Sum(name="total")

    @property
    def metrics(self) -> list[keras.Metric]:
        return [self.recall, self.error, self.total]

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y, _ = keras.utils.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            outputs = self(x, training=True)
            loss = self.compute_loss(x, y, outputs)
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        self.recall.update_state(y, outputs)
        self.error.update_state(y, outputs)
        self.total.update_state(outputs)
        return {metric.name: metric.result() for metric in self.metrics} | {"loss": loss}


def with_own_step() -> keras.Model:
    """A model whose ``train_step`` returns metrics."""
    model = _model(OwnStep)
    model.compile(keras.optimizers.SGD(0.5), "binary_crossentropy")
    return model
