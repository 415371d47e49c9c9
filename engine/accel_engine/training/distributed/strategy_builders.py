"""Creates the ``tf.distribute`` strategies of the catalogue.

Each builder takes TensorFlow's names of the logical devices, such as ``("GPU:0",)``, and the resolved plan.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.private_names.tensorflow_names import allow_steps_outside_workers

_REDUCTIONS = {
    "nccl": tf.distribute.NcclAllReduce,
    "hierarchical-copy": tf.distribute.HierarchicalCopyAllReduce,
    "one-device": tf.distribute.ReductionToOneDevice,
}


def default(devices: tuple[str, ...], resolved: ResolvedPlan) -> tf.distribute.Strategy:
    """TensorFlow's default strategy on the CPU; on others ``OneDeviceStrategy``, which prefetches to the device."""
    if devices[0] == "CPU:0":
        return tf.distribute.get_strategy()
    return one_device(devices, resolved)


def one_device(devices: tuple[str, ...], resolved: ResolvedPlan) -> tf.distribute.Strategy:
    """``OneDeviceStrategy``: all variables and computation on one device."""
    del resolved
    return tf.distribute.OneDeviceStrategy(f"/{devices[0]}")


def mirrored(devices: tuple[str, ...], resolved: ResolvedPlan) -> tf.distribute.Strategy:
    """``MirroredStrategy``; by default gradients are summed with NCCL on GPUs and on one device for CPUs."""
    reduction = resolved.plan.reduction
    if reduction == "auto":
        reduction = "nccl" if devices[0].startswith("GPU") else "one-device"
    return tf.distribute.MirroredStrategy([f"/{name}" for name in devices], _REDUCTIONS[reduction]())


def central_storage(devices: tuple[str, ...], resolved: ResolvedPlan) -> tf.distribute.Strategy:
    """``CentralStorageStrategy``: weights on the host, a replica of the computation on every device."""
    del resolved
    return CentralStorageStrategy([f"/{name}" for name in devices], "/CPU:0")


class CentralStorageStrategy(tf.distribute.experimental.CentralStorageStrategy):  # type: ignore[misc]
    """TensorFlow's strategy, extended to layers that update variables in a step: batch normalization, dropout.

    Keras creates such variables without an aggregation, which this strategy rejects, unlike others.
    """

    @contextmanager
    def scope(self) -> Iterator[tf.distribute.Strategy]:
        """Create variables that aggregate updates: floats by their mean, integers by the first replica's."""
        with super().scope(), tf.variable_creator_scope(_aggregated):
            yield self


def _aggregated(create: Callable[..., tf.Variable], **settings: Any) -> tf.Variable:
    if settings.get("aggregation") in (None, tf.VariableAggregation.NONE):
        mean = tf.as_dtype(settings["dtype"]).is_floating
        settings["aggregation"] = tf.VariableAggregation.MEAN if mean else tf.VariableAggregation.ONLY_FIRST_REPLICA
    return create(**settings)


def multi_worker(devices: tuple[str, ...], resolved: ResolvedPlan) -> tf.distribute.Strategy:
    """``MultiWorkerMirroredStrategy``: a replica on every device of every worker of ``TF_CONFIG``.

    Blocks until all workers have connected.
    """
    reduction = reduction_over_workers(devices, resolved)
    implementation = tf.distribute.experimental.CommunicationImplementation[reduction.upper()]
    options = tf.distribute.experimental.CommunicationOptions(implementation=implementation)
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)


def parameter_server(devices: tuple[str, ...], resolved: ResolvedPlan) -> tf.distribute.Strategy:
    """``ParameterServerStrategy``: weights on the parameter servers of ``TF_CONFIG``, with this process as the chief.

    Blocks until all servers have connected.
    """
    del devices, resolved
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver(rpc_layer="grpc")
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    allow_steps_outside_workers(strategy)
    return strategy


def reduction_over_workers(devices: tuple[str, ...], resolved: ResolvedPlan) -> str:
    """How workers sum gradients: ``nccl`` or ``ring``."""
    if resolved.plan.reduction == "auto":
        return "nccl" if devices[0].startswith("GPU") else "ring"
    return resolved.plan.reduction
