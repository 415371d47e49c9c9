"""Private names of TensorFlow."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from accel_engine.errors import AccelError


@dataclass(frozen=True, slots=True)
class LocalDevice:
    """A device of this process."""

    description: str
    """Its name and PCI bus id among others; empty for a CPU."""
    memory: int
    """Bytes that TensorFlow may allocate on it."""


def local_devices() -> dict[str, LocalDevice]:
    """The devices that this process is configured for, such as ``GPU:0``; without the private names, there are none.

    No public name gives a device's bus id or memory. Without the configuration, TensorFlow would create all GPUs of
    the machine, hidden ones too, and fail where the names of those that exist mean others.
    """
    with suppress(ImportError):
        from tensorflow.python.client import device_lib

        if (config := server_config()) is not None:
            found = device_lib.list_local_devices(config)
            return {
                device.name.removeprefix("/device:"): LocalDevice(device.physical_device_desc, device.memory_limit)
                for device in found
            }
    return {}


def devices_are_configurable() -> bool:
    """Whether TensorFlow's devices can still be configured in this process; ``False`` where it does not tell.

    Public names that tell it also initialize the devices.
    """
    context = _eager_context()
    return not getattr(context, "_initialized", True)


def server_config() -> Any:
    """The configuration of this process's devices, as a ``ConfigProto``; ``None`` where TensorFlow does not tell.

    Without it, a ``tf.distribute.Server`` uses all devices. No public name gives the configuration.
    """
    return getattr(_eager_context(), "config", None)


def _eager_context() -> Any:
    with suppress(ImportError):
        from tensorflow.python.eager import context

        return context.context()
    return None


def function_graph(graph: Any, name: str) -> Any:
    """The graph of a function that a graph, or one outside of it, contains, with the shapes of its variables.

    ``None`` if it is unknown. The public ``as_graph_def`` has no such shapes.
    """
    while graph is not None:
        find = getattr(graph, "_get_function", None)
        if (found := getattr(find(name), "graph", None) if find else None) is not None:
            return found
        graph = getattr(graph, "outer_graph", None)
    return None


def allow_steps_outside_workers(strategy: tf.distribute.ParameterServerStrategy) -> None:
    """Let a coordinator trace and validate without a warning each time, where TensorFlow has a switch for it."""
    if hasattr(strategy.extended, "_allow_run_without_coordinator"):
        strategy.extended._allow_run_without_coordinator = True


WORKER_EXAMPLES = "accel_tui_training_examples"
"""Name of the registered function with which a worker reads its examples; it computes nothing."""


def register_function(name: str, function: Callable[..., Any]) -> None:
    """Register a Python function for the ``PyFunc`` operations of this name that run in this process.

    TensorFlow keeps a weak reference. The public ``tf.numpy_function`` chooses a name, different in each process.

    Raises:
        AccelError: This version of TensorFlow has no such registry.
    """
    try:
        from tensorflow.python.ops import script_ops

        script_ops._py_funcs._funcs[name] = function
    except (ImportError, AttributeError) as error:
        raise AccelError(
            f"TensorFlow {tf.__version__} does not let parameter-server workers read data: use another strategy"
        ) from error


def dataset_inputs(dataset: tf.data.Dataset) -> list[tf.data.Dataset] | None:
    """The datasets that a dataset is made from; ``None`` without the private name.

    No public name gives them, except a serialized graph with all data that is in memory.
    """
    inputs = getattr(dataset, "_inputs", None)
    return None if inputs is None else list(inputs())


def dataset_operations(dataset: tf.data.Dataset) -> set[str] | None:
    """The operations in the functions of a dataset, such as ``PyFunc``; ``None`` without the private names.

    No public name gives them, except a serialized graph with all data that is in memory.
    """
    functions = getattr(dataset, "_functions", None)
    if functions is None:
        return None
    operations: set[str] = set()
    for wrapper in functions():
        function = getattr(wrapper, "function", None)
        if function is None:
            return None
        graph = function.graph.as_graph_def()
        operations.update(node.op for node in graph.node)
        operations.update(node.op for inner in graph.library.function for node in inner.node_def)
    return operations
