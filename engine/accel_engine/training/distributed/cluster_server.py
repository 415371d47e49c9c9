"""Runs a worker or a parameter server that serves a coordinator."""

import time
from concurrent.futures import Future

import tensorflow as tf

from accel_engine import clock, data
from accel_engine.data.dataset import Dataset
from accel_engine.devices.device_types import Inventory
from accel_engine.doctor.tf_probe import refuse_xla_flags
from accel_engine.errors import DataError
from accel_engine.events import DevicesFound, Outcome, Phase, RunEnded, Warned
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.private_names.tensorflow_names import server_config
from accel_engine.run.writing.writer import RunWriter
from accel_engine.training.commands.command_mailbox import CommandMailbox
from accel_engine.training.core import device_visibility
from accel_engine.training.core.worker_data import WorkerDataSource
from accel_engine.training.memory_meters import AllocatedMemory
from accel_engine.training.reporting.run_reporter import RunReporter


class ClusterServer:
    """Serves a coordinator through ``tf.distribute.Server`` until it is stopped.

    Args:
        resolved: The coordinator's plan, with the cluster and this process's role in it.
        run: Writes this process's run.
        mailbox: Receives commands.
        inventory: The machine's devices.
        began: When the engine started the run, by ``time.monotonic()``.
    """

    allocated_memory: AllocatedMemory | None = None
    """Reads the allocated memory of the devices, once they are known."""

    devices: tuple[str, ...] = ()
    """Ids of the devices; empty before they are known."""

    lost_connection = False
    """Always ``False``: the peer monitor notices a lost coordinator."""

    def __init__(
        self, resolved: ResolvedPlan, run: RunWriter, mailbox: CommandMailbox, inventory: Inventory, began: float
    ) -> None:
        assert resolved.cluster is not None  # noqa: S101 (this process serves its coordinator)
        self._resolved, self._cluster = resolved, resolved.cluster
        self._mailbox = mailbox
        self._inventory = inventory
        self._reporter = RunReporter(run, 0)
        self._began = began

    def train(self) -> RunEnded:
        """Serve until stopped, and return the event that ends the run.

        Raises:
            PlanError: The plan's devices are not available.
            tf.errors.OpError: The server cannot be started.
        """
        self._reporter.enter_phase(Phase.BUILDING)
        self._server = ServedMember(self._resolved, self._inventory)
        self.devices = self._server.ids
        if self._cluster.role == "worker":
            devices = device_visibility.describe_devices(self._server.devices, self._inventory)
            self.allocated_memory = AllocatedMemory(devices)
            self._reporter.emit(DevicesFound, devices=devices, strategy="ParameterServerStrategy")
            if problem := self._server.read():
                self._reporter.emit(Warned, message=problem)
        while (command := self._mailbox.wait()).name not in ("stop", "stop_now"):
            self._reporter.answer_command(command, obeyed=False, answer="send commands to the coordinator's run")
        self._reporter.answer_command(command, obeyed=True, answer="stopped")
        return self.ended(Outcome.FINISHED, command.origin)

    def ended(self, outcome: Outcome, reason: str = "", hint: str = "") -> RunEnded:
        """The event that ends this process's run, which has no steps."""
        return RunEnded(
            time=clock.now(),
            outcome=outcome,
            steps=0,
            epochs=0,
            seconds=time.monotonic() - self._began,
            reason=reason,
            hint=hint,
        )


class ServedMember:
    """The server of this process, which serves its coordinator from now on.

    Args:
        resolved: The coordinator's plan, with the cluster and this process's role in it.
        inventory: The machine's devices.

    Attributes:
        devices: TensorFlow's names of the devices of this process.
        ids: Their ids in the inventory.
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
        refuse_xla_flags(with_xla=resolved.plan.xla == "on")
        inventory = device_visibility.with_tensorflow_gpus(inventory)
        resolved = device_visibility.place_on_visible(resolved, inventory)
        self.ids = resolved.placement.devices if resolved.placement else ()
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
        """Load the plan's data for the steps of this worker; returns why it cannot, which these steps raise, too."""
        try:
            self._examples.set_result(data.load(self._plan.data, self._plan.data_options))
        except DataError as error:
            self._examples.set_exception(error)
            return str(error)
        return ""
