"""What a step does with gradients, and with the logs of a custom ``train_step``."""

from types import SimpleNamespace
from typing import Any, cast

import keras
import pytest
import tensorflow as tf

from accel_engine.data.structure import Batch
from accel_engine.errors import ModelError
from accel_engine.run.store.series_names import SeriesNames
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.micro_batches import accumulate_gradients
from accel_engine.training.core.step import CustomStep, main_loss, mean_of_replicas


def test_a_weight_without_a_gradient_has_none_on_any_replica() -> None:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], tf.distribute.ReductionToOneDevice())

    @tf.function
    def means() -> tf.Tensor:
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        first, missing, last = mean_of_replicas([tf.cast(replica, tf.float32), None, tf.constant([2.0, 4.0])])
        assert missing is None, "zeros would move the weight by its momentum or decay"
        return tf.concat([[first], last], 0)

    for values in strategy.experimental_local_results(strategy.run(means)):
        assert values.numpy().tolist() == [0.5, 2.0, 4.0]


def test_a_weight_without_a_gradient_has_none_over_micro_batches() -> None:
    variables = [keras.Variable(1.0), keras.Variable(1.0)]

    def gradients(batch: Batch) -> tuple[list[Any], list[tf.Tensor]]:
        return [tf.reduce_sum(batch.inputs), None], [tf.reduce_sum(batch.inputs)]

    accumulate = accumulate_gradients(gradients, variables, [()], 2, parallel_iterations=1)

    (first, missing), (total,) = tf.function(accumulate)(Batch(tf.constant([1.0, 2.0, 3.0, 4.0])))

    assert (float(first), missing, float(total)) == (5.0, None, 10.0)


class Own(keras.Sequential):
    def train_step(self, data: Any) -> Any:
        return super().train_step(data)


def test_the_metrics_of_a_custom_step_are_those_of_its_batch() -> None:
    model = Own([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
    model.compile(keras.optimizers.SGD(0.0), "mse")
    strategy = SimpleNamespace(num_replicas_in_sync=2)
    step = CustomStep(
        cast(Assembly, SimpleNamespace(model=model, prepare=lambda raw: raw, names=SeriesNames(), strategy=strategy))
    )

    for error in (3.0, 1.0):
        loss, *states = step.run(Batch(tf.zeros([4, 1]), tf.fill([4, 1], error)))
        assert float(loss) == error**2
        assert [float(state) for state in states] == [4 * error**2, 4.0], "the sum and the count of the loss"
    sums = step.unpack(tf.constant([5.0, 20.0, 8.0]))  # of two replicas
    assert {name: float(value) for name, value in step.series(sums).items()} == {"loss": 2.5}


@pytest.mark.parametrize(
    ("series", "loss"),
    [
        ({"g_loss": 1.0, "loss": 2.0, "total_loss": 4.0}, 2.0),
        ({"g_loss": 1.0, "total_loss": 4.0}, 4.0),
        ({"g_loss": 1.0, "d_loss": 2.0, "e_loss": 4.0, "accuracy": 8.0}, 7.0),
    ],
)
def test_the_loss_of_a_custom_step(series: dict[str, float], loss: float) -> None:
    assert main_loss(series) == loss


def test_a_custom_step_without_a_loss_is_refused() -> None:
    with pytest.raises(ModelError, match="returns accuracy, top3 but no loss"):
        main_loss({"accuracy": 1.0, "top3": 1.0})
