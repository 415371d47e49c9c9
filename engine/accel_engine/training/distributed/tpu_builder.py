"""Connects to a TPU and creates its ``TPUStrategy``."""

from functools import cache

import tensorflow as tf

from accel_engine.errors import AccelError
from accel_engine.models.user_code import one_line
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.strategies.tpu_endpoint import LOCAL, TpuEndpoint
from accel_engine.training.distributed.tpu_errors import explain

TPU_CONNECT_TIMEOUT_SECONDS = 120.0
"""Time limit of connecting; even a slice of many hosts takes only a fraction of it."""


def connect(endpoint: TpuEndpoint) -> tuple[str, ...]:
    """Connect to a TPU and initialize it, before any other use of TensorFlow.

    Returns:
        The names of its cores, ``TPU:0``, ``TPU:1``, ..., over all of its hosts.

    Raises:
        AccelError: The connection failed; the message contains the likely cause.
    """
    if problem := endpoint.connection_problem():
        raise AccelError(explain(endpoint, problem))
    tf.config.set_visible_devices([], "GPU")
    try:
        resolver = _resolver(endpoint.target)
        if not endpoint.local:
            tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (tf.errors.OpError, ImportError, OSError, RuntimeError, ValueError) as error:
        raise AccelError(explain(endpoint, one_line(str(error)))) from error
    cores = tf.config.list_logical_devices("TPU")
    if not cores:
        raise AccelError(explain(endpoint, "it has no cores"))
    return tuple(f"TPU:{index}" for index in range(len(cores)))


def tpu(devices: tuple[str, ...], resolved: ResolvedPlan) -> tf.distribute.Strategy:
    """``TPUStrategy``: a replica on every core of the connected TPU."""
    del devices
    return tf.distribute.TPUStrategy(_resolver(resolved.tpu.target if resolved.tpu else LOCAL))


@cache
def _resolver(target: str) -> tf.distribute.cluster_resolver.ClusterResolver:
    return tf.distribute.cluster_resolver.TPUClusterResolver(tpu=target)
