"""Models and data of every task, as a user's own file: for each task a function for its data, and one for its model.

The data has 345 examples: with batches of 32, the last one of an epoch has 25. All models are smooth, as ReLU makes
rounding errors larger.
"""

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

EXAMPLES = 345


def _rng() -> np.random.Generator:
    return np.random.default_rng(7)


def _x(*shape: int) -> np.ndarray:
    return _rng().normal(size=(EXAMPLES, *shape)).astype("float32")


def _weights(*shape: int) -> np.ndarray:
    return _rng().uniform(0.2, 2.0, (EXAMPLES, *shape)).astype("float32")


def _dense(units: int, activation: str | None = None) -> keras.Sequential:
    return keras.Sequential(
        [
            keras.Input((6,)),
            layers.Dense(16, activation="tanh", kernel_regularizer=keras.regularizers.L2(1e-3)),
            layers.Dense(units, activation=activation),
        ]
    )


def _compiled(model: keras.Model, loss: Any, **options: Any) -> keras.Model:
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss, **options)
    return model


def classification_data():
    x = _x(6)
    return {"train": (x, x[:, :3].argmax(-1))}


def classification_model():
    return _compiled(_dense(3, "softmax"), "sparse_categorical_crossentropy", metrics=["accuracy"])


def one_hot_data():
    x = _x(6)
    return {"train": (x, np.eye(3, dtype="float32")[x[:, :3].argmax(-1)])}


def one_hot_model():
    loss = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)
    return _compiled(_dense(3), loss, metrics=["accuracy"])


def weighted_data():
    x = _x(6)
    return {"train": (x, x[:, :3].argmax(-1), _weights())}


def weighted_model():
    return _compiled(_dense(3, "softmax"), "sparse_categorical_crossentropy", weighted_metrics=["accuracy"])


def binary_data():
    x = _x(6)
    return {"train": (x, (x[:, 0] > 0.5).astype("int32"))}


def binary_model():
    return _compiled(_dense(1, "sigmoid"), "binary_crossentropy", metrics=["accuracy"])


def multi_label_data():
    x = _x(6)
    return {"train": (x, (x[:, :4] > 0.3).astype("float32"))}


def multi_label_model():
    return _compiled(_dense(4, "sigmoid"), keras.losses.BinaryFocalCrossentropy(), metrics=["binary_accuracy"])


def regression_data():
    x = _x(6)
    return {"train": (x, np.sin(x[:, :3]), _weights())}


def regression_model():
    return _compiled(_dense(3), "mean_squared_error", metrics=["mean_absolute_error"])


def text_data():
    """Texts of three tokens for outputs of six steps, over four tokens and the blank."""
    return {"train": (_x(6, 4), _rng().integers(1, 5, (EXAMPLES, 3)))}


def text_model():
    model = keras.Sequential([keras.Input((6, 4)), layers.Dense(8, activation="tanh"), layers.Dense(5)])
    return _compiled(model, keras.losses.CTC())


def circle_data():
    """The person of each example, whose embedding the model learns."""
    return {"train": (_x(6), _rng().integers(0, 7, EXAMPLES))}


def circle_model():
    model = keras.Sequential([_dense(16), layers.UnitNormalization()])
    return _compiled(model, keras.losses.Circle(gamma=4.0))


def counts_data():
    x = _x(6)
    return {"train": (x, _rng().poisson(np.exp(x[:, 0])))}


def counts_model():
    return _compiled(_dense(1, "softplus"), keras.losses.Poisson(), metrics=["mean_absolute_error"])


def one_value_data():
    x = _x(6)
    return {"train": (x, x[:, :3] * x[:, 3:])}


def one_value_model():
    """A loss of one's own that is one value for the whole batch."""
    return _compiled(_dense(3), lambda y_true, y_pred: ops.mean(ops.square(y_true - y_pred)))


def several_values_data():
    x = _x(6)
    return {"train": (x, (x[:, :1], x[:, 1:3]))}


def several_values_model():
    """Two outputs, each with a loss of one's own that is one value for the whole batch."""
    inputs = keras.Input((6,))
    x = layers.Dense(16, activation="tanh")(inputs)
    heads = [layers.Dense(1, name="one")(x), layers.Dense(2, name="two")(x)]
    losses = [
        lambda y_true, y_pred: ops.mean(ops.square(y_true - y_pred)),
        lambda y_true, y_pred: ops.mean(ops.abs(y_true - y_pred)),
    ]
    return _compiled(keras.Model(inputs, heads), losses, loss_weights=[0.5, 2.0])


def summed_data():
    return regression_data()


def summed_model():
    model = _dense(3)
    model.compile(keras.optimizers.SGD(0.005), keras.losses.MeanSquaredError(reduction="sum"), metrics=["mae"])
    return model


def column_data():
    """Targets ``[n]`` for outputs ``[n, 1]``."""
    x = _x(6)
    return {"train": (x, x[:, 0] * x[:, 1])}


def column_model():
    return _compiled(_dense(1), "huber", metrics=["mean_absolute_error"])


def sequence_data():
    """A label per token; tokens of number 0 are padding of any length."""
    tokens = _rng().integers(1, 20, (EXAMPLES, 8))
    labels = tokens % 3
    tokens[np.arange(8) >= _rng().integers(2, 9, (EXAMPLES, 1))] = 0
    return {"train": (tokens.astype("int32"), labels)}


def _tagger() -> keras.Sequential:
    return keras.Sequential(
        [
            keras.Input((8,), dtype="int32"),
            layers.Embedding(20, 8, mask_zero=True),
            layers.GRU(8, return_sequences=True),
            layers.Dense(3, activation="softmax"),
        ]
    )


def sequence_model():
    return _compiled(_tagger(), "sparse_categorical_crossentropy", weighted_metrics=["accuracy"])


def token_weights_data():
    """A weight per token, besides the mask."""
    tokens, labels = sequence_data()["train"]
    return {"train": (tokens, labels, _weights(8))}


def token_weights_model():
    return sequence_model()


def masked_data():
    """Series of any length, whose last steps are padding."""
    x = _x(10, 4)
    x[np.arange(10) >= _rng().integers(3, 11, (EXAMPLES, 1))] = -1.0
    return {"train": (x, x[:, 0])}


def masked_model():
    model = keras.Sequential([keras.Input((10, 4)), layers.Masking(-1.0), layers.LSTM(8), layers.Dense(4)])
    return _compiled(model, "mean_squared_error", metrics=["mean_absolute_error"])


def segmentation_data():
    x = _x(8, 8, 1)
    return {"train": (x, np.digitize(x[..., 0], [-0.5, 0.5]).astype("int32"))}


def segmentation_model():
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(4, 3, padding="same", activation="tanh"),
            layers.Conv2D(3, 1, activation="softmax"),
        ]
    )
    return _compiled(model, "sparse_categorical_crossentropy", metrics=["accuracy"])


def reconstruction_data():
    x = _x(6)
    return {"train": (x, x)}


def reconstruction_model():
    return _compiled(_dense(6), "mean_squared_error")


def image_data():
    x = _x(8, 8, 1)
    return {"train": (x, x[:, ::-1] ** 2)}


def image_model():
    model = keras.Sequential([keras.Input((8, 8, 1)), layers.Conv2D(4, 3, padding="same", activation="tanh")])
    model.add(layers.Conv2DTranspose(1, 3, padding="same"))
    return _compiled(model, "mean_absolute_error")


def outputs_data():
    """Two inputs and two outputs by name; each output has its own weights."""
    x = _x(6)
    targets = {"size": x[:, :1] ** 2, "sign": (x[:, 1:2] > 0).astype("float32")}
    inputs = {"left": x[:, :3], "right": x[:, 3:]}
    return {"train": (inputs, targets, {"size": _weights(), "sign": _weights()[::-1].copy()})}


def outputs_model():
    left, right = keras.Input((3,), name="left"), keras.Input((3,), name="right")
    x = layers.Dense(16, activation="tanh")(layers.Concatenate()([left, right]))
    heads = {
        "size": layers.Dense(1, name="size")(x),
        "sign": layers.Dense(1, activation="sigmoid", name="sign")(x),
    }
    return _compiled(
        keras.Model({"left": left, "right": right}, heads),
        {"size": "mean_squared_error", "sign": "binary_crossentropy"},
        loss_weights={"size": 0.5, "sign": 2.0},
        weighted_metrics={"sign": ["accuracy"]},
    )


def tuple_data():
    """Two inputs and two outputs without names."""
    x = _x(6)
    return {"train": ((x[:, :3], x[:, 3:]), (x[:, :1], x[:, 1:3]))}


def tuple_model():
    left, right = keras.Input((3,)), keras.Input((3,))
    x = layers.Dense(16, activation="tanh")(layers.Concatenate()([left, right]))
    heads = [layers.Dense(1, name="one")(x), layers.Dense(2, name="two")(x)]
    return _compiled(keras.Model([left, right], heads), ["mean_squared_error", "mean_absolute_error"])


class Triplet(keras.Model):
    def __init__(self):
        super().__init__()
        self.embed = layers.Dense(4, activation="tanh")

    def call(self, triplet):
        anchor, near, far = (self.embed(each) for each in triplet)
        return ops.sum(ops.square(anchor - near) - ops.square(anchor - far), axis=-1)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        # As in fit: gradients of replicas are added, so a loss of one's own is divided by their number.
        return ops.mean(ops.softplus(y_pred)) / tf.distribute.get_strategy().num_replicas_in_sync


def triplets_data():
    """Three inputs and no targets."""
    x = _x(6)
    return {"train": ((x, x[::-1].copy(), -x),)}


def triplets_model():
    return _compiled(Triplet(), None)


class AddActivity(layers.Layer):
    def call(self, x):
        self.add_loss(0.1 * ops.mean(ops.square(x)))
        return x


def added_loss_data():
    return {"train": (_x(6),)}


def added_loss_model():
    """Its only loss is one that a layer adds."""
    model = keras.Sequential([keras.Input((6,)), layers.Dense(4), AddActivity()])
    return _compiled(model, None)


class OwnStep(keras.Model):
    """The loss is ``compile``'s, halved; it is returned as it is for each batch."""

    def train_step(self, data):
        x, y = data[:2]
        with tf.GradientTape() as tape:
            loss = 0.5 * self.compute_loss(x=x, y=y, y_pred=self(x, training=True))
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        # compute_loss is divided by the number of replicas, and what is returned is the mean over them.
        return {"loss": loss * tf.distribute.get_strategy().num_replicas_in_sync}


def own_step_data():
    x = _x(6)
    return {"train": (x, x[:, :1] ** 2)}


def own_step_model():
    inputs = keras.Input((6,))
    outputs = layers.Dense(1)(layers.Dense(16, activation="tanh")(inputs))
    return _compiled(OwnStep(inputs, outputs), "mean_squared_error")


TASKS = (
    "classification",
    "one_hot",
    "weighted",
    "binary",
    "multi_label",
    "regression",
    "column",
    "text",
    "circle",
    "counts",
    "one_value",
    "several_values",
    "summed",
    "sequence",
    "token_weights",
    "masked",
    "segmentation",
    "reconstruction",
    "image",
    "outputs",
    "tuple",
    "triplets",
    "added_loss",
    "own_step",
)
"""The names before ``_data`` and ``_model``."""


def as_tf_data(batch_size):
    return {"train": tf.data.Dataset.from_tensor_slices(regression_data()["train"]).batch(batch_size)}


def as_unbatched_tf_data():
    return {"train": tf.data.Dataset.from_tensor_slices(regression_data()["train"])}


def _batch(index, batch_size):
    return tuple(array[index * batch_size : (index + 1) * batch_size] for array in regression_data()["train"])


class Batches(keras.utils.PyDataset):
    def __init__(self, batch_size):
        super().__init__()
        self.batch_size = batch_size

    def __len__(self):
        return -(-EXAMPLES // self.batch_size)

    def __getitem__(self, index):
        return _batch(index, self.batch_size)


def as_py_dataset(batch_size):
    return {"train": Batches(batch_size)}


def as_generator(batch_size):
    def batches():
        for index in range(-(-EXAMPLES // batch_size)):
            yield _batch(index, batch_size)

    return {"train": batches}


SOURCES = ("as_tf_data", "as_unbatched_tf_data", "as_py_dataset", "as_generator")
"""Functions that give the examples of ``regression`` in other forms."""
