"""Runs a worker or a parameter server that serves a coordinator."""

import time
from concurrent.futures import Future

import tensorflow as tf

from accel_engine import clock, data
from accel_engine.data.dataset import Dataset
from accel_engine.devices.device_types import Inventory
from accel_engine.errors import DataError
from accel_engine.events import DevicesFound, Outcome, Phase, RunEnded, Warned
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.private_names.tensorflow_names import server_config
from accel_engine.run.writer import RunWriter
from accel_engine.training.commands.command_mailbox import CommandMailbox
from accel_engine.training.core import device_visibility
from accel_engine.training.core.allocated_memory import AllocatedMemory
from accel_engine.training.core.worker_data import WorkerDataSource
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

    lost_connection = False
    """Always ``False``: the peer monitor notices a lost coordinator."""

    def __init__(
        self,
        resolved: ResolvedPlan,
        run: RunWriter,
        mailbox: CommandMailbox,
        inventory: Inventory,
        began: float,
    ) -> None:
        assert resolved.cluster is not None  # noqa: S101 (this process serves its coordinator)
        self._resolved, self._cluster = resolved, resolved.cluster
        self._mailbox = mailbox
        self._inventory = inventory
        self._reporter = RunReporter(run, 0)
        self._began = began
        self._examples: Future[Dataset] = Future()

    def train(self) -> RunEnded:
        """Serve until stopped, and return the event that ends the run.

        Raises:
            PlanError: The plan's devices are not available.
            tf.errors.OpError: The server cannot be started.
        """
        self._reporter.enter_phase(Phase.BUILDING)
        resolved = device_visibility.place_on_visible(self._resolved, self._inventory)
        names = device_visibility.configure(resolved, self._inventory, resolved.plan.threads)
        self._data_source = WorkerDataSource(self._examples, self._cluster.name)
        spec = {"chief": [self._cluster.coordinator], "worker": self._cluster.workers, "ps": self._cluster.servers}
        self._server = tf.distribute.Server(
            tf.train.ClusterSpec({role: list(addresses) for role, addresses in spec.items()}),
            job_name=self._cluster.role,
            task_index=self._cluster.index,
            protocol="grpc",
            config=server_config(),  # else the server ignores the devices configured above
        )
        if self._cluster.role == "worker":
            devices = device_visibility.describe_devices(names, self._inventory)
            self.allocated_memory = AllocatedMemory(devices)
            self._reporter.emit(DevicesFound, devices=devices, strategy="ParameterServerStrategy")
            self._read()
        while (command := self._mailbox.wait()).name not in ("stop", "stop_now"):
            self._reporter.answer_command(command, obeyed=False, answer="send commands to the coordinator's run")
        self._reporter.answer_command(command, obeyed=True, answer="stopped")
        return self.ended(Outcome.FINISHED, command.origin)

    def _read(self) -> None:
        """Load the plan's data for the steps of this worker; on failure, these steps raise the error."""
        try:
            plan = self._resolved.plan
            dataset = data.load(plan.data, plan.data_options)
            self._examples.set_result(dataset)
        except DataError as error:
            self._examples.set_exception(error)
            self._reporter.emit(Warned, message=str(error))

    def ended(self, outcome: Outcome, reason: str = "", hint: str = "") -> RunEnded:
        """The event that ends this process's run, which has no steps of its own."""
        return RunEnded(
            time=clock.now(),
            outcome=outcome,
            steps=0,
            epochs=0,
            seconds=time.monotonic() - self._began,
            reason=reason,
            hint=hint,
        )
