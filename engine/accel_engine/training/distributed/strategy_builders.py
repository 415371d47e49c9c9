"""Creates the ``tf.distribute`` strategies of the catalogue.

Each builder takes TensorFlow's names of the logical devices, such as ``("GPU:0",)``, and the resolved plan.
"""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import tensorflow as tf

from accel_engine.devices.tpu_chips import find_chips, find_holders
from accel_engine.errors import AccelError
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.private_names.tensorflow_names import allow_steps_outside_workers
from accel_engine.strategies.tpu_endpoint import LOCAL, TpuEndpoint
from accel_engine.user_code import one_line

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


def one_device(devices: tuple[str, ...], _resolved: ResolvedPlan) -> tf.distribute.Strategy:
    """``OneDeviceStrategy``: all variables and computation on one device."""
    return tf.distribute.OneDeviceStrategy(f"/{devices[0]}")


def mirrored(devices: tuple[str, ...], resolved: ResolvedPlan) -> tf.distribute.Strategy:
    """``MirroredStrategy``; by default gradients are summed with NCCL on GPUs and on one device for CPUs."""
    reduction = resolved.plan.reduction
    if reduction == "auto":
        reduction = "nccl" if devices[0].startswith("GPU") else "one-device"
    return tf.distribute.MirroredStrategy([f"/{name}" for name in devices], _REDUCTIONS[reduction]())


def pipeline(_devices: tuple[str, ...], _resolved: ResolvedPlan) -> tf.distribute.Strategy:
    """TensorFlow's default strategy: the stages of the model name their devices themselves."""
    return tf.distribute.get_strategy()


def central_storage(devices: tuple[str, ...], _resolved: ResolvedPlan) -> tf.distribute.Strategy:
    """``CentralStorageStrategy``: weights on the host, a replica of the computation on every device."""
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


def parameter_server(_devices: tuple[str, ...], _resolved: ResolvedPlan) -> tf.distribute.Strategy:
    """``ParameterServerStrategy``: weights on the parameter servers of ``TF_CONFIG``, with this process as the chief.

    Blocks until all servers have connected.
    """
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver(rpc_layer="grpc")
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    allow_steps_outside_workers(strategy)
    return strategy


def reduction_over_workers(devices: tuple[str, ...], resolved: ResolvedPlan) -> str:
    """How workers sum gradients: ``nccl`` or ``ring``."""
    if resolved.plan.reduction == "auto":
        return "nccl" if devices[0].startswith("GPU") else "ring"
    return resolved.plan.reduction


TPU_CONNECT_TIMEOUT_SECONDS = 120.0
"""Time limit of connecting; even a slice of many hosts takes only a fraction of it."""


def connect_tpu(endpoint: TpuEndpoint) -> tuple[str, ...]:
    """Connect to a TPU and initialize it, before any other use of TensorFlow.

    Returns:
        The names of its cores, ``TPU:0``, ``TPU:1``, ..., over all of its hosts.

    Raises:
        AccelError: The connection failed; the message contains the likely cause.
    """
    if problem := endpoint.connection_problem():
        raise AccelError(explain_connection(endpoint, problem))
    tf.config.set_visible_devices([], "GPU")
    try:
        resolver = _resolver(endpoint.target)
        if not endpoint.local:
            tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (tf.errors.OpError, ImportError, OSError, RuntimeError, ValueError) as error:
        raise AccelError(explain_connection(endpoint, one_line(str(error)))) from error
    cores = tf.config.list_logical_devices("TPU")
    if not cores:
        raise AccelError(explain_connection(endpoint, "it has no cores"))
    return tuple(f"TPU:{index}" for index in range(len(cores)))


def tpu(_devices: tuple[str, ...], resolved: ResolvedPlan) -> tf.distribute.Strategy:
    """``TPUStrategy``: a replica on every core of the connected TPU."""
    return tf.distribute.TPUStrategy(_resolver(resolved.tpu.target if resolved.tpu else LOCAL))


@cache
def _resolver(target: str) -> tf.distribute.cluster_resolver.ClusterResolver:
    return tf.distribute.cluster_resolver.TPUClusterResolver(tpu=target)


_CAUSES = (
    ("No OpKernel", "this TensorFlow has no TPU support: in a fresh environment, pip install 'accel-tui[tpu]'"),
    ("RET_CHECK", "TensorFlow found no usable TPU chip; run accel-tui doctor for details"),
    ("TPU_SYSTEM", "the server there is not a TPU, or its TensorFlow has not started"),
    ("http2 header with status", "the server there is not a TPU but a web server or a proxy"),
    ("urlopen", "only machines in Google Cloud can look up a TPU by name; elsewhere, use grpc://HOST:PORT"),
    ("Google API client", "looking up a TPU by name requires pip install cloud-tpu-client"),
)
"""Parts of TensorFlow's messages and their meaning."""


def explain_connection(
    endpoint: TpuEndpoint, message: str, root: Path = Path("/"), temporary: Path | None = None
) -> str:
    """Return a message with the likely cause of a failed connection.

    Args:
        endpoint: The endpoint.
        message: TensorFlow's error.
        root: Root of the file system with ``sys``, ``dev`` and ``proc``.
        temporary: The directory of temporary files.
    """
    from accel_engine.doctor.tpu_checks import describe_process  # imports the whole doctor, and is seldom needed

    holder = _holder(root, temporary or Path(tempfile.gettempdir())) if endpoint.local else None
    if holder is not None:
        who = describe_process(holder) if holder else "a process in another container"
        cause = f"{who} is using the chips, which only one process can use at a time: wait for it or end it"
    else:
        cause = next((cause for words, cause in _CAUSES if words in message), message)
    where = "in this machine" if endpoint.local else f"at {endpoint.target}" if endpoint.addresses else endpoint.target
    return f"cannot connect to the TPU ({where}, from {endpoint.source}): {cause}"


def _holder(root: Path, temporary: Path) -> int | None:
    """The id of another process that holds chips of this machine; 0 for one in another container."""
    from accel_engine.doctor.tpu_checks import (
        LOCK,
        lock_holder,  # see explain
    )

    holders = find_holders(root)
    for chip in find_chips(root):
        for part in holders.of(chip):
            if int(part.id) != os.getpid():
                return int(part.id)
    with contextlib.suppress(OSError):
        return lock_holder(temporary / LOCK)
    return None
