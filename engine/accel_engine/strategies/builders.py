"""The ``tf.distribute`` form of every strategy in the catalogue.

Each builder takes TensorFlow's names of the logical devices to train on, such as ``("GPU:0",)``, and the plan.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from accel_engine.plan import Plan

_REDUCTIONS = {
    "nccl": tf.distribute.NcclAllReduce,
    "hierarchical-copy": tf.distribute.HierarchicalCopyAllReduce,
    "one-device": tf.distribute.ReductionToOneDevice,
}


def default(devices: tuple[str, ...], plan: Plan) -> tf.distribute.Strategy:
    """TensorFlow's default strategy on the CPU; it would have an accelerator wait for each streamed batch."""
    if devices[0] == "CPU:0":
        return tf.distribute.get_strategy()
    return one_device(devices, plan)


def one_device(devices: tuple[str, ...], plan: Plan) -> tf.distribute.Strategy:
    """All variables and all computation on one device."""
    del plan
    return tf.distribute.OneDeviceStrategy(f"/{devices[0]}")


def mirrored(devices: tuple[str, ...], plan: Plan) -> tf.distribute.Strategy:
    """A copy of the model on every device; by default NCCL sums gradients on GPUs, plain copies on CPUs."""
    reduction = plan.reduction
    if reduction == "auto":
        reduction = "nccl" if devices[0].startswith("GPU") else "one-device"
    return tf.distribute.MirroredStrategy([f"/{name}" for name in devices], _REDUCTIONS[reduction]())


def central_storage(devices: tuple[str, ...], plan: Plan) -> tf.distribute.Strategy:
    """The weights on the host, a replica of the computation on every device."""
    del plan
    return CentralStorageStrategy([f"/{name}" for name in devices], "/CPU:0")


class CentralStorageStrategy(tf.distribute.experimental.CentralStorageStrategy):  # type: ignore[misc]
    """TensorFlow's, for models whose layers write variables in a step too: batch normalization, dropout.

    Keras leaves open how what replicas write becomes one value, which this strategy, unlike others, does not take.
    """

    @contextmanager
    def scope(self) -> Iterator[tf.distribute.Strategy]:
        """Make variables that take the mean of what replicas write; whole numbers, of the first."""
        with super().scope(), tf.variable_creator_scope(_aggregated):
            yield self


def _aggregated(create: Callable[..., tf.Variable], **settings: Any) -> tf.Variable:
    if settings.get("aggregation") in (None, tf.VariableAggregation.NONE):
        mean = tf.as_dtype(settings["dtype"]).is_floating
        settings["aggregation"] = tf.VariableAggregation.MEAN if mean else tf.VariableAggregation.ONLY_FIRST_REPLICA
    return create(**settings)


def multi_worker(devices: tuple[str, ...], plan: Plan) -> tf.distribute.Strategy:
    """A copy of the model on every device of every worker of ``TF_CONFIG``.

    Blocks until all workers are there, for ever.
    """
    reduction = reduction_over_workers(devices, plan)
    implementation = tf.distribute.experimental.CommunicationImplementation[reduction.upper()]
    options = tf.distribute.experimental.CommunicationOptions(implementation=implementation)
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)


def parameter_server(devices: tuple[str, ...], plan: Plan) -> tf.distribute.Strategy:
    """The weights on the parameter servers of ``TF_CONFIG``, whose chief this process is.

    Blocks until all servers are there.
    """
    del devices, plan
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver(rpc_layer="grpc")
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    # Else it warns whenever this process traces or validates by itself.
    strategy.extended._allow_run_without_coordinator = True  # noqa: SLF001 (there is no public endpoint)
    return strategy


def reduction_over_workers(devices: tuple[str, ...], plan: Plan) -> str:
    """How workers sum gradients: ``nccl`` or ``ring``."""
    if plan.reduction == "auto":
        return "nccl" if devices[0].startswith("GPU") else "ring"
    return plan.reduction
