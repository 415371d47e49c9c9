import time

import tensorflow as tf

from accel_engine.training.core.input_wait import InputWait


def test_a_graph_measures_how_long_it_waits_for_its_batches() -> None:
    def read() -> tf.Tensor:
        return tf.ensure_shape(tf.numpy_function(lambda: time.sleep(0.02) or 1.0, [], tf.float64), ())

    wait = InputWait()

    @tf.function
    def steps(count: tf.Tensor) -> tf.Tensor:
        total = tf.constant(0.0, tf.float64)
        for _ in tf.range(count):
            total += wait.measure(read)
        return total

    assert float(steps(tf.constant(3))) == 3.0
    assert wait.take() >= 0.06
    assert wait.take() == 0.0
