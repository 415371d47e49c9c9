"""TensorFlow's server of a worker or a parameter server, which runs what a coordinator sends."""

from concurrent.futures import Future

import tensorflow as tf

from accel_engine import data
from accel_engine.data.dataset import Dataset
from accel_engine.devices.device_types import Inventory
from accel_engine.errors import DataError
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.private_names.tensorflow_names import server_config
from accel_engine.training.core import device_visibility
from accel_engine.training.core.worker_data import WorkerDataSource


class ServedMember:
    """The server of this process, which serves its coordinator from now on.

    Args:
        resolved: The coordinator's plan, with the cluster and this process's role in it.
        inventory: The machine's devices.

    Attributes:
        devices: TensorFlow's names of the devices of this process.
        device_memory: Bytes of the smallest of them; ``None`` for host memory.

    Raises:
        PlanError: The plan's devices are not available.
        tf.errors.OpError: The server cannot be started.
    """

    def __init__(self, resolved: ResolvedPlan, inventory: Inventory) -> None:
        cluster = resolved.cluster
        assert cluster is not None  # noqa: S101 (this process serves its coordinator)
        self._plan = resolved.plan
        self._examples: Future[Dataset] = Future()
        inventory = device_visibility.with_tensorflow_gpus(inventory)
        resolved = device_visibility.place_on_visible(resolved, inventory)
        self.devices = device_visibility.configure(resolved, inventory, resolved.plan.threads)
        self.device_memory = device_visibility.device_memory(self.devices, resolved, inventory)
        self._data_source = WorkerDataSource(self._examples, cluster.name)
        spec = {"chief": [cluster.coordinator], "worker": cluster.workers, "ps": cluster.servers}
        self._server = tf.distribute.Server(
            tf.train.ClusterSpec({role: list(addresses) for role, addresses in spec.items()}),
            job_name=cluster.role,
            task_index=cluster.index,
            protocol="grpc",
            config=server_config(),  # else the server ignores the devices configured above
        )

    def read(self) -> str:
        """Load the plan's data for the steps of this worker; returns why that fails, which these steps raise, too."""
        try:
            self._examples.set_result(data.load(self._plan.data, self._plan.data_options))
        except DataError as error:
            self._examples.set_exception(error)
            return str(error)
        return ""
