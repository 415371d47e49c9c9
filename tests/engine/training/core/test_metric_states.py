"""Losses and metrics from states that are summed, compared with ``evaluate`` and ``test_on_batch``."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers, metrics, ops, regularizers

from accel_engine.data.structure import Batch, map_structure
from accel_engine.models.model_call import call_model
from accel_engine.private_names import keras_names
from accel_engine.run.store.series_names import SeriesNames
from accel_engine.training.core import metric_states
from accel_engine.training.core.metric_states import (
    MAX_STATE,
    EpochStates,
    MetricStates,
    compute_loss,
    mean_loss,
    not_additive,
    pack_states,
    update_metrics,
)

EXAMPLES = 24
RNG = np.random.default_rng(5)
X = RNG.normal(size=(EXAMPLES, 6)).astype(np.float32)
LABELS = X[:, :3].argmax(-1)
ONE_HOT = np.eye(3, dtype=np.float32)[LABELS]
WEIGHTS = RNG.uniform(0.2, 2.0, EXAMPLES).astype(np.float32)
TOKENS = np.where(np.arange(7) < RNG.integers(2, 8, (EXAMPLES, 1)), RNG.integers(1, 9, (EXAMPLES, 7)), 0)


def dense(units: int, activation: str | None = None, **options: Any) -> keras.Model:
    return keras.Sequential([keras.Input((6,)), layers.Dense(units, activation=activation, **options)])


def compiled(model: keras.Model, loss: Any, *measured: Any, **options: Any) -> keras.Model:
    model.compile("sgd", loss, metrics=list(measured), **options)
    return model


class AddLoss(layers.Layer):
    def call(self, x: Any) -> Any:
        self.add_loss(0.1 * ops.mean(ops.square(x)))
        return x


class OwnLoss(keras.Model):
    """A ``compute_loss`` with its own metric and counter."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = layers.Dense(2)
        self.size = metrics.Mean("size")
        self.calls = self.add_weight(shape=(), initializer="zeros", trainable=False, name="calls")

    def call(self, x: Any) -> Any:
        return self.dense(x)

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        self.size.update_state(ops.abs(y_pred), sample_weight)
        self.calls.assign_add(1.0)
        return ops.mean(ops.square(y_pred - y))


class OwnMetrics(keras.Model):
    """A ``compute_metrics`` that adds a value."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = layers.Dense(1)
        self.twice = metrics.Mean("twice")

    def call(self, x: Any) -> Any:
        return self.dense(x)

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        self.twice.update_state(2.0 * y_pred)
        return super().compute_metrics(x, y, y_pred, sample_weight)


def outputs_model() -> keras.Model:
    inputs = keras.Input((6,))
    heads = {
        "size": layers.Dense(1, name="size")(inputs),
        "sign": layers.Dense(1, activation="sigmoid", name="sign")(inputs),
    }
    return compiled_outputs(keras.Model(inputs, heads))


def compiled_outputs(model: keras.Model) -> keras.Model:
    model.compile(
        "sgd",
        {"size": "mse", "sign": "binary_crossentropy"},
        loss_weights={"size": 0.5, "sign": 2.0},
        metrics={"size": ["mae"], "sign": [metrics.AUC(name="area")]},
        weighted_metrics={"sign": ["accuracy"]},
    )
    return model


def tagger() -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((7,), dtype="int32"),
            layers.Embedding(9, 4, mask_zero=True),
            layers.Dense(3, activation="softmax"),
        ]
    )


SPARSE = "sparse_categorical_crossentropy"

CASES: dict[str, tuple[Any, Batch]] = {
    "means": (
        lambda: compiled(
            dense(3, "softmax"), SPARSE, "accuracy", metrics.SparseTopKCategoricalAccuracy(2, name="top_2")
        ),
        Batch(X, LABELS),
    ),
    "weights": (
        lambda: compiled(dense(3, "softmax"), SPARSE, "accuracy", weighted_metrics=["accuracy", SPARSE]),
        Batch(X, LABELS, WEIGHTS),
    ),
    "F1 and IoU": (
        lambda: compiled(
            dense(3, "softmax"),
            "categorical_crossentropy",
            metrics.F1Score(name="f1"),
            metrics.F1Score(average="macro", name="macro"),
            metrics.OneHotMeanIoU(3, name="iou"),
        ),
        Batch(X, ONE_HOT),
    ),
    "IoU of labels": (
        lambda: compiled(dense(3, "softmax"), SPARSE, metrics.MeanIoU(3, sparse_y_pred=False, name="iou")),
        Batch(X, LABELS),
    ),
    "thresholds": (
        lambda: compiled(
            dense(1, "sigmoid"),
            "binary_crossentropy",
            metrics.AUC(name="auc"),
            metrics.Precision(name="precision"),
            metrics.Recall(name="recall"),
            metrics.PrecisionAtRecall(0.5, name="at_recall"),
            weighted_metrics=[metrics.AUC(curve="PR", name="weighted")],
        ),
        Batch(X, (LABELS == 0)[:, np.newaxis], WEIGHTS),
    ),
    "R2": (
        lambda: compiled(dense(2), "mse", metrics.R2Score(name="r2"), "mae", metrics.RootMeanSquaredError(name="rmse")),
        Batch(X, X[:, :2] ** 2),
    ),
    "a column": (lambda: compiled(dense(1), "huber", "mae"), Batch(X, X[:, 0] ** 2)),
    "several outputs": (
        outputs_model,
        Batch(X, {"size": X[:, :1], "sign": (X[:, 1:2] > 0).astype(np.float32)}, {"size": WEIGHTS, "sign": WEIGHTS}),
    ),
    "masks": (
        lambda: compiled(tagger(), SPARSE, weighted_metrics=["accuracy"]),
        Batch(TOKENS.astype(np.int32), TOKENS % 3),
    ),
    "regularizers": (
        lambda: compiled(dense(2, kernel_regularizer=regularizers.L2(0.1), activity_regularizer="l1"), "mse", "mae"),
        Batch(X, X[:, :2]),
    ),
    "added losses": (
        lambda: compiled(keras.Sequential([keras.Input((6,)), AddLoss(), layers.Dense(2)]), "mse"),
        Batch(X, X[:, :2]),
    ),
    "own compute_metrics": (lambda: compiled(OwnMetrics(), "mse", "mae"), Batch(X, X[:, :1])),
}


def part(batch: Batch, first: int, last: int) -> Batch:
    found: Batch = map_structure(lambda array: array[first:last], batch)
    return found


def of_keras(model: keras.Model, batch: Batch) -> dict[str, float]:
    """What ``test_on_batch`` says, by series name."""
    said = model.test_on_batch(*batch, return_dict=True)
    return {name: float(value) for name, value in SeriesNames("loss").scalars(said).items()}


def states_of(model: keras.Model, limit: int | None = None) -> MetricStates:
    return MetricStates(model, (), SeriesNames("loss"), limit)


def measured(states: MetricStates, model: keras.Model, batch: Batch) -> tuple[float, np.ndarray]:
    """The loss and the states of a batch, from a graph."""

    def measure(batch: Batch) -> tuple[tf.Tensor, tf.Tensor]:
        loss, found = states.measure(batch, call_model(model, batch.inputs, training=False), training=False)
        return mean_loss(loss), pack_states(found)

    loss, vector = tf.function(measure, autograph=False)(map_structure(tf.constant, batch))
    return float(loss), vector.numpy()


def results(states: MetricStates, vector: np.ndarray) -> dict[str, float]:
    return {name: float(value) for name, value in states.results(states.unpack(tf.constant(vector))).items()}


@pytest.mark.share(3)
@pytest.mark.parametrize("name", CASES)
def test_batches_and_their_sums_have_the_metrics_of_keras(name: str) -> None:
    keras.utils.set_random_seed(3)
    model, batch = CASES[name][0](), CASES[name][1]
    expected = of_keras(model, batch)
    states = states_of(model)
    before = [variable.numpy().copy() for variable in model.metrics_variables]

    loss, vector = measured(states, model, batch)

    assert loss == pytest.approx(expected.pop("loss"), rel=1e-5)
    assert results(states, vector) == pytest.approx(expected, abs=1e-5)
    assert set(states.series) == set(expected)
    assert vector.shape == (states.width,)
    for variable, value in zip(model.metrics_variables, before, strict=True):
        np.testing.assert_array_equal(variable, value)

    vectors = [measured(states, model, part(batch, first, last))[1] for first, last in ((0, 9), (9, 17), (17, 24))]
    summed = results(states, sum(vectors[1:], vectors[0]))
    for each, value in expected.items():
        if not each.endswith("_loss"):  # whose means over batches Keras does not weight by the examples' weights
            assert summed[each] == pytest.approx(value, abs=1e-5), each


def over_two_replicas(strategy: tf.distribute.Strategy, model: keras.Model, batch: Batch) -> np.ndarray:
    """The sum over two replicas, which share a batch, of their losses and states."""
    states, half = states_of(model), len(batch.inputs) // 2

    def replica(batch: Batch) -> tf.Tensor:
        index = tf.distribute.get_replica_context().replica_id_in_sync_group
        own = map_structure(lambda array: array[half * index : half * index + half], batch)
        loss, found = states.measure(own, call_model(model, own.inputs, training=False), training=False)
        return tf.concat([[mean_loss(loss)], pack_states(found)], axis=0)

    @tf.function(autograph=False)
    def both(batch: Batch) -> tf.Tensor:
        return strategy.reduce("SUM", strategy.run(replica, args=(batch,)), axis=None)

    summed: np.ndarray = both(map_structure(tf.constant, batch)).numpy()
    return summed


@pytest.mark.parametrize(
    "name",
    [
        *("means", "R2", "several outputs", "regularizers"),
        *(pytest.param(name, marks=pytest.mark.campaign) for name in ("F1 and IoU", "thresholds")),
    ],
)
def test_replicas_give_the_loss_and_the_metrics_of_all_their_examples(name: str) -> None:
    build, batch = CASES[name]
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], tf.distribute.ReductionToOneDevice())
    with strategy.scope():
        model = build()
        model.test_on_batch(*batch)  # creates the variables of the metrics
    alone = build()
    alone.test_on_batch(*batch)
    alone.set_weights(model.get_weights())
    if batch.weights is not None:
        batch = batch._replace(weights=map_structure(np.ones_like, batch.weights))
    expected = of_keras(alone, batch)

    vector = over_two_replicas(strategy, model, batch)

    found = results(states_of(model), vector[1:])
    assert vector[0] == pytest.approx(expected["loss"], rel=1e-5)
    for each, value in expected.items():
        if not each.endswith("loss"):
            assert found[each] == pytest.approx(value, abs=1e-5), each


@pytest.mark.parametrize("lengths", [(6, 2), (1, 0), (0, 0)])
def test_a_masked_loss_is_the_mean_over_the_tokens_of_all_replicas(lengths: tuple[int, int]) -> None:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], tf.distribute.ReductionToOneDevice())
    mask = np.arange(7) < np.array(lengths)[:, np.newaxis]
    batch = Batch(np.where(mask, 1 + TOKENS[:2] % 8, 0), np.arange(14).reshape(2, 7) % 3)
    with strategy.scope():
        model = compiled(tagger(), SPARSE)
    surprise = -np.log(np.take_along_axis(model(batch.inputs).numpy(), batch.targets[..., np.newaxis], 2)[..., 0])

    loss, *_ = over_two_replicas(strategy, model, batch)

    assert loss == pytest.approx(surprise[mask].sum() / max(mask.sum(), 1), rel=1e-5)


@pytest.mark.parametrize(
    ("name", "left_out", "recorded"),
    [
        ("thresholds", {"auc", "weighted", "at_recall"}, {"precision", "recall"}),
        ("several outputs", {"area"}, {"size_mae", "sign_accuracy", "size_loss", "sign_loss"}),
        ("R2", set(), {"r2", "mae", "rmse"}),
    ],
)
def test_metrics_with_large_states_are_left_out(name: str, left_out: set[str], recorded: set[str]) -> None:
    model, batch = CASES[name][0](), CASES[name][1]
    expected = of_keras(model, batch)
    states = states_of(model, MAX_STATE)

    loss, vector = measured(states, model, batch)

    found = results(states, vector)
    assert set(states.left_out) == left_out
    assert found.keys() == recorded
    assert loss == pytest.approx(expected["loss"], rel=1e-5)
    assert found == pytest.approx({each: expected[each] for each in found}, abs=1e-5)


def test_further_metrics_are_measured_beside_those_of_the_model() -> None:
    model = compiled(dense(3, "softmax"), SPARSE)
    model.test_on_batch(X, LABELS)
    extra = metrics.SparseCategoricalAccuracy("accuracy")
    extra.update_state(LABELS, model(X))
    expected = float(extra.result())
    extra.reset_state()
    states = MetricStates(model, (extra,), SeriesNames("loss", "accuracy"))

    _, vector = measured(states, model, Batch(X, LABELS))

    assert results(states, vector) == {"accuracy": pytest.approx(expected)}
    assert not any(np.any(variable) for variable in extra.variables)


@pytest.mark.parametrize(
    "metric",
    [metrics.BinaryAccuracy, metrics.MeanAbsoluteError, metrics.RootMeanSquaredError, metrics.CosineSimilarity],
)
def test_further_metrics_take_targets_without_the_axis_of_a_single_unit(metric: type[keras.metrics.Metric]) -> None:
    targets, outputs = LABELS > 0, dense(1)(X)
    measured, expected = metric(), metric()

    update_metrics([measured], tf.constant(targets, tf.float32), outputs)
    expected.update_state(targets[:, np.newaxis], outputs)

    assert float(measured.result()) == pytest.approx(float(expected.result()), rel=1e-6)


def test_a_models_compute_loss_may_change_its_own_variables() -> None:
    model = compiled(OwnLoss(), None)
    batch = Batch(X, X[:, :2], WEIGHTS)
    model(X)
    calls = float(model.calls)
    states = states_of(model)

    loss, vector = measured(states, model, batch)

    outputs = model(X).numpy()
    assert loss == pytest.approx(np.mean((outputs - X[:, :2]) ** 2), rel=1e-5)
    size = np.average(np.abs(outputs).mean(1), weights=WEIGHTS)
    assert results(states, vector) == {"size": pytest.approx(size, rel=1e-5)}
    assert float(model.calls) == calls + 1


@pytest.mark.parametrize("hidden", [False, True], ids=["kept", "private name missing"])
@pytest.mark.parametrize("name", ["regularizers", "added losses"])
def test_losses_of_layers_count_and_have_gradients(monkeypatch: pytest.MonkeyPatch, name: str, *, hidden: bool) -> None:
    keras.utils.set_random_seed(3)
    model, batch = CASES[name][0](), CASES[name][1]
    expected = of_keras(model, batch)
    assert keras_names.keeps_losses(model)  # else Keras has another private name: steps would take longer
    if hidden:
        monkeypatch.setattr(metric_states, "keeps_losses", lambda _: False)
        monkeypatch.setattr(metric_states, "kept_losses", lambda *_: nullcontext())
    states = states_of(model)

    def gradients(batch: Batch) -> tuple[tf.Tensor, Any, tf.Tensor]:
        with tf.GradientTape() as tape:
            loss, found = states.measure(batch, call_model(model, batch.inputs, training=True), training=True)
        return loss, tape.gradient(loss, model.trainable_variables), pack_states(found)

    loss, found, vector = tf.function(gradients, autograph=False)(map_structure(tf.constant, batch))

    with tf.GradientTape() as tape:
        whole = model.compute_loss(batch.inputs, batch.targets, model(batch.inputs, training=True))
    assert float(loss) == pytest.approx(expected["loss"], rel=1e-5)
    assert float(whole) == pytest.approx(expected.pop("loss"), rel=1e-5)
    for ours, theirs in zip(found, tape.gradient(whole, model.trainable_variables), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    assert results(states, vector.numpy()) == pytest.approx(expected, abs=1e-5)


def test_a_loss_without_a_reduction_is_a_vector_to_differentiate() -> None:
    model = compiled(dense(2), keras.losses.MeanSquaredError(reduction=None))
    batch = Batch(X, X[:, :2])
    model.test_on_batch(*batch)

    loss, _ = states_of(model).measure(batch, model(X), training=True)

    assert loss.shape == (EXAMPLES,)
    assert float(mean_loss(loss)) == pytest.approx(of_keras(model, batch)["loss"], rel=1e-5)


def test_a_model_is_called_with_training_only_where_it_takes_it() -> None:
    class Plain(keras.Model):
        def call(self, x: Any) -> Any:
            return x

    class Modes(keras.Model):
        def call(self, x: Any, training: bool = False) -> Any:
            return x + 1.0 if training else x

    assert float(call_model(Plain(), tf.constant([1.0]), training=True)[0]) == 1.0
    assert [float(call_model(Modes(), tf.constant([1.0]), training=each)[0]) for each in (True, False)] == [2.0, 1.0]


def test_a_loss_knows_of_training_only_where_it_takes_it() -> None:
    class Plain(keras.Model):
        def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None) -> Any:
            return 1.0

    class Modes(keras.Model):
        def compute_loss(self, *, training: bool = True, **_: Any) -> Any:
            return 3.0 if training else 2.0

    batch = Batch(X, LABELS)

    assert compute_loss(Plain(), batch, X, training=False) == 1.0
    assert [compute_loss(Modes(), batch, X, training=each) for each in (True, False)] == [3.0, 2.0]


class Largest(metrics.Metric):
    def __init__(self, start: float = 0.0, *, first: float | None = None, adds: bool = False) -> None:
        super().__init__(name="largest")
        self.start, self.adds = start, adds
        initializer = keras.initializers.Constant(start if first is None else first)
        self.value = self.add_weight(shape=(), initializer=initializer)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        del y_true, sample_weight
        seen = ops.max(y_pred)
        self.value.assign(self.value + seen if self.adds else ops.maximum(self.value, seen))

    def reset_state(self) -> None:
        self.value.assign(self.start)

    def result(self) -> Any:
        return self.value


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (metrics.AUC, []),
        (lambda: Largest(adds=True), []),
        (Largest, ["largest"]),
        (lambda: Largest(1.0, adds=True), ["largest"]),
    ],
)
def test_a_metric_that_is_no_sum_is_found(metric: Callable[[], keras.Metric], expected: list[str]) -> None:
    model = compiled(dense(1), "binary_crossentropy", "mae", metric())
    outputs = model(X)
    targets = (LABELS[:, np.newaxis] > 0).astype(np.float32)
    with keras.StatelessScope():
        model.compute_metrics(X, targets, outputs)
    before = [np.array(variable) for variable in model.variables]
    assert not_additive(model, Batch(X, targets), ops.sigmoid(outputs)) == expected
    for variable, value in zip(model.variables, before, strict=True):
        np.testing.assert_array_equal(variable, value)


def test_a_metric_is_tried_from_where_it_is_reset_to() -> None:
    model = compiled(dense(1), "mse", Largest(1.0, first=0.0, adds=True))
    batch = Batch(X, X[:, :1])
    with keras.StatelessScope():
        model.compute_metrics(*batch[:2], model(X))

    assert not_additive(model, batch, model(X)) == ["largest"]


def test_the_loss_of_an_output_is_the_mean_over_examples_of_batches_of_any_size() -> None:
    inputs = keras.Input((6,))
    heads = {name: layers.Dense(1, name=name)(inputs) for name in ("low", "high")}
    model = compiled(keras.Model(inputs, heads), dict.fromkeys(heads, "mean_squared_error"))
    targets = {"low": X[:, :1], "high": 9 * X[:, 1:2]}
    outputs = model(X)
    compute_loss(model, Batch(X, targets), outputs, training=False)  # which builds the metrics
    states = MetricStates(model, (), SeriesNames("loss"))

    @tf.function(reduce_retracing=True, input_signature=[tf.TensorSpec([None], tf.int32)])
    def measure(rows: tf.Tensor) -> list[tf.Tensor]:
        batch = map_structure(lambda array: tf.gather(array, rows), Batch(X, targets))
        some = {name: tf.gather(each, rows) for name, each in outputs.items()}
        return states.measure(batch, some, training=False)[1]

    parts = [measure(tf.range(*ends)) for ends in ((0, 10), (10, 20), (20, EXAMPLES))]
    found = states.results([tf.add_n(each) for each in zip(*parts, strict=True)])
    for name, each in outputs.items():
        assert float(found[f"{name}_loss"]) == pytest.approx(np.mean((each - targets[name]) ** 2), rel=1e-5)


def test_states_of_other_metrics_in_a_checkpoint_are_left() -> None:
    states = EpochStates()
    states.restore([3.0, 10.0])  # one value, which would be added to each of two
    states.add(np.array([1.0, 2.0]), 2)
    states.add(np.array([1.0, 2.0]), 1)

    assert states.steps == 3
    assert states.sums.tolist() == [2.0, 4.0]
