"""Measures whether replicas of ``MirroredStrategy`` could share the optimizer's update and its state (ZeRO 1).

    python benchmarks/sharded_updates.py [--widths 512 1024] [--steps 5] [--rounds 7]

Two replicas on logical CPUs sum their gradients. Then either each updates all of its weights with Adam, as
``MirroredStrategy`` does it, or each updates every second one, whose state only it has, and sends it to the other. Both
use TensorFlow's kernel for Adam. Both ways take turns; the medians of their times are printed, and the ratio.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import tensorflow as tf

REPLICAS = 2


def make_step(strategy: tf.distribute.Strategy, width: int, *, sharded: bool) -> tuple[Callable[[], Any], Any]:
    """A function that takes a step, and the weights of the first replica."""
    keras.utils.set_random_seed(0)
    with strategy.scope():
        hidden = [keras.layers.Dense(width, "relu") for _ in range(6)]
        model = keras.Sequential([keras.Input((width,)), *hidden])
    weights = [strategy.experimental_local_results(each.value) for each in model.trainable_variables]
    owners = [[number % REPLICAS] if sharded else range(REPLICAS) for number in range(len(weights))]
    slots = {}
    for number, copies in enumerate(weights):
        for replica in owners[number]:
            with tf.device(copies[replica].device):
                slots[number, replica] = [tf.Variable(tf.zeros_like(copies[replica])) for _ in range(2)]
    examples = tf.random.stateless_normal([16, width], (1, 2))

    def gradients() -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(examples) - 1.0))
        found = tape.gradient(loss, [each.value for each in model.trainable_variables])
        return list(tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, found))

    def step() -> None:
        found = [strategy.experimental_local_results(each) for each in strategy.run(gradients)]
        for number, copies in enumerate(weights):
            for replica in owners[number]:
                first, second = slots[number, replica]
                with tf.device(copies[replica].device):
                    tf.raw_ops.ResourceApplyAdam(
                        var=copies[replica].handle, m=first.handle, v=second.handle, beta1_power=0.9,
                        beta2_power=0.999, lr=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-7, grad=found[number][replica],
                    )  # fmt: skip
            for replica in set(range(REPLICAS)).difference(owners[number]):
                with tf.device(copies[replica].device):
                    copies[replica].assign(copies[owners[number][0]].read_value())

    return tf.function(step), [copies[0] for copies in weights]


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--widths", type=int, nargs="+", default=[512, 1024])
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * REPLICAS)
    strategy = tf.distribute.MirroredStrategy(
        [f"/CPU:{number}" for number in range(REPLICAS)], tf.distribute.ReductionToOneDevice()
    )
    print(
        "| Weights | Each updates all, ms | Each updates half, ms | Rate | Largest difference |\n|---|---|---|---|---|"
    )
    for width in arguments.widths:
        ways = [make_step(strategy, width, sharded=sharded) for sharded in (False, True)]
        seconds: list[list[float]] = [[], []]
        for number in range(arguments.rounds + 1):  # the first one compiles
            for (step, _), own in zip(ways, seconds, strict=True):
                begin = time.perf_counter()
                for _ in range(arguments.steps):
                    step()
                own += [(time.perf_counter() - begin) / arguments.steps] if number else []
        usual, shared = map(statistics.median, seconds)
        off = max(float(tf.reduce_max(tf.abs(a - b))) for a, b in zip(ways[0][1], ways[1][1], strict=True))
        count = sum(int(tf.size(each)) for each in ways[0][1])
        row = f"{count:,} | {1000 * usual:.1f} | {1000 * shared:.1f} | {usual / shared:.2f} | {off:.1e}"
        print(f"| {row} |", flush=True)


if __name__ == "__main__":
    main()
